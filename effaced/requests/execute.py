"""Execution: local changes, outbox entries and audit events in ONE transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from effaced.audit.append import SYSTEM, Record, append, append_one
from effaced.audit.events import (
    CellRetained,
    Event,
    LocalColumnCorrected,
    LocalErasureExecuted,
    LocalExecutionFailed,
    LocalRectificationExecuted,
    LocalTableErased,
    LocalTableKept,
    LocalVerified,
    TextScrubbed,
)
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.db import Database, dbtime
from effaced.core.db.pipeline import Pipeline
from effaced.core.errors import ConfigurationError, Conflict, Unavailable
from effaced.core.log import get_logger
from effaced.datamap.model.data_map import Retained
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.plan.retention import Kept, RetentionPlan, current_retention, plan_retention
from effaced.datamap.run.erase import erase_and_look
from effaced.datamap.run.rectify import rectify
from effaced.datamap.run.subject import find_subject
from effaced.datamap.schema.fingerprint import SchemaChanged
from effaced.deadletters.record import record_execution_recovery, record_failures, record_recoveries
from effaced.deadletters.rules import SUBJECT_CHANGED, SUPERSEDED, Failure
from effaced.model import (
    DeadLetterDomain,
    OutboxOperation,
    RequestKind,
    RequestStatus,
    SubjectRef,
)
from effaced.outbox.enqueue import Call, enqueue
from effaced.outbox.supersede import Superseded, supersede_corrections
from effaced.requests.batches import erase_in_batches
from effaced.requests.complete import complete_operations
from effaced.requests.correct import (
    Person,
    certain_refs,
    close_as_superseded,
    corrections_for,
    erased_since,
    lock_and_read_person,
    supersede_open_corrections,
    superseded_fields,
)
from effaced.requests.duplicates import Reached, release_unreached
from effaced.requests.identity import (
    SubjectChanged,
    confirm_row,
    is_as_corrected,
    other_requests_of,
    recorded_from,
    require_same_person,
)
from effaced.requests.retention import record_retentions
from effaced.requests.status import RequestEvent, check_transition, transition
from effaced.requests.subject import SealedSubject, open_corrections, seal_subject, unseal_subject
from effaced.requests.tables import Request
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.retries.policy import EXECUTION
from effaced.saga.settle import complete

_log = get_logger(__name__)
UTC = ZoneInfo("UTC")


class StillReachable(Conflict):
    """The statements succeeded and the data is still there, because of a trigger or a rule there."""

    def __init__(self, tables: Iterable[str]) -> None:
        self.tables = tuple(sorted(tables))
        super().__init__(f"The database kept rows that it should have changed: {', '.join(self.tables)}.")


@dataclass(frozen=True, slots=True)
class _Executed:
    """What was done in the company's database, and what is left to do in other systems."""

    operation: OutboxOperation
    events: tuple[Event, ...]
    calls: list[Call]
    overtaken: Superseded
    kept: list[Kept] = field(default_factory=list)


