"""Leases, tokens and crashes: who may write, and who pays."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from quick_database import open_quickly
from saga_cast import KEYRING, NOON, House, Vendor
from sqlalchemy import create_engine, event, text, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from effaced.audit.sink import DatabaseAuditSink
from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.errors import ConfigurationError, Unavailable
from effaced.model import OutboxOperation, OutboxStatus, RequestStatus, SubjectRef
from effaced.outbox.claim import claim, claim_crashed
from effaced.outbox.enqueue import Call, enqueue
from effaced.outbox.entry import Entry
from effaced.outbox.requeue import requeue
from effaced.outbox.tables import OutboxRow
from effaced.requests.complete import complete_operations
from effaced.resolvers.protocols import Answer, Erased
from effaced.retries.policy import BackoffPolicy
from effaced.saga.decide import decide
from effaced.saga.facade import Outbox, OutboxEntry
from effaced.saga.result import Result, Rules
from effaced.saga.settle import settle

LEASE = timedelta(minutes=5)
RULES = Rules()


def take(house: House, limit: int = 10) -> list[Entry]:
    """Claim as a runner does that then dies without a word."""
    with house.db.begin() as session:
        return claim(session, "crm", limit=limit, lease=LEASE)


def settle_as_erased(house: House, entries: list[Entry]) -> int:
    decisions = [decide(Result(entry, Erased()), RULES, clock.now()) for entry in entries]
    with house.db.begin() as session:
        return len(settle(session, decisions, complete_operations))


class TestClaim:
    def test_takes_the_oldest_first_and_equal_times_by_id(self, house: House, noon: ManualClock) -> None:
        house.request(("crm", "1"), ("crm", "2"))
        noon.advance(timedelta(seconds=1))
        house.request(("crm", "3"))
        first, second = take(house, 2)
        assert (first.enqueued_at, second.enqueued_at) == (NOON, NOON)
        assert first.entry_id < second.entry_id
        assert [entry.enqueued_at for entry in take(house)] == [NOON + timedelta(seconds=1)]

    def test_mixes_retries_and_fresh_entries_by_age(self, house: House, noon: ManualClock) -> None:
        vendor = house.vendor("crm", Vendor(lambda _: ConnectionError()))
        house.request(("crm", "old"))
        house.drain()
        noon.advance(timedelta(seconds=30))
        house.request(("crm", "new"))
        vendor.calls.clear()
        assert [entry.enqueued_at for entry in take(house, 1)] == [NOON]

    def test_counts_an_attempt_and_sets_the_lease(self, house: House, noon: ManualClock) -> None:
        house.request(("crm", "1"))
        (entry,) = take(house)
        assert (entry.status, entry.attempts, entry.gate) == (OutboxStatus.IN_FLIGHT, 1, NOON + LEASE)

    def test_leaves_other_resolvers_alone(self, house: House) -> None:
        house.request(("crm", "1"), ("mail", "2"))
        assert [entry.resolver for entry in take(house)] == ["crm"]

    def test_skips_what_another_transaction_is_taking(self, migrated_postgres_url: str) -> None:
        house = House(open_quickly(migrated_postgres_url))
        house.request(("crm", "1"), ("crm", "2"))
        with house.db.begin() as one, house.db.begin() as other:
            mine = claim(one, "crm", limit=1, lease=LEASE)
            theirs = claim(other, "crm", limit=1, lease=LEASE)
            assert len(mine) == len(theirs) == 1
            assert mine[0].entry_id != theirs[0].entry_id
        house.db.dispose()

    def test_a_rolled_back_enqueue_leaves_nothing(self, house: House) -> None:
        class Undone(Exception):
            pass

        def enqueue_and_fail() -> None:
            with house.db.begin() as session:
                subject = KEYRING.subject_key("x")
                enqueue(session, KEYRING, UUID(int=1), subject, [Call("crm", SubjectRef("crm", "1"))])
                raise Undone

        with pytest.raises(Undone):
            enqueue_and_fail()
        assert house.entries() == []


class TestLateSettle:
    def test_is_refused_once_another_runner_has_the_entry(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor())
        house.request(("crm", "1"))
        late = take(house)
        noon.advance(LEASE)
        house.drain()
        before = house.types()
        assert settle_as_erased(house, late) == 0
        assert house.types() == before

    def test_is_refused_after_the_entry_was_abandoned_and_requeued(
        self, house: House, noon: ManualClock
    ) -> None:
        house.request(("crm", "1"))
        late = take(house)
        with house.db.begin() as session:
            session.execute(update(OutboxRow).values(status=OutboxStatus.ABANDONED))
            requeue(session, [late[0].entry_id], actor="officer:1")
        take(house)
        assert settle_as_erased(house, late) == 0

    def test_does_not_complete_the_request_twice(self, house: House, noon: ManualClock) -> None:
        house.request(("crm", "1"))
        entries = take(house)
        assert settle_as_erased(house, entries) == 1
        assert settle_as_erased(house, entries) == 0
        assert house.types().count("ERASURE_COMPLETED") == 1


class TestCrash:
    def test_siblings_of_a_crash_get_their_attempt_back(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(lambda _: ConnectionError()))
        house.request(("crm", "1"), ("crm", "2"), ("crm", "3"))
        take(house)
        noon.advance(LEASE)
        house.drain()
        assert {entry.attempts for entry in house.entries()} == {1}

    def test_each_is_run_alone_after_it_and_settled_before_the_next(
        self, house: House, noon: ManualClock
    ) -> None:
        """Claimed a second time and not settled: only the one that is being called."""
        beside: list[int] = []

        class Watches(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                again = [entry for entry in house.entries() if entry.token == 2]
                beside.append(sum(entry.status is OutboxStatus.IN_FLIGHT for entry in again))
                return Erased()

        house.vendor("crm", Watches())
        house.request(("crm", "1"), ("crm", "2"), ("crm", "3"))
        take(house)
        noon.advance(LEASE)
        house.request(("crm", "4"))
        assert house.drain() == 4
        assert beside[:3] == [1, 1, 1]

    def test_one_is_claimed_at_a_time_also_when_the_planner_expects_a_tiny_table(
        self, migrated_postgres_url: str, noon: ManualClock
    ) -> None:
        house = House(open_quickly(migrated_postgres_url))
        house.request(("crm", "0"))
        with house.db.begin() as session:
            session.execute(text("ANALYZE effaced_outbox"))
        house.request(*(("crm", str(number)) for number in range(12)))
        take(house, 20)
        noon.advance(LEASE)
        with house.db.begin() as session:
            assert len(claim_crashed(session, "crm", lease=LEASE)) == 1
        house.db.dispose()

    def test_poison_is_abandoned_and_its_neighbours_are_not(self, house: House, noon: ManualClock) -> None:
        """Whoever takes `poison` dies: first in a batch, then alone until its crashes are too many."""
        house.vendor("crm", Vendor())
        house.request(("crm", "good"))
        poisoned = house.request(("crm", "poison"))
        take(house)
        for _ in range(4):
            noon.advance(LEASE)
            with house.db.begin() as session:
                taken = claim_crashed(session, "crm", lease=LEASE)
            while taken and taken[0].request_id != poisoned:
                settle_as_erased(house, taken)
                with house.db.begin() as session:
                    taken = claim_crashed(session, "crm", lease=LEASE)
        assert taken[0].crashes == 3  # each time its runner was dead
        noon.advance(LEASE)
        house.drain()
        by_request = {entry.request_id: entry for entry in house.entries()}
        assert by_request.pop(poisoned).status is OutboxStatus.ABANDONED
        assert [entry.status for entry in by_request.values()] == [OutboxStatus.SUCCEEDED]
        assert [letter.error_code for letter in house.letters()] == ["crash_loop"]

    def test_a_lease_that_can_never_hold_a_call_is_refused_at_the_start(self, house: House) -> None:
        house.vendor("crm", Vendor(), timeout=timedelta(minutes=3))
        with pytest.raises(ConfigurationError) as caught:
            house.runner(backoff=BackoffPolicy(lease=timedelta(minutes=5)))
        assert [str(each) for each in caught.value.problems] == [
            "resolver crm: timeout must be under 150 seconds"
        ]

    def test_a_runner_that_slept_after_its_claim_gives_the_attempts_back_and_others_go_on(
        self, house: House, noon: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As when a machine is suspended between the claim and the call."""

        def sleepy(resolver: str, *args: Any, **kwargs: Any) -> Any:
            claimed = claim(resolver, *args, **kwargs)
            if resolver == "crm" and claimed.entries and not slept:
                slept.append(noon.advance(timedelta(minutes=4.5)))
            return claimed

        slept: list[datetime] = []
        crm, mail = house.vendor("crm", Vendor()), house.vendor("mail", Vendor())
        house.request(("crm", "1"))
        runner = house.runner()
        claim = runner._context.claims.claim
        monkeypatch.setattr(runner._context.claims, "claim", sleepy)
        asyncio.run(runner.drain("crm"))
        assert (crm.calls, house.entry().status, house.entry().attempts) == ([], OutboxStatus.PENDING, 0)
        house.request(("mail", "1"))
        asyncio.run(runner.run_once())
        assert (len(crm.calls), len(mail.calls)) == (1, 1)

    def test_holds_in_a_sqlite_file_that_was_opened_without_our_care(
        self, migrated_sqlite_url: str, noon: ManualClock
    ) -> None:
        """Whoever embeds effaced brings an engine whose transactions begin without the write lock."""
        plain, other = (create_engine(migrated_sqlite_url) for _ in range(2))
        mine, theirs = (
            Outbox(sessionmaker(each), keyring=KEYRING, audit_sink=DatabaseAuditSink())
            for each in (plain, other)
        )
        with mine.sessions.begin() as session:
            mine.enqueue(session, [OutboxEntry("crm", SubjectRef("crm", "1"), "anna")])
        (late,) = mine.claim_batch()
        noon.advance(timedelta(minutes=6))
        taken: list[OutboxEntry] = []

        def claim_between(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            # After the look at the token, before anything is written under it.
            if statement.startswith("INSERT INTO effaced_audit") and not taken:
                with other.connect() as connection:
                    connection.exec_driver_sql("PRAGMA busy_timeout = 0")
                    with pytest.raises(OperationalError):
                        connection.exec_driver_sql("BEGIN IMMEDIATE")
                taken.append(late)

        event.listen(plain, "before_cursor_execute", claim_between)
        assert mine.mark_succeeded(late, on_subject_complete=lambda: None)
        assert taken
        assert theirs.claim_batch() == []
        plain.dispose()
        other.dispose()


def test_trouble_with_one_resolver_lets_the_calls_of_another_land(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = asyncio.Event()

    class Slow(Vendor):
        async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
            called.set()
            await asyncio.sleep(0.3)  # in the air while the other resolver's claim fails
            return Erased()

    def fails(resolver: str, *args: Any, **options: Any) -> Any:
        if resolver == "crm":
            raise ConnectionError("the database is gone")
        return claim(resolver, *args, **options)

    house.vendor("crm", Vendor())
    house.vendor("mail", Slow())
    house.request(("crm", "1"), ("mail", "1"))
    runner = house.runner()
    claim = runner._context.claims.claim
    monkeypatch.setattr(runner._context.claims, "claim", fails)
    with pytest.raises(ConnectionError):
        asyncio.run(runner.run_once())
    assert called.is_set()
    assert {each.resolver: each.status for each in house.entries()} == {
        "crm": OutboxStatus.PENDING,
        "mail": OutboxStatus.SUCCEEDED,
    }


class TestFlush:
    def test_that_fails_strands_only_the_entry_that_is_to_blame(self, house: House) -> None:
        house.vendor("crm", Vendor())
        good, bad = house.request(("crm", "1")), house.request(("crm", "2"))

        def refuses_bad(session: Session, completed: Sequence[tuple[UUID, OutboxOperation]]) -> None:
            if any(request_id == bad for request_id, _ in completed):
                raise RuntimeError("this request can't be completed")
            complete_operations(session, completed)

        with pytest.raises(Unavailable, match="What 1 of the calls returned"):
            house.drain(on_operations_complete=refuses_bad)
        assert house.status(good) is RequestStatus.COMPLETED
        assert house.status(bad) is RequestStatus.RUNNING
        by_request = {entry.request_id: entry.status for entry in house.entries()}
        assert by_request == {good: OutboxStatus.SUCCEEDED, bad: OutboxStatus.IN_FLIGHT}

    def test_does_not_wait_for_a_slow_sibling(self, house: House) -> None:
        """The slow call ends only when the quick one's success can be seen in the database."""

        class Mixed(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                while ref.value == "slow" and not house.events("ERASURE_STEP_SUCCEEDED"):
                    await asyncio.sleep(0.01)
                return Erased()

        house.vendor("crm", Mixed(), timeout=timedelta(seconds=20))
        house.request(("crm", "slow"), ("crm", "quick"))
        house.drain()
        assert {entry.status for entry in house.entries()} == {OutboxStatus.SUCCEEDED}
        assert {entry.attempts for entry in house.entries()} == {1}

    def test_does_not_wait_for_a_sibling_that_hangs_until_its_timeout(self, house: House) -> None:
        """When the hanging call is given up at last, the trail has long told of all the others."""
        told: list[int] = []

        class OneHangs(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                try:
                    if ref.value == "hangs":
                        await asyncio.Event().wait()
                finally:
                    if ref.value == "hangs":
                        told.append(len(house.events("ERASURE_STEP_SUCCEEDED")))
                return Erased()

        house.vendor("crm", OneHangs(), timeout=timedelta(seconds=3), concurrency=10)
        house.request(("crm", "hangs"), *(("crm", str(number)) for number in range(9)))
        house.drain()
        assert told == [9]
        ended = sorted((each.status, each.last_error) for each in house.entries() if each.last_error)
        assert ended == [(OutboxStatus.FAILED, "TimeoutError")]
        assert {each.token for each in house.entries()} == {1}

    def test_slow_calls_leave_the_free_places_to_others(self, house: House) -> None:
        """Six slow calls in ten places end only when all the quick ones have been settled beside them."""

        class Mixed(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                while ref.value == "slow" and len(house.events("ERASURE_STEP_SUCCEEDED")) < 14:
                    await asyncio.sleep(0.02)
                return Erased()

        house.vendor("crm", Mixed(), timeout=timedelta(seconds=20), concurrency=10)
        house.request(*[("crm", "slow")] * 6)
        house.request(*[("crm", "quick")] * 14)
        house.drain()
        assert {(entry.status, entry.attempts) for entry in house.entries()} == {(OutboxStatus.SUCCEEDED, 1)}

    def test_new_work_is_taken_up_beside_a_slow_call(self, house: House) -> None:
        class Mixed(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                if ref.value == "slow":
                    house.request(("crm", "new"))
                while ref.value == "slow" and not house.events("ERASURE_STEP_SUCCEEDED"):
                    await asyncio.sleep(0.02)
                return Erased()

        house.vendor("crm", Mixed(), timeout=timedelta(seconds=20))
        house.request(("crm", "slow"))
        assert house.drain() == 2

    def test_calls_already_made_are_settled_when_a_claim_fails(
        self, house: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The database is gone for a moment in which it would be asked for more."""
        landed = asyncio.Event()

        class Slow(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                self.calls.append((ref.value, key))
                await landed.wait()
                return Erased()

        def fails(*args: Any, **options: Any) -> Any:
            if vendor.calls:
                landed.set()
                raise ConnectionError("the database is gone")
            return claim(*args, **options)

        vendor = house.vendor("crm", Slow(), concurrency=4)
        house.request(("crm", "1"), ("crm", "2"))
        runner = house.runner()
        claim = runner._context.claims.claim
        monkeypatch.setattr(runner._context.claims, "claim", fails)
        with pytest.raises(ConnectionError):
            asyncio.run(runner.drain("crm"))
        assert {entry.status for entry in house.entries()} == {OutboxStatus.SUCCEEDED}

    def test_the_word_to_stop_is_heard_while_waiting_for_the_rate(self, house: House) -> None:
        runner = None

        class Stops(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                assert runner is not None
                asyncio.get_running_loop().call_later(0.05, runner.stop)
                return Erased()

        house.vendor("crm", Stops(), rate_per_second=0.001)
        house.request(("crm", "1"), ("crm", "2"))
        runner = house.runner()

        async def within_reason() -> int:
            async with asyncio.timeout(30):  # the next call may start in a thousand seconds
                return await runner.drain("crm")

        assert asyncio.run(within_reason()) == 1

    def test_claims_no_more_than_may_be_called_at_once(self, house: House) -> None:
        """Claimed and not yet answered: what has been answered is only waiting to be written down."""
        seen: list[int] = []
        answered: set[UUID] = set()

        class Watches(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                claimed = {each.entry_id for each in house.entries() if each.status is OutboxStatus.IN_FLIGHT}
                seen.append(len(claimed - answered))
                answered.add(key)
                return Erased()

        house.vendor("crm", Watches(), concurrency=3)
        house.request(*(("crm", str(number)) for number in range(10)))
        assert house.drain() == 10
        assert max(seen) == 3
