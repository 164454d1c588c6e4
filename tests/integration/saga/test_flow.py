"""How fast, and whether, a resolver is driven: pauses, sizes, limits of its own, fairness."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from saga_cast import NOON, CheckingVendor, House, Vendor

from effaced import doorbell
from effaced.core.clock import ManualClock
from effaced.model import OutboxStatus, SubjectRef, Verification
from effaced.outbox.claim import claim
from effaced.outbox.due import due_resolvers
from effaced.outbox.flow import ALL, pause, pauses, resume
from effaced.resolvers.protocols import Answer, CredentialsRefused, Erased

HOUR = timedelta(hours=1)


@pytest.fixture
def rings() -> Iterator[list[frozenset[str]]]:
    heard: list[frozenset[str]] = []
    doorbell.install(heard.append)
    yield heard
    doorbell.install(None)


def run(house: House) -> int:
    return asyncio.run(house.runner().run_once())


def hold(house: House, name: str, **options: Any) -> bool:
    with house.db.begin() as session:
        return pause(session, name, actor="officer:1", **options)


def let_go(house: House, name: str) -> bool:
    with house.db.begin() as session:
        return resume(session, name, actor="officer:1")


class TestPause:
    def test_of_one_resolver_leaves_the_others_at_work(self, house: House) -> None:
        crm, mail = house.vendor("crm", Vendor()), house.vendor("mail", Vendor())
        house.request(("crm", "1"), ("mail", "1"))
        assert hold(house, "crm")
        with house.db.read() as session:
            assert due_resolvers(session) == {"mail"}
        assert house.drain("crm") == 0
        assert run(house) == 1
        assert (len(crm.calls), len(mail.calls)) == (0, 1)
        assert house.outbox().claim_batch() == []

    def test_of_all_stops_everything(self, house: House) -> None:
        house.vendor("crm", Vendor())
        house.vendor("mail", Vendor())
        house.request(("crm", "1"), ("mail", "1"))
        hold(house, ALL)
        assert run(house) + house.drain("crm") + house.drain("mail") == 0
        assert house.outbox().claim_batch() == []
        assert let_go(house, ALL)
        assert run(house) == 2

    def test_of_all_ended_leaves_that_of_one(self, house: House) -> None:
        house.vendor("crm", Vendor())
        house.request(("crm", "1"))
        hold(house, ALL)
        hold(house, "crm")
        let_go(house, ALL)
        assert run(house) == 0

    def test_lets_what_is_in_flight_finish(self, house: House) -> None:
        """And claims nothing beside it: the pause comes while the first of two is being called."""

        class Pauses(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                hold(house, "crm")
                return await super().erase_subject(ref, key=key)

        vendor = house.vendor("crm", Pauses(), concurrency=1)
        house.request(("crm", "1"), ("crm", "2"))
        assert house.drain() == 1
        assert len(vendor.calls) == 1
        assert [each.status for each in house.entries()] == [OutboxStatus.SUCCEEDED, OutboxStatus.PENDING]

    def test_costs_no_attempt(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(lambda _: ConnectionError()))
        house.request(("crm", "1"))
        house.drain()
        hold(house, "crm")
        before = house.entry().attempts, house.entry().token
        for _ in range(10):
            noon.advance(timedelta(days=1))
            run(house)
        assert before == (house.entry().attempts, house.entry().token)
        assert house.entry().status is OutboxStatus.FAILED

    def test_holds_back_what_was_lost_and_what_is_to_be_read_back(
        self, house: House, noon: ManualClock
    ) -> None:
        house.vendor("crm", CheckingVendor(absent=lambda _: ConnectionError()))
        house.request(("crm", "1"))
        house.drain()
        noon.advance(timedelta(seconds=1))
        house.request(("crm", "2"))
        house.outbox().claim_batch()
        hold(house, "crm")
        noon.advance(HOUR)
        before = [(each.token, each.verify_due_at) for each in house.entries()]
        assert house.entries()[0].verification is Verification.DUE
        assert run(house) + house.drain() == 0
        assert before == [(each.token, each.verify_due_at) for each in house.entries()]

    def test_until_a_moment_ends_by_itself(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor())
        house.request(("crm", "1"))
        hold(house, "crm", until=NOON + HOUR)
        noon.advance(HOUR - timedelta(microseconds=1))
        assert run(house) == 0
        noon.advance(timedelta(microseconds=1))
        with house.db.read() as session:
            assert pauses(session) == {}
        assert run(house) == 1

    def test_that_ended_by_itself_is_not_ended_again(self, house: House, noon: ManualClock) -> None:
        hold(house, "crm", until=NOON + HOUR)
        noon.advance(HOUR)
        assert let_go(house, "crm") is False
        assert house.types() == ["RESOLVER_PAUSED"]
        assert hold(house, "crm")
        assert house.types() == ["RESOLVER_PAUSED"] * 2

    def test_is_told_once_with_who_and_until_when(self, house: House, noon: ManualClock) -> None:
        assert [hold(house, "crm", until=NOON + HOUR), hold(house, "crm")] == [True, False]
        assert [let_go(house, "crm"), let_go(house, "crm")] == [True, False]
        paused, resumed = house.events()
        assert (paused.type, resumed.type) == ("RESOLVER_PAUSED", "RESOLVER_RESUMED")
        assert {paused.actor, resumed.actor} == {"officer:1"}
        assert (paused.payload["resolver"], paused.payload["code"]) == ("crm", "officer")

    def test_ended_rings_for_the_resolver(self, house: House, rings: list[frozenset[str]]) -> None:
        hold(house, "crm")
        let_go(house, "crm")
        assert rings == [frozenset({"crm"})]

    def test_of_all_ended_rings_for_those_that_have_something_to_do(
        self, house: House, rings: list[frozenset[str]]
    ) -> None:
        house.request(("crm", "1"), ("mail", "1"), ("files", "1"))
        hold(house, "files")
        hold(house, ALL)
        rings.clear()
        let_go(house, ALL)
        assert rings == [frozenset({"crm", "mail"})]

    def test_for_refused_credentials_keeps_the_backlog_and_is_made_once(
        self, house: House, noon: ManualClock
    ) -> None:
        """Ten calls are refused at once. None of them, and none of those behind, loses an attempt."""
        vendor = house.vendor("crm", Vendor(lambda _: CredentialsRefused("no", status_code=401)))
        house.vendor("mail", Vendor())
        house.request(*(("crm", str(number)) for number in range(30)), ("mail", "1"))
        for _ in range(3):
            run(house)
            noon.advance(HOUR)
        crm = [each for each in house.entries() if each.resolver == "crm"]
        assert {(each.status, each.attempts) for each in crm} == {(OutboxStatus.PENDING, 0)}
        assert len(vendor.calls) <= 20, "what was on its way when the first was refused, and no more"
        (event,) = house.events("RESOLVER_PAUSED")
        assert (event.actor, event.payload["code"]) == ("system", "credentials_refused")
        assert house.letters() == []
        vendor.answer = lambda _: Erased()
        let_go(house, "crm")
        assert run(house) == 30


class TestLimitsOfItsOwn:
    def test_no_claim_takes_more_than_the_batch(self, house: House) -> None:
        """Claimed and not yet answered."""
        seen: list[int] = []
        answered: set[UUID] = set()

        class Watches(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                claimed = {each.entry_id for each in house.entries() if each.status is OutboxStatus.IN_FLIGHT}
                seen.append(len(claimed - answered))
                answered.add(key)
                return Erased()

        house.vendor("crm", Watches(), concurrency=10, batch_size=2)
        house.request(*(("crm", str(number)) for number in range(8)))
        assert house.drain(batch_size=50) == 8
        assert max(seen) == 2

    def test_attempts(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(lambda _: ConnectionError()), max_attempts=2)
        house.vendor("mail", Vendor(lambda _: ConnectionError()))
        house.request(("crm", "1"), ("mail", "1"))
        for _ in range(3):
            run(house)
            noon.advance(HOUR)
        assert {each.resolver: (each.status, each.attempts) for each in house.entries()} == {
            "crm": (OutboxStatus.ABANDONED, 2),
            "mail": (OutboxStatus.FAILED, 3),
        }

    def test_age(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(lambda _: ConnectionError()), max_age=timedelta(days=1))
        house.vendor("mail", Vendor(lambda _: ConnectionError()))
        house.request(("crm", "1"), ("mail", "1"))
        noon.advance(timedelta(days=2))
        run(house)
        assert [(each.resolver, each.error_code) for each in house.letters()] == [("crm", "max_age")]

    def test_waits(self, house: House, noon: ManualClock) -> None:
        second = timedelta(seconds=1)
        house.vendor("crm", Vendor(lambda _: ConnectionError()), backoff=5 * second, backoff_cap=8 * second)
        house.request(("crm", "1"))
        waits = []
        for _ in range(3):
            house.drain()
            gate = house.entry().gate
            assert gate is not None
            waits.append((gate - noon()) / second)
            noon.at = gate
        assert waits == [5, 8, 8]


@pytest.mark.parametrize("paused", ["crm", ALL])
def test_a_claim_sees_a_pause_that_came_after_the_look_before_it(house: House, paused: str) -> None:
    house.request(("crm", "c-1"))
    with house.db.begin() as session:
        pause(session, paused, actor="cli")
    with house.db.begin() as session:
        assert claim(session, "crm", limit=10, lease=timedelta(minutes=5)) == []
    assert house.entry().status is OutboxStatus.PENDING


def test_a_long_backlog_keeps_no_other_resolver_waiting(house: House) -> None:
    """The backlog's second call ends only when the other resolver's success can be seen."""

    class Backlog(Vendor):
        async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
            self.calls.append((ref.value, key))
            while len(self.calls) > 1 and small_done() == 0:
                await asyncio.sleep(0.01)
            return Erased()

    def small_done() -> int:
        return sum(each.payload["resolver"] == "small" for each in house.events("ERASURE_STEP_SUCCEEDED"))

    big = house.vendor("big", Backlog(), concurrency=1, timeout=timedelta(seconds=30))
    house.vendor("small", Vendor())
    house.request(*(("big", str(number)) for number in range(40)))
    house.request(("small", "1"))
    assert run(house) == 41
    assert len(big.calls) == 40
    order = [each.payload["resolver"] for each in house.events("ERASURE_STEP_SUCCEEDED")]
    assert order.index("small") <= 1


def test_what_becomes_due_beside_a_long_backlog_is_not_kept_waiting_either(house: House) -> None:
    """Asked for while the backlog's first call is made, done before its second one ends."""

    class Backlog(Vendor):
        async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
            self.calls.append((ref.value, key))
            if len(self.calls) == 1:
                house.request(("small", "1"))
            while len(self.calls) == 2 and house.outbox().status_counts()[OutboxStatus.SUCCEEDED] < 2:
                await asyncio.sleep(0.01)
            return Erased()

    house.vendor("big", Backlog(), concurrency=1, timeout=timedelta(seconds=20))
    small = house.vendor("small", Vendor())
    house.request(*(("big", str(number)) for number in range(5)))
    assert run(house) == 6
    assert len(small.calls) == 1
    assert {(each.status, each.attempts) for each in house.entries()} == {(OutboxStatus.SUCCEEDED, 1)}