class Executor:
    """Carries approved requests out in the company's own database."""

    def __init__(
        self,
        database: Database | sessionmaker[Session],
        keyring: Keyring,
        plan: ErasurePlan,
        registry: ResolverRegistry,
        *,
        batch_rows: int = 20_000,
        retention: RetentionPlan | None = None,
    ) -> None:
        """`retention` is by which days what the law keeps comes due; without it, those of UTC."""
        self._db = database
        self.batch_rows = batch_rows
        self.keyring = keyring
        self._registry = registry
        self.retention = retention or plan_retention(plan, UTC)

    @property
    def plan(self) -> ErasurePlan:
        """The plan that was used last; `plan_on` sees to it that it fits."""
        return self.retention.plan

    def plan_on(self, session: Session) -> ErasurePlan:
        """The plan for the schema that this transaction meets; ConfigurationError if the map does not fit."""
        self.retention = current = current_retention(session, self.retention)
        return current.plan

    def execute_now(self, request_id: UUID) -> bool:
        """Execute one approved request in a transaction of its own; whether it is done.

        What would take long is left to `execute_due`: somebody is waiting for this.
        """
        return self._next(Request.id == request_id, waited_for=True) is True

    def execute_due(self, *, limit: int = 100, stopping: Callable[[], bool] = lambda: False) -> int:
        """Execute what is approved and due, one transaction each; how many were tried.

        Once this process is `stopping`, nothing more is begun: neither a request nor a batch of one.
        """
        for number in range(limit):
            if stopping() or self._next(stopping=stopping) is None:
                return number
        return limit

    def begin(self) -> AbstractContextManager[Session]:
        """A transaction on the database in which this executes."""
        return self._db.begin()

    def _next(
        self,
        *conditions: ColumnElement[bool],
        waited_for: bool = False,
        again: bool = False,
        stopping: Callable[[], bool] = lambda: False,
    ) -> bool | None:
        """Execute the next due request; None if there is none. `again`: by a plan that was just made."""
        due = select(Request).where(
            Request.status == RequestStatus.APPROVED, Request.execute_at <= dbtime.NOW, *conditions
        )
        tried: UUID | None = None
        plan = self.plan
        try:
            with self._db.begin() as session:
                request = session.scalars(
                    due.order_by(Request.execute_at).limit(1).with_for_update(skip_locked=True),
                    dbtime.from_now(session),
                ).first()
                if request is None:
                    return None
                tried = request.id
                done = self.carry_out(session, request, at_most=self.batch_rows)
            if done or waited_for:
                return done
            return erase_in_batches(self, tried, stopping) and self._finish(tried)
        except Exception as error:
            # Everything is rolled back. Unless the failure is recorded, this request would be the next one
            # for ever, and those behind it would never be executed.
            if tried is None:
                raise
            failure: Exception = error
            try:
                with self._db.begin() as session:
                    renewed = self.plan_on(session) is not plan
            except ConfigurationError as misfit:  # which says better what is wrong
                failure, renewed = misfit, False
            if renewed and not again:
                return (
                    self._next(Request.id == tried, waited_for=waited_for, again=True, stopping=stopping)
                    is True
                )
            with self._db.begin() as session:
                request = session.get(Request, tried, with_for_update=True)
                if request is not None and request.status is RequestStatus.APPROVED:
                    self._failed(session, request, failure)
            return False

    def _finish(self, request_id: UUID) -> bool:
        with self._db.begin() as session:
            request = session.get(Request, request_id, with_for_update=True)
            return (
                request is not None
                and request.status is RequestStatus.APPROVED
                and self.carry_out(session, request)
            )

    def carry_out(self, session: Session, request: Request, *, at_most: int | None = None) -> bool:
        """Execute within the caller's transaction; what goes wrong is the caller's to roll back.

        With `at_most`, False and nothing is changed if a table has more rows of the person than that. Four
        round trips, however many systems and rows there are: see `effaced bench erase`.
        """
        check_transition(request, RequestEvent.EXECUTED, by=SYSTEM)
        sealed = unseal_subject(self.keyring, request)
        if sealed is None:
            raise Unavailable("The request no longer has its subject.")
        retention = self.retention.named(request.subject_type)
        plan = retention.plan
        erases = request.kind is RequestKind.ERASURE
        counted = at_most if erases else None
        person = lock_and_read_person(session, self.keyring, plan, sealed.subject_id, counted, request.id)
        recorded = recorded_from(request.id, person.recorded, sealed.refs)
        require_same_person(session, self.keyring, plan, recorded, person.subject)
        if person.has_many_rows:
            return False
        if erases:
            done = self._erase(session, retention, request, sealed, person)
        else:
            if erasure := erased_since(session, plan, person.keys, request.received_at):
                close_as_superseded(session, request, erasure)
                return True
            done = self._rectify(session, plan, request, sealed, person)
        with Pipeline(session):
            append(
                session,
                [Record(each, request_id=request.id, subject=request.subject) for each in done.events],
            )
            enqueue(
                session,
                self.keyring,
                request.id,
                request.subject,
                done.calls,
                operation=done.operation,
                not_before=done.overtaken.not_before,
            )
            _mark_running(session, request, self._seal_called(request, sealed, done))
            if done.operation is OutboxOperation.ERASE:
                hashed = plan.data_map.hash
                record_retentions(
                    session, self.keyring, request, sealed.subject_id, person.keys, done.kept, hashed
                )
            record_execution_recovery(session, request.id)
        _close_overtaken(session, done.overtaken)
        if person.has_duplicates:
            called = frozenset(call.ref for call in done.calls)
            reached = Reached(person.subject, called, frozenset(each.ref for each in self._registry))
            release_unreached(session, self.keyring, plan, request, reached)
        if not done.calls:
            finished = [(request.id, done.operation)]
            complete(session, finished, {request.id: request.subject}, complete_operations)
            session.refresh(request)
        return True

    def _erase(
        self,
        session: Session,
        retention: RetentionPlan,
        request: Request,
        sealed: SealedSubject,
        person: Person,
    ) -> _Executed:
        plan, keeps = retention.plan, list(retention.keeps.values())
        # Read before the erasure, since that takes the references away. The row may have changed or gone
        # since the request came in, and a system may still know the person by the reference of that time.
        current, former = person.subject.refs if person.subject else {}, sealed.refs
        # A reference that a correction of ours has replaced may have been somebody else's. Systems that the
        # correction has not reached are called by it all the same: see `overtaken`.
        if person.subject and any(current.get(kind) != value for kind, value in former.items()):
            corrected = is_as_corrected(session, self.keyring, request.id, person.subject)
            former = {} if corrected else former
        overtaken = Superseded()
        if person.has_corrections:
            supersede_open_corrections(session, person.keys, by=request)
            overtaken = supersede_corrections(session, self.keyring, person.keys, by=request.id)
        erased = erase_and_look(session, plan, sealed.subject_id, (each.look for each in keeps))
        if erased.left:
            raise StillReachable(erased.left)
        kept = {each.table: each.kept(row) for each, row in zip(keeps, erased.answers, strict=True)}
        before = request.worked_off or {}
        calls = [
            Call(each.name, ref, after=each.after)
            for each in self._registry
            # Also under what a system may still know them by, where a correction has not got through.
            for ref in _references(overtaken.refs.get(each.name, ()), each.ref, former, current)
        ]
        called = {call.resolver for call in calls}
        event = LocalErasureExecuted(
            datamap_hash=plan.data_map.hash,
            tables=tuple(
                LocalTableErased(
                    table=effect.table,
                    action=effect.action,
                    rows=effect.rows + before.get(effect.label, [0])[0],
                )
                for effect in erased.effects
            ),
            retained=tuple(
                _retained(effect.table, cell, kept.get(effect.table))
                for effect in erased.effects
                for cell in effect.retained
            ),
            scrubbed=tuple(
                TextScrubbed(table=effect.table, column=column, rows=rows)
                for effect in erased.effects
                for column, rows in effect.scrubbed.items()
            ),
            external_calls=len(calls),
            without_reference=tuple(each.name for each in self._registry if each.name not in called),
        )
        verified = LocalVerified(tables=len(erased.effects), kept=_tables_kept(event.retained))
        return _Executed(OutboxOperation.ERASE, (event, verified), calls, overtaken, list(kept.values()))

    def _seal_called(self, request: Request, sealed: SealedSubject, done: _Executed) -> bytes | None:
        """The person with the references that an erasure calls, by which later askings are compared."""
        if done.operation is not OutboxOperation.ERASE:
            return None
        called = [call.ref for call in done.calls]
        return seal_subject(self.keyring, request.id, sealed.subject_id, sealed.refs, called)

    def _rectify(
        self, session: Session, plan: ErasurePlan, request: Request, sealed: SealedSubject, person: Person
    ) -> _Executed:
        if person.subject is None:
            raise Unavailable("The person is no longer in your database.")
        data_map, refs = plan.data_map, person.subject.refs
        corrections = open_corrections(self.keyring, request)
        others = other_requests_of(session, self.keyring, plan, person.keys, person.subject)
        effects = rectify(session, plan, sealed.subject_id, corrections)
        # What was corrected may be what those requests know the person by; it is the same row.
        if others and (corrected := find_subject(session, plan, sealed.subject_id)):
            for other in others:
                confirm_row(session, self.keyring, other, corrected, by=request.id)
        overtaken = supersede_corrections(
            session,
            self.keyring,
            person.keys,
            by=request.id,
            fields=superseded_fields(data_map, corrections),
            known_as=certain_refs(data_map, self._registry, refs, corrections),
        )
        known, carried = [each for each in self._registry if each.ref in refs], overtaken.carried
        calls = [
            Call(each.name, ref, theirs, each.after)
            for each in known
            if (theirs := (*carried.get(each.name, ()), *corrections_for(data_map, each, corrections)))
            for ref in _references_to_correct(overtaken, each, refs)
        ]
        called = {call.resolver for call in calls}
        event = LocalRectificationExecuted(
            datamap_hash=data_map.hash,
            fields=tuple(each.column for each in corrections),
            tables=tuple(
                LocalColumnCorrected(table=each.table, columns=each.columns, rows=each.rows)
                for each in effects
            ),
            external_calls=len(calls),
            without_reference=tuple(each.name for each in self._registry if each not in known),
            not_concerned=tuple(each.name for each in known if each.name not in called),
        )
        return _Executed(OutboxOperation.RECTIFY, (event,), calls, overtaken)

    def _failed(self, session: Session, request: Request, error: Exception) -> None:
        name = type(error).__name__
        _log.error("local_execution_failed", request=request.ref, error=name)
        request.execute_attempts += 1
        about = {"request_id": request.id, "subject": request.subject}
        tables = error.tables if isinstance(error, StillReachable) else ()
        failed = LocalExecutionFailed(error=name, attempts=request.execute_attempts, tables=tables)
        append_one(session, failed, **about)
        # A lock that was not given in time, a server that went away or a schema that is being changed may
        # well be fine in a moment.
        passing = isinstance(error, OperationalError | SchemaChanged)
        if passing and request.execute_attempts < EXECUTION.max_attempts:
            request.execute_at = dbtime.now(session) + EXECUTION.wait(request.execute_attempts)
            return
        request.execute_at = None
        failure = Failure(
            domain=DeadLetterDomain.LOCAL_EXECUTION,
            request_id=request.id,
            subject=request.subject,
            error=name,
            code=SUBJECT_CHANGED if isinstance(error, SubjectChanged) else "local_execution",
            attempts=request.execute_attempts,
            tables=tables,
        )
        session.flush()
        record_failures(session, [failure])


