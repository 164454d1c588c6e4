"""Who waits for whom, until when?"""

from __future__ import annotations

import re
from datetime import timedelta

from sqlalchemy import insert

from effaced.core import clock
from effaced.model import OutboxOperation, OutboxStatus, new_id
from effaced.outbox.tables import OutboxRow
from effaced.resolvers.protocols import Scheduled
from tests.browser.seed import House
from tests.integration.console.conftest import NOON, Visitor, ref_of


def park(house: House, person: int, days: float, vendor: str = "mailing") -> str:
    """A request whose call waits at the vendor; its ref."""
    house.script.answers[vendor, str(person)] = lambda: Scheduled(clock.now() + timedelta(days=days))
    request_id = house.ask(person)
    house.approve(request_id)
    house.run()
    return ref_of(house, request_id)


def test_the_nearest_horizon_comes_first(house: House, ada: Visitor) -> None:
    late, soon, middle = park(house, 1, 60), park(house, 2, 3), park(house, 3, 30)
    assert ada.refs("/console/scheduled") == [soon, middle, late]


def test_a_horizon_is_told_absolutely_and_relatively(house: House, ada: Visitor) -> None:
    park(house, 1, 3)
    assert re.search(
        r"5 Mar 2026, 12:00</time> <span class=\"dim\">in 3 days", ada.get("/console/scheduled").text
    )


def test_a_slipped_horizon_says_how_often(house: House, ada: Visitor) -> None:
    park(house, 1, 3)
    assert "never" in ada.get("/console/scheduled").text
    with clock.pretend(NOON + timedelta(days=4)):
        house.run()
    assert re.search(r"</svg>1 time</span>", ada.get("/console/scheduled").text)


def test_a_vendor_can_be_chosen(house: House, ada: Visitor) -> None:
    park(house, 1, 3)
    payment = park(house, 2, 3, vendor="payment")
    assert ada.refs("/console/scheduled?resolver=payment") == [payment]


def test_the_strip_has_its_numbers_in_a_table(house: House, ada: Visitor) -> None:
    park(house, 1, 3)
    park(house, 2, 3)
    park(house, 3, 200)
    page = ada.get("/console/scheduled").text
    assert re.findall(r'<th scope="row">([^<]+)</th><td class="num">(\d+)</td>', page) == [
        ("5 Mar 2026", "2")
    ]
    assert "2 dates" in page


def test_load_more_walks_through_all_once_when_all_wait_for_one_moment(house: House, ada: Visitor) -> None:
    request_id, now = house.ask(1), clock.now()
    values = {
        "request_id": request_id,
        "operation": OutboxOperation.ERASE,
        "resolver": "mailing",
        "subject_key_id": "k1",
        "subject_hmac": "0" * 64,
        "ref_kind": "person",
        "status": OutboxStatus.SCHEDULED,
        "attempts": 0,
        "token": 1,
        "claimed_alone": False,
        "crashes": 0,
        "gate": now + timedelta(days=5),
        "enqueued_at": now,
        "aging_since": now,
        "times_parked": 1,
    }
    with house.runtime.db.begin() as session:
        session.execute(insert(OutboxRow), [{**values, "entry_id": new_id()} for _ in range(120)])
    assert len(ada.refs("/console/scheduled")) == 120


def test_an_empty_list_says_what_would_be_here(ada: Visitor) -> None:
    assert "Calls that a vendor answered with a later date, and" in ada.get("/console/scheduled").text
