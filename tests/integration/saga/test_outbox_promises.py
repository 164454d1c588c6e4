"""The outbox as a library: what it promises, each test with the number of its row in docs/guarantees.md.

What is not here is shown elsewhere; docs/guarantees.md says where.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from saga_cast import KEYRING, NOON, CorrectingVendor, House, Vendor
from sqlalchemy import create_engine, event
from sqlalchemy.orm import Session, sessionmaker
from waiting import PATIENCE

from effaced.audit.append import append_one
from effaced.audit.events import ErasureCompleted
from effaced.audit.sink import DatabaseAuditSink
from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.core.errors import ConfigurationError, ResolverError
from effaced.model import Correction, OutboxOperation, OutboxStatus, RequestStatus, SubjectRef, new_id
from effaced.outbox.requeue import requeue
from effaced.requests.complete import complete_operations
from effaced.resolvers.protocols import Answer, Erased
from effaced.saga.abandoned_hook import AbandonedSignal
from effaced.saga.facade import Outbox, OutboxEntry
from effaced.saga.runner import SagaRunner

LEASE = timedelta(minutes=5)
STEP = timedelta(seconds=30)
ANSWER, TRAIL = Erased(), DatabaseAuditSink()


def nothing() -> None:
    pass


def entry(resolver: str = "crm", subject: str = "anna", **more: Any) -> OutboxEntry:
    return OutboxEntry(resolver, SubjectRef(resolver, f"{resolver}-1"), subject, **more)


def enqueued(house: House, *entries: OutboxEntry) -> Outbox:
    outbox = house.outbox()
    with house.db.begin() as session:
        outbox.enqueue(session, entries)
    return outbox


def state(entry: Any) -> tuple[OutboxStatus, int, Any, str | None]:
    """Status, attempts, gate and error, of a row or of the library's entry."""
    gate = entry.next_attempt_at if isinstance(entry, OutboxEntry) else entry.gate
    return entry.status, entry.attempts, gate, entry.last_error


class TestEnqueue:
    def test_what_is_rolled_back_never_was_and_its_events_neither(self, house: House) -> None:
        """O1"""

        class Undone(Exception):
            pass

        def undo() -> None:
            with house.db.begin() as session:
                house.outbox().enqueue(session, [entry()])
                append_one(session, ErasureCompleted(operation=OutboxOperation.ERASE))
                raise Undone

        with pytest.raises(Undone):
            undo()
        assert house.entries() == []
        assert house.events() == []
        assert house.outbox().claim_batch() == []


class TestClaim:
    def test_is_in_flight_with_one_more_attempt_and_a_lease(self, house: House, noon: ManualClock) -> None:
        """O2"""
        (claimed,) = enqueued(house, entry()).claim_batch(lease=LEASE)
        assert state(claimed) == (OutboxStatus.IN_FLIGHT, 1, NOON + LEASE, None)
        assert state(house.entry()) == state(claimed)
        assert claimed.ref == SubjectRef("crm", "crm-1")

    def test_takes_the_oldest_of_all_resolvers_first(self, house: House, noon: ManualClock) -> None:
        """O2: by the moment of the enqueue, then by id."""
        outbox = enqueued(house, entry("mail", "1"), entry("crm", "2"))
        noon.advance(timedelta(seconds=1))
        enqueued(house, entry("crm", "3"))
        expected = [each.entry_id for each in house.entries()]
        claimed = [each.entry_id for _ in range(3) for each in outbox.claim_batch(1)]
        assert expected == claimed
        assert expected[:2] == sorted(expected[:2])

    def test_keeps_a_total_order_among_retries_of_the_same_moment(
        self, house: House, noon: ManualClock
    ) -> None:
        """O17: whatever the order in which they failed."""
        outbox = enqueued(house, *(entry(subject=str(number)) for number in range(12)))
        for each in sorted(outbox.claim_batch(), key=lambda each: each.entry_id.int % 97):
            outbox.mark_failed(each, error="ConnectionError", next_attempt_at=NOON + STEP)
        noon.advance(STEP)
        expected = sorted(each.entry_id for each in house.entries())
        assert expected == [each.entry_id for _ in range(12) for each in outbox.claim_batch(1)]

    def test_keeps_a_total_order_among_those_lost_in_one_crash(self, house: House, noon: ManualClock) -> None:
        """O17"""
        outbox = enqueued(house, *(entry(subject=str(number)) for number in range(6)))
        lost = [each.entry_id for each in outbox.claim_batch()]
        noon.advance(LEASE)
        assert sorted(lost) == [each.entry_id for _ in range(6) for each in outbox.claim_batch()]

    @pytest.mark.parametrize("early", [timedelta(microseconds=1), timedelta(0)])
    @pytest.mark.parametrize("mark", ["failed", "lost", "parked"])
    def test_what_is_gated_is_due_at_its_gate_and_not_before(
        self, house: House, noon: ManualClock, mark: str, early: timedelta
    ) -> None:
        """O2, O3: a backoff, a lease, a horizon. Due exactly now is due."""
        outbox = enqueued(house, entry())
        (claimed,) = outbox.claim_batch(lease=LEASE)
        if mark == "failed":
            outbox.mark_failed(claimed, error="ConnectionError", next_attempt_at=NOON + LEASE)
        if mark == "parked":
            outbox.mark_scheduled(claimed, resume_at=NOON + LEASE)
        noon.advance(LEASE - early)
        assert len(outbox.claim_batch()) == (0 if early else 1)

    @pytest.mark.parametrize("end", ["succeeded", "abandoned"])
    def test_never_takes_what_has_ended(self, house: House, noon: ManualClock, end: str) -> None:
        """O3"""
        outbox = enqueued(house, entry())
        (claimed,) = outbox.claim_batch()
        if end == "succeeded":
            outbox.mark_succeeded(claimed, on_subject_complete=nothing)
        else:
            outbox.mark_abandoned(claimed, error="ValueError")
        noon.advance(timedelta(days=400))
        assert outbox.claim_batch() == []