def _mark_running(session: Session, request: Request, subject_sealed: bytes | None) -> None:
    """The company's database is changed, and the external calls are recorded.

    `subject_sealed` replaces what the request knows of the person.
    """
    values: dict[str, Any] = {"executed_at": clock.now(), "execute_at": None, "corrections_sealed": None}
    if subject_sealed is not None:
        values["subject_sealed"] = subject_sealed
    transition(session, request, RequestEvent.EXECUTED, by=SYSTEM, **values)


def _references(former: Iterable[SubjectRef], kind: str, *known: Mapping[str, str]) -> list[SubjectRef]:
    """The former references and the known ones of that kind, each once."""
    of_kind = [SubjectRef(kind, refs[kind]) for refs in known if kind in refs]
    return list(dict.fromkeys([*former, *of_kind]))


def _retained(table: str, cell: Retained, kept: Kept | None) -> CellRetained:
    first = kept.by_rule.get(cell.until) if kept and cell.until else None
    return CellRetained(
        table=table,
        column=cell.column,
        basis=cell.basis,
        until=cell.until,
        first_due=first.isoformat() if first else None,
        rows=kept.rows if kept else None,
    )


def _tables_kept(retained: Iterable[CellRetained]) -> tuple[LocalTableKept, ...]:
    """The tables in which something is retained, each once; those where no row is left out."""
    tables = {each.table: each.rows for each in retained if each.rows != 0}
    return tuple(LocalTableKept(table=table, rows=rows) for table, rows in tables.items())


def _references_to_correct(
    overtaken: Superseded, each: Registered, refs: Mapping[str, str]
) -> list[SubjectRef]:
    """The references by which a system that has to correct something may know the person.

    Where an older correction has not arrived, that is the reference from before it; where nobody can tell
    whether it has, it is both. A system that can't correct is called once, and only says so.
    """
    former = overtaken.refs.get(each.name, [])
    if former and not (each.rectifies and each.name in overtaken.tried):
        return former[:1]
    return _references(former, each.ref, refs)


def _close_overtaken(session: Session, overtaken: Superseded) -> None:
    complete_operations(session, overtaken.completed)
    if overtaken.entries:
        domains = (DeadLetterDomain.EXTERNAL_CALL, DeadLetterDomain.ATTESTATION)
        ids = [each.entry_id for each in overtaken.entries]
        record_recoveries(session, domains, ids, resolution=SUPERSEDED)
