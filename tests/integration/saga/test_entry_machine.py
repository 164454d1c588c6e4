"""An entry's life as a state machine, against runners that die, come late, and people who step in.

Hypothesis makes up histories; a model in Python says what has to come of each. What a late runner says is
tried with every claim that was ever made, so that an old token never counts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from quick_database import open_quickly
from saga_cast import KEYRING, NOON
from sqlalchemy import select

from effaced.audit.sink import DatabaseAuditSink
from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.core.db import Database
from effaced.core.errors import ConfigurationError, Conflict, ResolverError
from effaced.deadletters.record import record_recoveries
from effaced.deadletters.replay import acquire_by_person
from effaced.deadletters.rules import SUPERSEDED
from effaced.deadletters.tables import DeadLetter
from effaced.model import (
    AttemptOutcome,
    Correction,
    DeadLetterDomain,
    DeadLetterStatus,
    OutboxOperation,
    OutboxStatus,
    SubjectRef,
)
from effaced.outbox.enqueue import Call, enqueue
from effaced.outbox.entry import COLUMNS, as_entry
from effaced.outbox.flow import pause, resume
from effaced.outbox.requeue import requeue
from effaced.outbox.supersede import supersede_corrections
from effaced.outbox.tables import Operation, OutboxRow, outbox
from effaced.requests.complete import complete_operations
from effaced.resolvers.protocols import AwaitsPerson, CredentialsRefused, Erased, Rectified, Scheduled
from effaced.retries.policy import BackoffPolicy, RetryPolicy
from effaced.retries.tables import Attempt
from effaced.saga.answers import read_error
from effaced.saga.decide import decide
from effaced.saga.facade import Outbox, OutboxEntry
from effaced.saga.result import Result, Rules
from effaced.saga.settle import settle
from effaced.triage.attest import attest

EXAMPLES = int(os.environ.get("EFFACED_EXAMPLES", "150")) // 10
BACKOFF = BackoffPolicy()
# Without an end to its age: the machine's clock runs as far as it likes.
RULES = Rules(RetryPolicy.model_construct(max_attempts=3, timeout=timedelta(days=10_000).total_seconds()))
LEASE = BACKOFF.lease
ANNA = KEYRING.subject_key("anna")
PENDING, IN_FLIGHT, FAILED, SCHEDULED, SUCCEEDED, ABANDONED = (
    OutboxStatus.PENDING,
    OutboxStatus.IN_FLIGHT,
    OutboxStatus.FAILED,
    OutboxStatus.SCHEDULED,
    OutboxStatus.SUCCEEDED,
    OutboxStatus.ABANDONED,
)
STEP, FOR_EVER = BACKOFF.base_delay, NOON + timedelta(days=100_000)
WAIT = st.sampled_from([timedelta(0), timedelta(0), STEP, LEASE, timedelta(days=9)])
SAID = st.sampled_from(
    ["nothing"] * 4 + ["well", "trouble", "no", "later", "person"] * 2 + ["trouble", "401"]
)
CALLS = st.lists(st.sampled_from([("name",), ("email",), ("name", "email")]), min_size=1, max_size=2)
# Counted from the latest claim: most words are in time, some are late, and a few are from long ago.
WHICH = st.one_of(st.integers(0, 1), st.integers(0, 3), st.integers(0, 40))


@dataclass
class Expected:
    """What the model says of one entry."""

    entry_id: UUID
    request_id: UUID
    operation: OutboxOperation
    enqueued_at: datetime
    fields: tuple[str, ...] = ()
    status: OutboxStatus = PENDING
    attempts: int = 0
    token: int = 0
    gate: datetime | None = None
    alone: bool = False
    crashes: int = 0
    times_parked: int = 0
    superseded: bool = False
    # Not to be compared: what it has been through.
    own_crashes: int = 0
    was_abandoned: bool = False

    @property
    def ended_well(self) -> bool:
        return self.status is SUCCEEDED or self.superseded

    @property
    def has_corrections(self) -> bool:
        return self.operation is OutboxOperation.RECTIFY and self.status not in (SUCCEEDED, ABANDONED)

    @property
    def can_be_overtaken(self) -> bool:
        return self.operation is OutboxOperation.RECTIFY and not self.ended_well

    def leave_flight(self, status: OutboxStatus, gate: datetime | None = None) -> None:
        self.status, self.gate, self.alone, self.crashes = status, gate, False, 0
        self.was_abandoned |= status is ABANDONED


class EntryLife(RuleBasedStateMachine):
    """`open_database` gives every history a database of its own."""

    open_database: Callable[[ExitStack], Database]

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.now = self.stack.enter_context(clock.pretend(NOON))
        self.db = type(self).open_database(self.stack)
        self.outbox = Outbox(self.db.sessions, keyring=KEYRING, audit_sink=DatabaseAuditSink())
        self.entries: dict[UUID, Expected] = {}
        self.claims: list[OutboxEntry] = []
        self.paused_until = NOON
        self.settled = 0
        self.number = 0

    def teardown(self) -> None:
        self.stack.close()

    # --- work comes in ---

    def _enqueue(self, operation: OutboxOperation, calls: list[tuple[str, ...]]) -> None:
        request_id = UUID(int=self._next())
        made = [
            Call(
                "crm",
                SubjectRef("crm", "c-1"),
                tuple(Correction(each, f"new {each}") for each in names),
                entry_id=UUID(int=self._next()),
            )
            for names in calls
        ]
        with self.db.begin() as session:
            enqueue(session, KEYRING, request_id, ANNA, made, operation=operation)
        for call, names in zip(made, calls, strict=True):
            self.entries[call.entry_id] = Expected(
                call.entry_id, request_id, operation, self.now(), fields=names
            )

    def _next(self) -> int:
        self.number += 1
        return self.number

    @initialize(erasures=st.integers(1, 3), fields=CALLS)
    def both(self, erasures: int, fields: list[tuple[str, ...]]) -> None:
        self._enqueue(OutboxOperation.ERASE, [()] * erasures)
        self._enqueue(OutboxOperation.RECTIFY, fields)

    @precondition(lambda self: len(self.entries) < 8)
    @rule(calls=st.one_of(CALLS, st.just([()])))
    def another_request(self, calls: list[tuple[str, ...]]) -> None:
        self._enqueue(OutboxOperation.RECTIFY if calls[0] else OutboxOperation.ERASE, calls)

    # --- runners claim, and may never be heard of again ---

    @rule(after=WAIT, limit=st.integers(1, 3), fates=st.lists(SAID, min_size=3, max_size=3))
    def work(self, after: timedelta, limit: int, fates: list[str]) -> None:
        """A runner takes what is due. Some of it comes back at once, and of some nothing is heard."""
        self.now.advance(after)
        expected = self._expect_claim(limit)
        claimed = self.outbox.claim_batch(limit, lease=LEASE)
        assert [each.entry_id for each in claimed] == [each.entry_id for each in expected]
        for each in claimed:
            if each.operation is OutboxOperation.RECTIFY:
                assert tuple(c.column for c in each.corrections) == self.entries[each.entry_id].fields
        self.claims += claimed
        for claim, said in zip(claimed, fates, strict=False):
            if said != "nothing":
                self._answer(claim, said)

    def _expect_claim(self, limit: int) -> list[Expected]:
        now = self.now()
        if now < self.paused_until:
            return []
        if lost := [e for e in self._in(IN_FLIGHT) if e.gate is not None and e.gate <= now]:
            first = min(lost, key=lambda e: (e.gate, e.entry_id))
            # Lost alone it has itself to blame; lost beside others it gets the attempt back.
            first.crashes += first.alone
            first.own_crashes += first.alone
            first.attempts += first.alone
            event(f"lost, {'alone' if first.alone else 'with others'}")
            first.alone = True
            taken = [first]
        else:
            waiting = self._in(PENDING, FAILED, SCHEDULED)
            fresh = [e for e in waiting if e.gate is None]
            gated = [e for e in waiting if e.gate is not None and e.gate <= now]
            fresh.sort(key=lambda e: (e.enqueued_at, e.entry_id))
            gated.sort(key=lambda e: (e.gate, e.entry_id))
            both = fresh[:limit] + gated[:limit]
            taken = sorted(both, key=lambda e: (e.enqueued_at, e.entry_id))[:limit]
            for each in taken:
                each.attempts += 1
                each.alone = False
        for each in taken:
            each.status, each.gate, each.token = IN_FLIGHT, now + LEASE, each.token + 1
        return taken

    def _in(self, *statuses: OutboxStatus) -> list[Expected]:
        return [each for each in self.entries.values() if each.status in statuses]

    # --- calls come back, some of them late ---

    @precondition(lambda self: self.claims)
    @rule(which=WHICH, said=SAID.filter(lambda said: said != "nothing"))
    def comes_back(self, which: int, said: str) -> None:
        """One of all claims ever made; what it says counts only if the entry is still its own."""
        self._answer(self.claims[-1 - which % len(self.claims)], said)

    def _answer(self, claim: OutboxEntry, said: str) -> None:
        each = self.entries[claim.entry_id]
        rectify = each.operation is OutboxOperation.RECTIFY
        counts = each.status is IN_FLIGHT and each.token == claim.token
        event(f"{said}, {'in time' if counts else 'late'}")
        now, soon = self.now(), self.now() + timedelta(days=4)
        answers: dict[str, Any] = {
            "well": Rectified() if rectify else Erased(),
            "trouble": ConnectionError("c-1"),
            "no": ResolverError("c-1", code="http_400"),
            "later": Scheduled(soon),
            "person": AwaitsPerson(soon),
            "401": CredentialsRefused("c-1", status_code=401),
        }
        before = None if counts else self._everything()
        assert self._settle(claim, answers[said]) == counts
        if not counts:
            assert before == self._everything(), "a late word has changed something"
            return
        self.settled += 1
        match said:
            case "well":
                each.leave_flight(SUCCEEDED)
            case "trouble" if each.attempts < RULES.policy.max_attempts:
                each.leave_flight(FAILED, now + BACKOFF.delay(each.attempts))
            case "later" if not rectify:
                each.leave_flight(SCHEDULED, soon)
                each.attempts, each.times_parked = 0, each.times_parked + 1
            case "person" if not each.times_parked:
                each.leave_flight(SCHEDULED, soon)
                each.attempts, each.times_parked = 0, 1
            case "401":
                each.leave_flight(PENDING)
                each.attempts -= 1
                if now >= self.paused_until:
                    self.paused_until = FOR_EVER
            case _:
                each.leave_flight(ABANDONED)

    def _settle(self, claim: OutboxEntry, said: Any) -> bool:
        with self.db.begin() as session:
            row = session.execute(select(*COLUMNS).where(outbox.c.entry_id == claim.entry_id)).one()
            entry = as_entry(row)._replace(token=claim.token)
            result = (
                Result(entry, failure=read_error(said))
                if isinstance(said, Exception)
                else Result(entry, said)
            )
            return bool(settle(session, [decide(result, RULES, self.now())], complete_operations))

    # --- people step in ---

    @rule(for_now=st.booleans(), ended=st.booleans())
    def pause_or_resume(self, for_now: bool, ended: bool) -> None:
        now, held = self.now(), self.now() < self.paused_until
        with self.db.begin() as session:
            if ended or held:
                assert resume(session, "crm", actor="officer:1") == held
                self.paused_until = NOON
            else:
                until = now + STEP if for_now else None
                assert pause(session, "crm", actor="officer:1", until=until)
                self.paused_until = until or FOR_EVER

    @precondition(lambda self: self._in(ABANDONED))
    @rule(by_letter=st.booleans(), which=st.integers(0, 7), erasures_only=st.booleans())
    def requeue(self, by_letter: bool, which: int, erasures_only: bool) -> None:
        """One that is abandoned, or everything there is: what is not abandoned is skipped."""
        abandoned = self._in(ABANDONED)
        chosen = [abandoned[which]] if which < len(abandoned) else list(self.entries.values())
        if erasures_only:
            chosen = [each for each in chosen if each.operation is OutboxOperation.ERASE]
        wanted = [each for each in chosen if each.status is ABANDONED]
        ids = [each.entry_id for each in chosen]
        if any(each.operation is OutboxOperation.RECTIFY for each in wanted):
            before = self._everything()
            with pytest.raises(ConfigurationError):
                self.outbox.requeue(ids)
            assert before == self._everything()
            return
        if by_letter:
            with self.db.begin() as session:
                letters = session.scalars(select(DeadLetter.id).where(DeadLetter.entry_id.in_(ids))).all()
                acquire_by_person(session, letters, force=True)
                flipped = {each.entry_id for each in requeue(session, ids, actor="officer:1")}
        else:
            flipped = {each.entry_id for each in self.outbox.requeue(ids)}
        assert flipped == {each.entry_id for each in wanted}
        for each in wanted:
            event("requeued")
            each.status, each.attempts, each.gate, each.times_parked = PENDING, 0, None, 0

    @precondition(lambda self: self._in(ABANDONED, SCHEDULED))
    @rule(which=st.integers(0, 7), anybody=st.booleans())
    def attest(self, which: int, anybody: bool) -> None:
        among = list(self.entries.values()) if anybody else self._in(ABANDONED, SCHEDULED)
        chosen = among[which % len(among)]
        before = self._everything()
        try:
            with self.db.begin() as session:
                attest(session, KEYRING, chosen.entry_id, actor="officer:1", reason="by hand")
        except Conflict:
            assert chosen.status not in (ABANDONED, SCHEDULED) or chosen.superseded
            assert before == self._everything()
            return
        assert chosen.status in (ABANDONED, SCHEDULED)
        assert not chosen.superseded
        event(f"attested, {chosen.status}")
        chosen.status, chosen.gate, chosen.token = SUCCEEDED, None, chosen.token + 1

    @precondition(lambda self: self.claims and any(each.can_be_overtaken for each in self.entries.values()))
    @rule(fields=st.sampled_from([None, {"name"}, {"email"}]))
    def overtake(self, fields: set[str] | None) -> None:
        """An erasure overtakes all corrections that were not made, a correction those of its fields."""
        by = UUID(int=self._next())
        with self.db.begin() as session:
            overtaken = supersede_corrections(session, KEYRING, [ANNA], by=by, fields=fields)
            complete_operations(session, overtaken.completed)
            domains = (DeadLetterDomain.EXTERNAL_CALL, DeadLetterDomain.ATTESTATION)
            ids = [each.entry_id for each in overtaken.entries]
            record_recoveries(session, domains, ids, resolution=SUPERSEDED)
        for each in self.entries.values():
            if not each.can_be_overtaken:
                continue
            left = () if fields is None else tuple(name for name in each.fields if name not in fields)
            if left:
                each.fields = left
                continue
            event(f"overtaken, {each.status}")
            before = each.was_abandoned
            each.leave_flight(ABANDONED)
            each.superseded, each.token, each.was_abandoned = True, each.token + 1, before

    # --- what holds at every moment ---

    def _everything(self) -> list[Any]:
        with self.db.read() as session:
            return [
                sorted(map(tuple, session.execute(select(*COLUMNS))), key=lambda row: row[0]),
                session.execute(select(Operation.request_id, Operation.operation, Operation.remaining)).all(),
                session.execute(select(AuditEvent.id).order_by(AuditEvent.id)).all(),
                session.execute(select(Attempt.id)).all(),
                session.execute(select(DeadLetter.id, DeadLetter.status, DeadLetter.retry_count)).all(),
            ]

    @invariant()
    def all_is_as_the_model_says(self) -> None:
        with self.db.read() as session:
            rows = {row.entry_id: row for row in session.scalars(select(OutboxRow))}
            counters = {row.request_id: row.remaining for row in session.scalars(select(Operation))}
            events = session.execute(
                select(AuditEvent.request_id, AuditEvent.entry_id, AuditEvent.type)
            ).all()
            attempts = session.execute(select(Attempt.entry_id, Attempt.outcome)).all()
            letters = session.scalars(select(DeadLetter)).all()
        assert rows.keys() == self.entries.keys()
        for entry_id, each in self.entries.items():
            row = rows[entry_id]
            assert (row.status, row.attempts, row.token, row.gate) == (
                each.status,
                each.attempts,
                each.token,
                each.gate,
            )
            assert (row.crashes, row.claimed_alone, row.times_parked) == (
                each.crashes if each.status is not SUCCEEDED else row.crashes,
                each.alone,
                each.times_parked,
            )
            assert 0 <= each.attempts <= RULES.policy.max_attempts + each.own_crashes
            self._check_what_is_personal(row, each)
            self._check_letters([letter for letter in letters if letter.entry_id == entry_id], each)
            successes = [
                outcome for of, outcome in attempts if (of, outcome) == (entry_id, AttemptOutcome.SUCCESS)
            ]
            attested = [1 for _, of, kind in events if (of, kind) == (entry_id, "STEP_ATTESTED")]
            assert len(successes) + len(attested) == (each.status is SUCCEEDED)
        assert len(attempts) == self.settled
        self._check_completions(counters, [(request, kind) for request, _, kind in events])

    def _check_what_is_personal(self, row: OutboxRow, each: Expected) -> None:
        assert (row.corrections_sealed is not None) == each.has_corrections
        assert (row.ref_sealed is None) == each.ended_well
        assert row.ended_at is None or each.status in (SUCCEEDED, ABANDONED)

    def _check_letters(self, letters: list[DeadLetter], each: Expected) -> None:
        """One for every call that was ever given up; none for being overtaken. Open until all is well."""
        assert len(letters) == each.was_abandoned
        for letter in letters:
            if each.status is ABANDONED and not each.superseded:
                assert letter.status in (DeadLetterStatus.PENDING, DeadLetterStatus.REQUIRES_REVIEW)
            assert (letter.status is DeadLetterStatus.RESOLVED) == each.ended_well

    def _check_completions(self, counters: dict[UUID, int], events: list[tuple[UUID | None, str]]) -> None:
        for request_id, remaining in counters.items():
            mine = [each for each in self.entries.values() if each.request_id == request_id]
            assert remaining == sum(not each.ended_well for each in mine)
            told = [kind for of, kind in events if of == request_id and kind.endswith("_COMPLETED")]
            assert len(told) == (remaining == 0)


@pytest.mark.property
@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_every_history_ends_where_the_model_does(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    if engine == "sqlite":
        template = request.getfixturevalue("migrated_sqlite_template")

        def open_database(stack: ExitStack) -> Database:
            path = tmp_path / f"{os.urandom(6).hex()}.db"
            shutil.copyfile(template, path)
            database = open_quickly(f"sqlite:///{path}")
            stack.callback(path.unlink)
            stack.callback(database.dispose)
            return database
    else:
        admin = request.getfixturevalue("postgres_admin")
        template = request.getfixturevalue("migrated_postgres_template")

        def open_database(stack: ExitStack) -> Database:
            url = admin.create(template=template)
            database = open_quickly(url)
            stack.callback(admin.drop, url)
            stack.callback(database.dispose)
            return database

    machine = type("Life", (EntryLife,), {"open_database": staticmethod(open_database)})
    # Without a module there is no source for hypothesis to parse: CPython 3.11 breaks off a parse during
    # which the garbage collector runs a finaliser that formats a traceback (gh-106905).
    machine.__module__ = "generated"
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=max(EXAMPLES if engine == "sqlite" else EXAMPLES // 3, 1),
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