class TestFailure:
    def test_waits_double_from_base_to_cap_and_no_event_tells_of_them(
        self, house: House, noon: ManualClock
    ) -> None:
        """O5"""
        house.vendor("crm", Vendor(lambda _: ConnectionError("anna@people.example")))
        house.request(("crm", "c-1"))
        waits = []
        for attempt in range(1, 10):
            house.drain(max_attempts=10)
            status, attempts, gate, error = state(house.entry())
            assert (status, attempts, error) == (OutboxStatus.FAILED, attempt, "ConnectionError")
            waits.append((gate - noon()).total_seconds())
            noon.at = gate
        assert waits == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
        assert house.types() == []

    def test_abandoning_is_told_in_the_trail_before_anybody_is_told_of_it(self, house: House) -> None:
        """O5, O6: event, status and dead letter are committed when the hook runs, and no lock is held."""
        seen: list[tuple[AbandonedSignal, list[str], int]] = []

        class Pager:
            def on_abandoned(self, signal: AbandonedSignal) -> None:
                seen.append((signal, house.types(), len(house.letters())))
                runner.stop()  # what is requeued is for another run
                with house.db.begin() as session:  # waits for whoever still holds the entry
                    assert len(requeue(session, [signal.entry_id], actor="officer:1")) == 1

        house.vendor("crm", Vendor(lambda _: ResolverError("anna@people.example", code="http_400")))
        house.request(("crm", "anna@people.example"))
        runner = house.runner(on_abandoned=Pager())
        asyncio.run(runner.drain("crm"))
        ((signal, types, letters),) = seen
        assert types == ["ERASURE_STEP_FAILED", "DEAD_LETTER_OPENED"]
        assert letters == 1
        assert (signal.resolver, signal.attempts, signal.error) == ("crm", 1, "ResolverError")
        assert "anna" not in repr(signal)

    def test_a_slow_hook_holds_up_no_sibling(self, house: House) -> None:
        """O6: the pager takes until the slower sibling has been settled, which behind it it never is."""
        seen: list[bool] = []
        paged = Event()

        class Pager:
            def on_abandoned(self, signal: AbandonedSignal) -> None:
                paged.set()
                deadline = time.monotonic() + PATIENCE
                while not house.events("ERASURE_STEP_SUCCEEDED") and time.monotonic() < deadline:
                    time.sleep(0.01)
                seen.append(bool(house.events("ERASURE_STEP_SUCCEEDED")))

        class Slower(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                if ref.value == "bad":
                    raise ResolverError("no")
                await asyncio.to_thread(paged.wait, PATIENCE)
                return Erased()

        house.vendor("crm", Slower())
        house.request(("crm", "bad"), ("crm", "good"))
        house.drain(on_abandoned=Pager())
        assert seen == [True]

    def test_to_rectify_where_nobody_can_abandons_that_entry_only(self, house: House) -> None:
        """O15: and a dead letter says that the correction has to be sent again."""
        house.vendor("crm", Vendor())
        house.vendor("mail", CorrectingVendor())
        house.request(("crm", "1"), ("mail", "1"), corrections=[Correction("email", "new")])
        asyncio.run(house.runner().run_once())
        assert {each.resolver: each.status for each in house.entries()} == {
            "crm": OutboxStatus.ABANDONED,
            "mail": OutboxStatus.SUCCEEDED,
        }
        (letter,) = house.letters()
        assert (letter.error_code, letter.recommended_action) == ("cannot_rectify", "reissue")
        assert house.events("RECTIFICATION_COMPLETED") == []


class TestCompletion:
    def test_is_told_inside_the_transaction_of_the_last_success(self, house: House) -> None:
        """O7: once, and not while a sibling is parked."""
        outbox = enqueued(house, entry("crm"), entry("mail"))
        first, second = outbox.claim_batch()
        completed: list[list[OutboxStatus]] = []

        def on_complete() -> None:
            completed.append([each.status for each in house.entries()])

        outbox.mark_scheduled(first, resume_at=NOON)
        assert outbox.mark_succeeded(second, on_subject_complete=on_complete)
        assert completed == []
        assert house.types() == ["ERASURE_EXPIRY_SCHEDULED", "ERASURE_STEP_SUCCEEDED"]
        with house.db.begin() as session:
            session.connection().exec_driver_sql("UPDATE effaced_outbox SET gate = enqueued_at")
        (again,) = [each for each in outbox.claim_batch() if each.entry_id == first.entry_id]
        assert outbox.mark_succeeded(again, on_subject_complete=on_complete)
        # Another connection does not see the success yet, on which the callback can still put a veto.
        assert completed == [[OutboxStatus.IN_FLIGHT, OutboxStatus.SUCCEEDED]]
        assert house.types().count("ERASURE_COMPLETED") == 1

    def test_that_raises_undoes_the_success(self, house: House, noon: ManualClock) -> None:
        """O7: a success is never there without its completion."""
        outbox = enqueued(house, entry())
        (claimed,) = outbox.claim_batch()

        def veto() -> None:
            raise RuntimeError("not now")

        with pytest.raises(RuntimeError):
            outbox.mark_succeeded(claimed, on_subject_complete=veto)
        assert house.entry().status is OutboxStatus.IN_FLIGHT
        assert house.types() == []
        noon.advance(LEASE)
        (again,) = outbox.claim_batch()
        assert outbox.mark_succeeded(again, on_subject_complete=nothing)

    @pytest.mark.parametrize("other", ["abandoned", "scheduled", "untouched"])
    def test_does_not_look_at_the_other_operation(self, house: House, other: str) -> None:
        """O7"""
        together = new_id()
        outbox = enqueued(
            house,
            entry("crm", request_id=together),
            entry(
                "mail",
                request_id=together,
                operation=OutboxOperation.RECTIFY,
                corrections=(Correction("email", "a@b.example"),),
            ),
        )
        erase, rectify = sorted(outbox.claim_batch(), key=lambda each: each.resolver)
        if other == "abandoned":
            outbox.mark_abandoned(rectify, error="ValueError")
        if other == "scheduled":
            outbox.mark_scheduled(rectify, resume_at=NOON)
        done: list[str] = []
        outbox.mark_succeeded(erase, on_subject_complete=lambda: done.append("erase"))
        assert done == ["erase"]
        assert [each.payload["operation"] for each in house.events("ERASURE_COMPLETED")] == ["erase"]


class TestRequeue:
    def abandoned(self, house: House, number: int) -> tuple[Outbox, list[UUID]]:
        outbox = enqueued(house, *(entry(subject=str(each)) for each in range(number)))
        for claimed in outbox.claim_batch():
            outbox.mark_abandoned(claimed, error="ValueError")
        return outbox, [each.entry_id for each in outbox.list_abandoned()]

    def test_gives_each_a_fresh_start_under_its_own_id_with_an_event_of_its_own(self, house: House) -> None:
        """O9"""
        outbox, ids = self.abandoned(house, 3)
        flipped = outbox.requeue(ids[:2], actor="officer:1")
        assert [each.entry_id for each in flipped] == ids[:2]
        assert {state(each) for each in flipped} == {(OutboxStatus.PENDING, 0, None, None)}
        events = house.events("ERASURE_REQUEUED")
        assert sorted(str(each.entry_id) for each in events) == sorted(map(str, ids[:2]))
        assert {(each.payload["prior_attempts"], each.payload["prior_error"]) for each in events} == {
            (1, "ValueError")
        }
        assert [each.entry_id for each in outbox.list_abandoned()] == ids[2:]

    def test_skips_what_is_unknown_or_back_already(self, house: House) -> None:
        """O9: asking twice is fine, and says that nothing was done."""
        outbox, ids = self.abandoned(house, 1)
        assert len(outbox.requeue([new_id(), *ids, *ids])) == 1
        assert outbox.requeue(ids) == []
        assert len(house.events("ERASURE_REQUEUED")) == 1

    def test_refuses_a_rectification_before_anything_changes(self, house: House) -> None:
        """O9: also for the erasures that are named with it."""
        outbox, ids = self.abandoned(house, 1)
        enqueued(
            house, entry("mail", operation=OutboxOperation.RECTIFY, corrections=(Correction("email", "x"),))
        )
        (claimed,) = outbox.claim_batch()
        outbox.mark_abandoned(claimed, error="ValueError")
        before = house.types()
        with pytest.raises(ConfigurationError, match=str(claimed.entry_id)):
            outbox.requeue([*ids, claimed.entry_id])
        assert {each.status for each in house.entries()} == {OutboxStatus.ABANDONED}
        assert house.types() == before

    def test_needs_an_audit_sink(self, house: House) -> None:
        """O15"""
        _, ids = self.abandoned(house, 1)
        with pytest.raises(ConfigurationError, match="audit_sink"):
            Outbox(house.db.sessions, keyring=KEYRING).requeue(ids)
        assert house.entry().status is OutboxStatus.ABANDONED

    def test_does_nothing_when_the_sink_is_down(self, house: House) -> None:
        """O9: the event comes first."""
        _, ids = self.abandoned(house, 1)

        class Down:
            def append(self, session: Session, records: object) -> None:
                raise ConnectionError

        with pytest.raises(ConnectionError):
            Outbox(house.db.sessions, keyring=KEYRING, audit_sink=Down()).requeue(ids)
        assert house.entry().status is OutboxStatus.ABANDONED


class TestScheduled:
    def test_is_parked_with_its_attempts_back_and_an_event(self, house: House, noon: ManualClock) -> None:
        """O10"""
        outbox = enqueued(house, entry())
        for _ in range(2):
            (claimed,) = outbox.claim_batch()
            outbox.mark_failed(claimed, error="ConnectionError", next_attempt_at=NOON)
        (claimed,) = outbox.claim_batch()
        outbox.mark_scheduled(claimed, resume_at=NOON + timedelta(days=3))
        assert state(house.entry()) == (OutboxStatus.SCHEDULED, 0, NOON + timedelta(days=3), None)
        (event,) = house.events("ERASURE_EXPIRY_SCHEDULED")
        assert event.payload["prior_attempts"] == 3

    def test_with_a_horizon_that_has_passed_waits_one_step(self, house: House, noon: ManualClock) -> None:
        """O10"""
        outbox = enqueued(house, entry())
        (claimed,) = outbox.claim_batch()
        outbox.mark_scheduled(claimed, resume_at=NOON - timedelta(days=3))
        assert house.entry().gate == NOON + STEP


def test_a_resolver_without_a_read_back_is_not_asked_for_one(house: House) -> None:
    """O11"""
    house.vendor("crm", Vendor())
    house.request(("crm", "c-1"))
    house.drain()
    assert house.types() == ["ERASURE_STEP_SUCCEEDED", "ERASURE_COMPLETED"]
    assert house.entry().verification is None


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if not statement.startswith("BEGIN"):
            seen.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    yield seen
    event.remove(database.engine, "before_cursor_execute", note)


class TestLooking:
    def test_counts_have_every_status_and_cost_one_statement(self, house: House) -> None:
        """O12"""
        outbox = enqueued(house, *(entry(subject=str(number)) for number in range(4)))
        claimed = outbox.claim_batch(3)
        outbox.mark_abandoned(claimed[0], error="ValueError")
        outbox.mark_scheduled(claimed[1], resume_at=NOON)
        with statements(house.db) as seen:
            counts = outbox.status_counts()
        assert counts == dict.fromkeys(OutboxStatus, 1) | {
            OutboxStatus.SUCCEEDED: 0,
            OutboxStatus.FAILED: 0,
        }
        assert len(seen) == 1
        assert "GROUP BY" in seen[0]

    def test_abandoned_ones_are_listed_from_the_oldest(self, house: House, noon: ManualClock) -> None:
        """O13"""
        for number in range(3):
            enqueued(house, entry(subject=str(number)), entry(subject=f"{number} too"))
            noon.advance(timedelta(seconds=1))
        outbox = house.outbox()
        for each in reversed(outbox.claim_batch()):
            outbox.mark_abandoned(each, error="ValueError")
        listed = outbox.list_abandoned()
        assert [(each.enqueued_at, each.entry_id) for each in listed] == sorted(
            (each.enqueued_at, each.entry_id) for each in house.entries()
        )
        assert list(listed[:2]) == list(outbox.list_abandoned(limit=2))

    def test_parked_ones_are_listed_by_the_nearest_horizon(self, house: House, noon: ManualClock) -> None:
        """O13"""
        outbox = enqueued(house, *(entry(subject=str(number)) for number in range(6)))
        for number, each in enumerate(outbox.claim_batch()):
            outbox.mark_scheduled(each, resume_at=NOON + timedelta(days=3 - number // 2))
        listed = outbox.list_scheduled()
        assert len(listed) == 6
        assert [(each.next_attempt_at, each.entry_id) for each in listed] == sorted(
            (each.gate, each.entry_id) for each in house.entries()
        )


class TestLateWord:
    """O17: it is refused, whatever has become of the entry meanwhile."""

    @pytest.mark.parametrize("meanwhile", ["parked", "requeued", "completed", "failed", "claimed again"])
    def test_changes_nothing_and_says_so(self, house: House, noon: ManualClock, meanwhile: str) -> None:
        outbox = enqueued(house, entry())
        (late,) = outbox.claim_batch()
        noon.advance(LEASE)
        (other,) = outbox.claim_batch()
        match meanwhile:
            case "parked":
                outbox.mark_scheduled(other, resume_at=NOON)
            case "requeued":
                outbox.mark_abandoned(other, error="ValueError")
                outbox.requeue([other.entry_id])
            case "completed":
                outbox.mark_succeeded(other, on_subject_complete=nothing)
            case "failed":
                outbox.mark_failed(other, error="ValueError", next_attempt_at=NOON)
        before = state(house.entry()), house.entry().token, house.types(), len(house.letters())
        assert [
            outbox.mark_succeeded(late, on_subject_complete=nothing),
            outbox.mark_failed(late, error="LateError", next_attempt_at=NOON),
            outbox.mark_abandoned(late, error="LateError"),
            outbox.mark_scheduled(late, resume_at=NOON),
        ] == [False] * 4
        assert before == (state(house.entry()), house.entry().token, house.types(), len(house.letters()))


def test_one_connection_is_enough(house: House) -> None:
    """O17: nothing waits for a second connection while it holds the first."""
    url = house.db.engine.url
    engine = create_engine(url, pool_size=1, max_overflow=0, pool_timeout=20)
    vendor = house.vendor("crm", Vendor(lambda ref: ResolverError("no") if ref == "bad" else ANSWER))
    house.vendor("mail", Vendor())
    request_id = house.request(("crm", "1"), ("crm", "bad"), ("mail", "1"))
    outbox = Outbox(sessionmaker(engine, expire_on_commit=False), keyring=KEYRING, audit_sink=TRAIL)
    runner = SagaRunner(house.registry, outbox, on_operations_complete=complete_operations)
    asyncio.run(runner.run_once())
    vendor.answer = lambda _: ANSWER
    assert len(outbox.requeue([each.entry_id for each in outbox.list_abandoned()])) == 1
    asyncio.run(runner.run_once())
    engine.dispose()
    assert house.status(request_id) is RequestStatus.COMPLETED


@pytest.mark.parametrize(
    "name",
    [
        "resolvers.registry.ResolverRegistry",
        "resolvers.protocols.Resolver",
        "resolvers.protocols.RectifyingResolver",
        "resolvers.protocols.RetentionOnlyResolver",
        "resolvers.protocols.VerifyingResolver",
        "audit.sink.AuditSink",
        "core.errors.ConfigurationError",
        "core.errors.ResolverError",
        "model.SubjectRef",
        "model.Correction",
        "model.OutboxOperation",
        "model.OutboxStatus",
        "retries.policy.BackoffPolicy",
        "saga.facade.Outbox",
        "saga.facade.OutboxEntry",
        "saga.facade.StatusCountsSource",
        "saga.facade.SqlStatusCountsSource",
        "saga.runner.SagaRunner",
        "saga.abandoned_hook.AbandonedHook",
        "saga.abandoned_hook.AbandonedSignal",
    ],
)
def test_is_there_by_its_name(name: str) -> None:
    """O16"""
    module, _, wanted = name.rpartition(".")
    assert isinstance(getattr(importlib.import_module(f"effaced.{module}"), wanted), type)
