"""Calls of one request that wait for others of it: `after:`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from quick_database import open_quickly
from saga_cast import KEYRING, NOON, House, Vendor

from effaced import doorbell
from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.errors import ConfigurationError, ResolverError
from effaced.model import OutboxStatus, RequestStatus, SubjectRef
from effaced.outbox.claim import claim
from effaced.outbox.due import due_resolvers
from effaced.outbox.entry import Entry
from effaced.outbox.tables import OutboxRow
from effaced.requests.complete import complete_operations
from effaced.resolvers.protocols import AlreadyAbsent, Erased, Scheduled
from effaced.saga.decide import decide
from effaced.saga.facade import Outbox, OutboxEntry
from effaced.saga.result import Result, Rules
from effaced.saga.settle import settle
from effaced.triage.attest import attest

RULES = Rules()


@pytest.fixture
def rings() -> Iterator[list[frozenset[str]]]:
    heard: list[frozenset[str]] = []
    doorbell.install(heard.append)
    yield heard
    doorbell.install(None)


def run(house: House) -> None:
    asyncio.run(house.runner().run_once())


def of(house: House, resolver: str) -> OutboxRow:
    (found,) = [each for each in house.entries() if each.resolver == resolver]
    return found


class TestWaiting:
    def test_is_called_after_those_it_waits_for(self, house: House) -> None:
        """Though everything is due, and each resolver is driven beside the others."""
        order: list[str] = []
        for name, after in (("a_last", ("b_next",)), ("b_next", ("c_first",)), ("c_first", ())):
            house.vendor(name, Vendor(lambda ref: order.append(ref) or Erased()), after)  # type: ignore[func-returns-value]
        request_id = house.request(("a_last", "3"), ("b_next", "2"), ("c_first", "1"))
        for _ in range(3):
            run(house)
        assert order == ["1", "2", "3"]
        assert house.status(request_id) is RequestStatus.COMPLETED

    def test_is_not_due_while_it_waits_and_is_when_it_need_not(
        self, house: House, rings: list[frozenset[str]]
    ) -> None:
        house.vendor("crm", Vendor())
        house.vendor("mail", Vendor(), after=("crm",))
        house.request(("crm", "1"), ("mail", "1"))
        with house.db.read() as session:
            assert due_resolvers(session) == {"crm"}
        assert house.drain("mail") == 0
        rings.clear()
        house.drain("crm")
        assert frozenset({"mail"}) in rings
        assert of(house, "mail").waits_for is None
        assert house.drain("mail") == 1

    def test_a_parked_predecessor_is_waited_for(self, house: House, noon: ManualClock) -> None:
        vendor = house.vendor("crm", Vendor(lambda _: Scheduled(NOON + timedelta(days=30))))
        house.vendor("mail", Vendor(), after=("crm",))
        house.request(("crm", "1"), ("mail", "1"))
        run(house)
        run(house)
        assert (of(house, "mail").status, of(house, "mail").waits_for) == (OutboxStatus.PENDING, ["crm"])
        vendor.answer = lambda _: AlreadyAbsent()
        noon.advance(timedelta(days=30))
        run(house)
        run(house)
        assert of(house, "mail").status is OutboxStatus.SUCCEEDED

    def test_time_spent_waiting_does_not_count_against_it(self, house: House, noon: ManualClock) -> None:
        """It was released on day 30; its own 25 days begin then."""
        vendor = house.vendor("crm", Vendor(lambda _: Scheduled(NOON + timedelta(days=30))))
        house.vendor("mail", Vendor(lambda _: ConnectionError()), after=("crm",))
        house.request(("crm", "1"), ("mail", "1"))
        run(house)
        vendor.answer = lambda _: AlreadyAbsent()
        noon.advance(timedelta(days=30))
        run(house)
        run(house)
        assert of(house, "mail").status is OutboxStatus.FAILED

    def test_an_abandoned_predecessor_is_waited_for_until_it_succeeds_after_all(self, house: House) -> None:
        vendor = house.vendor("crm", Vendor(lambda _: ResolverError("no")))
        mail = house.vendor("mail", Vendor(), after=("crm",))
        request_id = house.request(("crm", "1"), ("mail", "1"))
        run(house)
        run(house)
        assert (mail.calls, of(house, "mail").waits_for) == ([], ["crm"])
        vendor.answer = lambda _: Erased()
        house.outbox().requeue([of(house, "crm").entry_id])
        run(house)
        run(house)
        assert house.status(request_id) is RequestStatus.COMPLETED

    def test_an_attested_predecessor_need_not_be_waited_for(
        self, house: House, rings: list[frozenset[str]]
    ) -> None:
        house.vendor("crm", Vendor(lambda _: ResolverError("no")))
        house.vendor("mail", Vendor(), after=("crm",))
        request_id = house.request(("crm", "1"), ("mail", "1"))
        run(house)
        rings.clear()
        with house.db.begin() as session:
            attest(session, KEYRING, of(house, "crm").entry_id, actor="officer:1", reason="by telephone")
        assert rings == [frozenset({"mail"})]
        run(house)
        assert house.status(request_id) is RequestStatus.COMPLETED

    def test_who_is_not_called_is_not_waited_for(self, house: House) -> None:
        house.vendor("crm", Vendor())
        mail = house.vendor("mail", Vendor(), after=("crm",))
        house.request(("mail", "1"))
        run(house)
        assert len(mail.calls) == 1

    def test_another_request_s_call_is_not_waited_for(self, house: House) -> None:
        house.vendor("crm", Vendor(lambda ref: ResolverError("no") if ref == "bad" else Erased()))
        mail = house.vendor("mail", Vendor(), after=("crm",))
        house.request(("crm", "bad"), ("mail", "waits"))
        house.request(("crm", "good"), ("mail", "goes"))
        run(house)
        run(house)
        assert [ref for ref, _ in mail.calls] == ["goes"]


class TestRefused:
    def test_a_circle_is_at_start(self, house: House) -> None:
        house.vendor("a", Vendor(), after=("b",))
        house.vendor("b", Vendor(), after=("c",))
        house.vendor("c", Vendor(), after=("a",))
        with pytest.raises(ConfigurationError, match="a -> b -> c -> a"):
            house.runner()

    @pytest.mark.parametrize("after", [{"a": ("a",)}, {"a": ("b",), "b": ("c",), "c": ("a",)}])
    def test_a_circle_of_calls_is_before_anything_is_enqueued(
        self, house: House, after: dict[str, tuple[str, ...]]
    ) -> None:
        entries = [
            OutboxEntry(name, SubjectRef("person", "1"), "1", after=after.get(name, ())) for name in "abc"
        ]
        with house.db.begin() as session, pytest.raises(ConfigurationError, match="wait for each other"):
            Outbox(house.db.sessions, keyring=KEYRING).enqueue(session, entries)
        assert house.entries() == []

    def test_a_name_that_is_nobody_s_is_at_start(self, house: House) -> None:
        house.vendor("a", Vendor(), after=("nobody",))
        with pytest.raises(ConfigurationError, match="there is no resolver 'nobody'"):
            house.runner()


@pytest.mark.parametrize("rounds", [15, pytest.param(300, marks=pytest.mark.drill)])
def test_two_that_end_at_the_same_moment_release_once(
    migrated_postgres_url: str, rings: list[frozenset[str]], rounds: int
) -> None:
    """Two flushes settle the two predecessors of one call at once: one of them sees it free, not both."""
    house = House(open_quickly(migrated_postgres_url, pool_size=8))
    house.vendor("a", Vendor())
    house.vendor("b", Vendor())
    house.vendor("z", Vendor(), after=("a", "b"))
    for _ in range(rounds):
        request_id = house.request(("a", "1"), ("b", "1"), ("z", "1"))
        rings.clear()
        with house.db.begin() as session:
            entries = [each for name in "ab" for each in claim(session, name, limit=9, lease=timedelta(1))]
        start = Barrier(2)

        def end(entry: Entry, start: Barrier = start) -> None:
            decision = decide(Result(entry, Erased()), RULES, clock.now())
            start.wait()
            with house.db.begin() as session:
                assert settle(session, [decision], complete_operations)

        with ThreadPoolExecutor(2) as threads:
            list(threads.map(end, entries))
        (waited,) = [
            each for each in house.entries() if each.request_id == request_id and each.unblocks is False
        ]
        assert waited.waits_for is None
        assert rings == [frozenset({"z"})]
        assert house.drain("z") == 1
        assert house.status(request_id) is RequestStatus.COMPLETED
    house.db.dispose()
