"""Execution: local changes, outbox entries and audit events in ONE transaction."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from effaced.audit.append import SYSTEM, Record, append, append_one
from effaced.audit.events import LocalExecutionFailed
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.db import Database, dbtime
from effaced.core.db.pipeline import Pipeline
from effaced.core.db.transactions import BATCH_ROWS
from effaced.core.errors import ConfigurationError, Unavailable
from effaced.core.log import get_logger
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.plan.retention import RetentionPlan, current_retention, plan_retention
from effaced.datamap.schema.fingerprint import SchemaChanged
from effaced.deadletters.record import record_execution_recovery, record_failures, record_recoveries
from effaced.deadletters.rules import SUBJECT_CHANGED, SUPERSEDED, Failure
from effaced.model import DeadLetterDomain, OutboxOperation, RequestKind, RequestStatus
from effaced.notify.write import subscriptions_to, types_of
from effaced.outbox.enqueue import enqueue
from effaced.outbox.supersede import Superseded
from effaced.requests.complete import complete_operations
from effaced.requests.correct import close_as_superseded, erased_since
from effaced.requests.duplicates import Reached, release_unreached
from effaced.requests.execution.batches import BatchedErasure
from effaced.requests.execution.change import Execution, LocalChange
from effaced.requests.execution.erase import StillReachable, erase_locally
from effaced.requests.execution.person import lock_and_read_person
from effaced.requests.execution.rectify import rectify_locally
from effaced.requests.identity import SubjectChanged, recorded_from, require_same_person
from effaced.requests.retention import record_retentions
from effaced.requests.stages import EXECUTION as EXECUTION_STAGES
from effaced.requests.stages import announce_executed
from effaced.requests.status import RequestEvent, check_transition, transition
from effaced.requests.subject import seal_subject, unseal_subject
from effaced.requests.tables import Request
from effaced.resolvers.registry import ResolverRegistry
from effaced.retries.policy import EXECUTION
from effaced.saga.settle import complete_without_calls

_log = get_logger(__name__)
UTC = ZoneInfo("UTC")


class Executor:
    """Executes approved requests in the company's own database."""

    def __init__(
        self,
        database: Database | sessionmaker[Session],
        keyring: Keyring,
        plan: ErasurePlan,
        registry: ResolverRegistry,
        *,
        batch_rows: int = BATCH_ROWS,
        retention: RetentionPlan | None = None,
    ) -> None:
        """`retention` says when retained data comes due; without it, days are those of UTC."""
        self._db = database
        self.batch_rows = batch_rows
        self.keyring = keyring
        self._registry = registry
        self.retention = retention or plan_retention(plan, UTC)

    @property
    def plan(self) -> ErasurePlan:
        """The plan that was used last. `plan_on` renews it if the schema has changed."""
        return self.retention.plan

    def plan_on(self, session: Session) -> ErasurePlan:
        """The plan for the schema that this transaction sees; ConfigurationError if the map does not fit."""
        self.retention = current = current_retention(session, self.retention)
        return current.plan

    def execute_now(self, request_id: UUID) -> bool:
        """Execute one approved request in a transaction of its own; True if that is done.

        A person with very many rows is left to `execute_due`: somebody is waiting for this call.
        """
        return self._next(Request.id == request_id, waited_for=True) is True

    def execute_due(self, *, limit: int = 100, stopping: Callable[[], bool] = lambda: False) -> int:
        """Execute what is approved and due, one transaction each. Returns how many were tried.

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
        """Execute the next due request; None if there is none. `again`: the plan was renewed just now."""
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
            batches = BatchedErasure(self._db, self.keyring, self.plan, tried, self.batch_rows)
            return batches.run(stopping) and self._finish(tried)
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
                    self._record_failure(session, request, failure)
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
        execution = self._begin(session, request, at_most)
        if execution.person.has_many_rows:
            return False
        if request.kind is RequestKind.ERASURE:
            change = erase_locally(session, self.keyring, self._registry, execution)
        elif erasure := erased_since(session, execution.plan, execution.person.keys, request.received_at):
            close_as_superseded(session, request, erasure)
            return True
        else:
            change = rectify_locally(session, self.keyring, self._registry, execution)
        wanted = self._record(session, execution, change)
        _close_superseded(session, change.superseded)
        if execution.person.has_duplicates:
            called = frozenset(call.ref for call in change.calls)
            kinds = frozenset(each.ref for each in self._registry)
            reached = Reached(execution.person.subject, called, kinds)
            release_unreached(session, self.keyring, execution.plan, request, reached)
        announce_executed(session, request, wanted, has_duplicates=execution.person.has_duplicates)
        if not change.calls:
            finished = [(request.id, change.operation)]
            complete_without_calls(session, finished, {request.id: request.subject}, complete_operations)
            session.refresh(request)
        return True

    def _begin(self, session: Session, request: Request, at_most: int | None) -> Execution:
        """Lock and read the person. Raises SubjectChanged if the row is now somebody else's."""
        sealed = unseal_subject(self.keyring, request)
        if sealed is None:
            raise Unavailable("The request no longer has its subject.")
        retention = self.retention.for_people(request.subject_type)
        person = lock_and_read_person(
            session,
            self.keyring,
            retention.plan,
            sealed.subject_id,
            request.id,
            at_most=at_most if request.kind is RequestKind.ERASURE else None,
        )
        recorded = recorded_from(request.id, person.recorded, sealed.refs)
        require_same_person(session, self.keyring, retention.plan, recorded, person.subject)
        return Execution(request, sealed, person, retention)

    def _record(self, session: Session, execution: Execution, change: LocalChange) -> set[str]:
        """Append the events, enqueue the calls and give the request its status, in one round trip.

        Returns which messages about it some target wants.
        """
        request, sealed = execution.request, execution.sealed
        erased = change.operation is OutboxOperation.ERASE
        called = None
        if erased:  # with the references that are called, by which later requests are compared
            refs = [call.ref for call in change.calls]
            called = seal_subject(self.keyring, request.id, sealed.subject_id, sealed.refs, refs)
        with Pipeline(session) as batch:
            append(
                session,
                [Record(each, request_id=request.id, subject=request.subject) for each in change.events],
            )
            enqueue(
                session,
                self.keyring,
                request.id,
                request.subject,
                change.calls,
                operation=change.operation,
                not_before=change.superseded.not_before,
            )
            _mark_running(session, request, called)
            if erased:
                record_retentions(
                    session,
                    self.keyring,
                    request,
                    sealed.subject_id,
                    execution.person.keys,
                    change.kept,
                    execution.plan.data_map.hash,
                )
            record_execution_recovery(session, request.id)
            wanted = batch.run(subscriptions_to(*EXECUTION_STAGES))
        return types_of(wanted.rows)

    def _record_failure(self, session: Session, request: Request, error: Exception) -> None:
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
    """Record that the company's database was changed. `subject_sealed` replaces what the request knows."""
    values: dict[str, Any] = {"executed_at": clock.now(), "execute_at": None, "corrections_sealed": None}
    if subject_sealed is not None:
        values["subject_sealed"] = subject_sealed
    transition(session, request, RequestEvent.EXECUTED, by=SYSTEM, **values)


def _close_superseded(session: Session, superseded: Superseded) -> None:
    complete_operations(session, superseded.completed)
    if superseded.entries:
        domains = (DeadLetterDomain.EXTERNAL_CALL, DeadLetterDomain.ATTESTATION)
        ids = [each.entry_id for each in superseded.entries]
        record_recoveries(session, domains, ids, resolution=SUPERSEDED)
