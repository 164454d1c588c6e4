"""Ending retentions, transaction by transaction, and keeping the register of them up to date."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.orm import Session

from effaced.audit.append import SYSTEM, append_one
from effaced.audit.events import RetentionFailed
from effaced.audit.notes import NoteRef, write_note
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.db import Database, dbtime
from effaced.core.db.transactions import BATCH_ROWS
from effaced.core.errors import EffacedError, Refused
from effaced.core.log import get_logger
from effaced.datamap.plan.retention import RetentionPlan, current_retention
from effaced.requests.retention import open_retentions_of, reassess
from effaced.requests.tables import Request, Retention, RetentionEnding
from effaced.retention.end import (
    Instruction,
    TableResult,
    count_remaining_rows,
    end_retentions,
    hand_over,
    stop_ending,
)

_log = get_logger(__name__)
_AT_ONCE = 200
# Dates may be filled in, rows may go by the company's own hand: so often everything is looked at again.
_UNDATED_EVERY = timedelta(days=1)
_ALL_EVERY = timedelta(days=30)
# What could not be erased is not tried at every sweep.
_TRIED_EVERY = timedelta(hours=1)
_SOON = timedelta(minutes=1)

ReportProgress = Callable[[UUID, int, int], None]
"""Of a request whose end is more than one transaction: how many rows are done, of how many."""


@dataclass(frozen=True, slots=True)
class RequestResult:
    """What was done for one request, and the error if it failed. If not finished, the scheduler continues."""

    request_id: UUID
    done: tuple[TableResult, ...] = ()
    error: str | None = None
    finished: bool = True

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.done)


@dataclass(slots=True)
class RetentionEnder:
    """Ends retentions by the plan in force, no transaction changing more rows than `batch_rows`.

    The plan is made anew when the schema has changed.
    """

    database: Database
    keyring: Keyring
    plan: RetentionPlan
    batch_rows: int = BATCH_ROWS

    def end_requests(
        self,
        request_ids: Iterable[UUID],
        *,
        actor: str,
        reason: str | None,
        until: float | None = None,
        on_progress: ReportProgress | None = None,
    ) -> Iterator[RequestResult]:
        """Erase what has come due of these requests, one after the other.

        What fails is undone, and holds no other request up. What is not done `until` then, by the monotonic
        clock, the scheduler does. A person gives a reason; without one nothing happens.
        """
        for request_id in request_ids:
            yield self._end(_EndingTask(request_id, actor, reason), until, on_progress)

    def end_due(self, *, on_schedule: bool, until: float | None = None) -> int:
        """Continue what people have begun and, on schedule, erase what has come due; the rows changed."""
        rows = 0
        while tasks := self._tasks(on_schedule=on_schedule):
            for task in tasks:
                if not _in_time(until):
                    return rows
                rows += self._end(task, until, _log_progress).rows
        return rows

    def _tasks(self, *, on_schedule: bool) -> list[_EndingTask]:
        begun = select(RetentionEnding).where(RetentionEnding.go_on_at <= dbtime.NOW)
        with self.database.read() as session:
            found = session.scalars(
                begun.order_by(RetentionEnding.go_on_at).limit(_AT_ONCE), dbtime.from_now(session)
            ).all()
            tasks = [_EndingTask(each.request_id, each.actor, note=_note_of(each)) for each in found]
            if tasks or not on_schedule:
                return tasks
            untried = and_(
                Retention.looked_at < clock.now() - _TRIED_EVERY,
                Retention.request_id.not_in(select(RetentionEnding.request_id)),
            )
            return [_EndingTask(each) for each in due_requests(session, self.plan, untried, limit=_AT_ONCE)]

    def _end(
        self, task: _EndingTask, until: float | None, on_progress: ReportProgress | None
    ) -> RequestResult:
        try:
            return self._end_in_parts(task, until, on_progress)
        except Refused:
            raise
        except KeyboardInterrupt:
            # Whoever stops it wants nobody else to go on.
            with self.database.begin() as session:
                stop_ending(session, task.request_id)
            raise
        except Exception as error:
            name = type(error).__name__
            _log.error("retention_failed", request=str(task.request_id), error=name)
            with self.database.begin() as session:
                _record_failure(session, self.plan, task.request_id, error)
            message = error.message if isinstance(error, EffacedError) else f"It failed ({name})."
            return task.result(error=message)

    def _end_in_parts(
        self, task: _EndingTask, until: float | None, on_progress: ReportProgress | None
    ) -> RequestResult:
        left = 0
        while True:
            in_time = _in_time(until)
            with self.database.begin() as session:
                self.plan = current_retention(session, self.plan)
                part = end_retentions(
                    session,
                    self.keyring,
                    self.plan,
                    task.request_id,
                    by=Instruction(task.actor, task.write_note(session, self.keyring)),
                    at_most=self.batch_rows if in_time else 0,
                    left=left,
                )
                if not part.finished and not in_time:
                    hand_over(session, task.request_id)
            task.add(part.done)
            if part.finished or not in_time:
                return task.result(finished=part.finished)
            left = 0
            if not part.of:
                with self.database.read() as session:
                    left = count_remaining_rows(session, self.keyring, self.plan, task.request_id)
            if on_progress:
                on_progress(task.request_id, part.rows, part.of or part.rows + left)


@dataclass(slots=True)
class _EndingTask:
    """A request whose due rows are to be erased: by whom, why, and what has been done so far."""

    request_id: UUID
    actor: str = SYSTEM
    reason: str | None = None
    note: NoteRef | None = None
    done: dict[str, TableResult] = field(default_factory=dict)

    def write_note(self, session: Session, keyring: Keyring) -> NoteRef | None:
        if self.reason is not None and self.note is None:
            about = self.request_id
            self.note = write_note(session, keyring, self.reason, author=self.actor, request_id=about)
        return self.note

    def add(self, done: Iterable[TableResult]) -> None:
        for each in done:
            before = self.done.get(each.table, TableResult(each.table, 0, 0))
            both = before.deleted + each.deleted, before.changed + each.changed
            self.done[each.table] = TableResult(each.table, *both)

    def result(self, *, error: str | None = None, finished: bool = True) -> RequestResult:
        return RequestResult(self.request_id, tuple(self.done.values()), error, finished)


def is_due(today: date) -> ColumnElement[bool]:
    """The condition for what has come due, on every page and in every list."""
    return and_(Retention.closed_at.is_(None), Retention.first_due <= today)


def due_requests(
    session: Session, plan: RetentionPlan, *conditions: ColumnElement[bool], limit: int | None = None
) -> list[UUID]:
    """The requests with something due, the longest due first."""
    query = select(Retention.request_id).where(is_due(plan.today), *conditions)
    rows = session.execute(query.order_by(Retention.first_due, Retention.id).limit(limit))
    return list(dict.fromkeys(row.request_id for row in rows))


def iterate_due_requests(database: Database, plan: RetentionPlan) -> Iterator[UUID]:
    """All requests with something due, a page at a time; end each before taking the next."""
    begun = clock.now()
    while True:
        with database.read() as session:
            batch = due_requests(session, plan, Retention.looked_at < begun, limit=_AT_ONCE)
        if not batch:
            return
        yield from batch


def count_due_requests(session: Session, plan: RetentionPlan) -> int:
    query = select(func.count(Retention.request_id.distinct())).where(is_due(plan.today))
    return session.scalar(query) or 0


def reassess_stale(database: Database, keyring: Keyring, plan: RetentionPlan) -> int:
    """Reassess some retentions that may have changed with map or data; of how many requests."""
    with database.read() as session:
        query = select(Retention.request_id, Retention.looked_at).where(
            Retention.closed_at.is_(None), _stale(plan)
        )
        rows = session.execute(query.order_by(Retention.looked_at).limit(_AT_ONCE))
        ids = list(dict.fromkeys(row.request_id for row in rows))
    seen = 0
    for request_id in ids:
        try:
            with database.begin() as session:
                request = session.get_one(Request, request_id)
                # Those that somebody is just ending are theirs to bring up to date.
                free = open_retentions_of(session, request_id, skip_locked=True)
                reassess(session, keyring, plan, request, free)
            seen += 1
        except Exception as error:
            _log.error("retention_look_failed", request=str(request_id), error=type(error).__name__)
            with database.begin() as session:
                _mark_looked_at(open_retentions_of(session, request_id))
    return seen


def _stale(plan: RetentionPlan) -> ColumnElement[bool]:
    now = clock.now()
    yesterday = Retention.looked_at < now - _UNDATED_EVERY
    return or_(
        Retention.datamap_hash != plan.data_map.hash,
        and_(or_(Retention.undated > 0, Retention.first_due <= plan.today), yesterday),
        Retention.looked_at < now - _ALL_EVERY,
    )


def _record_failure(session: Session, plan: RetentionPlan, request_id: UUID, error: Exception) -> None:
    name = type(error).__name__
    due = [
        each
        for each in open_retentions_of(session, request_id)
        if each.first_due and each.first_due <= plan.today
    ]
    _mark_looked_at(due)
    # Told once, not at every attempt.
    if any(each.error != name for each in due):
        request = session.get_one(Request, request_id)
        append_one(session, RetentionFailed(error=name), request_id=request_id, subject=request.subject)
    for each in due:
        each.error = name
    # A lock that was not given in time or a server that went away may well be fine in a moment.
    if isinstance(error, OperationalError | InterfaceError):
        hand_over(session, request_id, after=_SOON)
    else:
        stop_ending(session, request_id)


def _mark_looked_at(retentions: Sequence[Retention]) -> None:
    for each in retentions:
        each.looked_at = clock.now()


def _note_of(ending: RetentionEnding) -> NoteRef | None:
    return NoteRef(ending.note_id, ending.note_hmac) if ending.note_id and ending.note_hmac else None


def _in_time(until: float | None) -> bool:
    return until is None or clock.monotonic() < until


def _log_progress(request_id: UUID, rows: int, of: int) -> None:
    _log.info("retention_worked_off", request=str(request_id), rows=rows, of=of)
