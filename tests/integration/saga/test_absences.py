"""A system that all of a sudden knows nobody: told once, and only if it is a change."""

from __future__ import annotations

from datetime import timedelta

import pytest
from saga_cast import NOON, House, Vendor
from sqlalchemy import select

from effaced.core.clock import ManualClock
from effaced.notify.tables import Message
from effaced.outbox.absences import Share, recent_alarms, report_absence_spikes
from effaced.resolvers.protocols import AlreadyAbsent, Answer, Erased

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def answer(house: House, erased: int, absent: int, resolver: str = "crm") -> None:
    """So many people are erased, and so many are not there."""

    def said(ref: str) -> Answer:
        return Erased() if int(ref) < erased else AlreadyAbsent()

    house.vendor(resolver, Vendor(said))
    house.request(*((resolver, str(n)) for n in range(erased + absent)))
    house.drain(resolver)


def ring(house: House) -> list[str]:
    with house.db.begin() as session:
        return report_absence_spikes(session)


def told(house: House) -> list[dict[str, object]]:
    with house.db.read() as session:
        messages = session.scalars(select(Message).where(Message.type == "resolver.absences"))
        return [message.payload for message in messages]


def test_a_system_that_used_to_erase_and_then_knows_nobody_is_told_of(
    house: House, noon: ManualClock
) -> None:
    answer(house, 20, 2)
    noon.advance(DAY)
    answer(house, 1, 19)
    assert ring(house) == ["crm"]
    assert told(house) == [{"resolver": "crm", "absent": 19, "answers": 20}]
    (event,) = house.events("ABSENCE_SPIKED")
    assert (event.payload["absent_before"], event.payload["answers_before"]) == (2, 22)
    with house.db.read() as session:
        (alarm,) = recent_alarms(session).values()
    assert (alarm.resolver, alarm.at, alarm.now, alarm.before) == (
        "crm",
        NOON + DAY,
        Share(19, 20),
        Share(2, 22),
    )


def test_a_system_that_never_knew_anybody_is_told_of(house: House, noon: ManualClock) -> None:
    """A path that was mistyped from the beginning."""
    answer(house, 0, 20)
    assert ring(house) == ["crm"]


@pytest.mark.parametrize(
    ("erased", "absent"),
    [(0, 19), (5, 19)],
    ids=["too few to tell", "not nearly all"],
)
def test_what_shows_nothing_is_not_told_of(house: House, noon: ManualClock, erased: int, absent: int) -> None:
    answer(house, erased, absent)
    assert (ring(house), told(house)) == ([], [])


def test_a_system_where_it_is_usual_is_not_told_of(house: House, noon: ManualClock) -> None:
    """Most people were never in the newsletter."""
    answer(house, 16, 4)
    noon.advance(DAY)
    answer(house, 0, 20)
    assert ring(house) == []


def test_a_spike_is_told_once_however_often_it_is_looked_at(house: House, noon: ManualClock) -> None:
    answer(house, 100, 0)
    noon.advance(DAY)
    for _ in range(3):
        answer(house, 0, 20)
        ring(house)
        noon.advance(timedelta(minutes=5))
    assert len(told(house)) == 1
    noon.advance(DAY)
    assert ring(house) == []
    answer(house, 0, 20)
    assert ring(house) == []  # by now it is what the week before was like, to more than a fifth


def test_a_second_spike_another_day_is_told_of_again(house: House, noon: ManualClock) -> None:
    answer(house, 150, 0)
    for _ in range(2):
        noon.advance(DAY)
        answer(house, 0, 20)
        ring(house)
    assert len(told(house)) == 2


def test_each_system_is_looked_at_by_itself(house: House, noon: ManualClock) -> None:
    answer(house, 20, 0)
    answer(house, 0, 20, "mail")
    assert ring(house) == ["mail"]
