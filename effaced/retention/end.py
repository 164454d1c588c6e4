"""Ending the retentions of one person, in transactions that change no more rows than they are allowed to.

What is left to do is recorded, and the next transaction continues, whoever runs it: rows that are gone are
not found again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Delete, Update, delete, select, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.events import RetentionEnded
from effaced.audit.notes import NoteRef, note_fields
from effaced.core.crypto import Keyring
from effaced.core.db import dbtime
from effaced.core.errors import Conflict, NotFound, Refused
from effaced.datamap.compile.batches import limited_to
from effaced.datamap.model.data_map import Action
from effaced.datamap.plan.retention import TODAY, DueRows, RetentionPlan, TableRetention
from effaced.datamap.run.erase import refusal
from effaced.datamap.run.values import parameters_for_reading
from effaced.datamap.schema.fingerprint import require_schema
from effaced.requests.lock import lock_person
from effaced.requests.retention import close_retention, open_retentions_of, reassess, subject_of
from effaced.requests.tables import Request, Retention, RetentionEnding

CLOSED = "closed"
IN_USE = (
    "The person's key is in use again: the row with that key holds data that the erasure had removed."
    " Nothing is erased. If it is the same person, request another erasure."
)
_LEFT_ALONE = timedelta(minutes=5)
# Rows that point at each other in a long chain go one at a time: so many rounds make a transaction.
_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Instruction:
    """Who ends the retention, and the note with the reason if it is a person."""

    actor: str
    note: NoteRef | None = None


@dataclass(frozen=True, slots=True)
class TableResult:
    """How many rows of one table were deleted or changed."""

    table: str
    deleted: int
    changed: int

    @property
    def rows(self) -> int:
        return self.deleted + self.changed


@dataclass(frozen=True, slots=True)
class TransactionResult:
    """What one transaction did. If there is more to do: how many rows are done by now, of how many.

    `of` is 0 while nobody has counted them.
    """

    done: tuple[TableResult, ...] = ()
    finished: bool = True
    rows: int = 0
    of: int = 0


def end_retentions(
    session: Session,
    keyring: Keyring,
    plans: RetentionPlan,
    request_id: UUID,
    *,
    by: Instruction,
    at_most: int,
    left: int = 0,
) -> TransactionResult:
    """Erase what has come due of this request's person, children first, up to `at_most` rows.

    `left`, as `count_remaining_rows` returns it, is recorded so that progress can be shown. Conflict if
    somebody has the person's key again, or if the database refuses or keeps what it should change: the
    caller must roll back.
    """
    request = session.get_one(Request, request_id)
    retentions = open_retentions_of(session, request_id)
    if not retentions:
        return _finish(session, request_id)
    plan = _plan_of(plans, request)
    subject_id = subject_of(keyring, retentions[0])
    values = {**parameters_for_reading(session, plan.plan, subject_id), TODAY: plan.today}
    # Everybody else who erases this person waits here until the end.
    keys = keyring.fingerprints(plan.plan.hash_input(subject_id), purpose="subject")
    lock_person(session, [key.hmac for key in keys])
    retentions = _lock_open(session, retentions)
    if not retentions:
        return _finish(session, request_id)
    batch = _Batch(session, values, at_most, at_most)
    done = _change_rows(plan, batch)
    # Only a person can have a retention closed whose table the map does not have any more.
    orphaned = [each for each in retentions if by.note and each.table_name not in plan.data_map.tables]
    for retention in orphaned:
        close_retention(retention)
    ended = [*_audit_rows(plan, done), *((each.table_name, CLOSED, 0) for each in orphaned)]
    for table, action, rows in ended:
        hashed = plan.data_map.hash
        event = RetentionEnded(
            table=table, action=action, rows=rows, datamap_hash=hashed, **note_fields(by.note)
        )
        append_one(session, event, actor=by.actor, request_id=request.id, subject=request.subject)
    if not batch.finished:
        return _record_progress(session, request_id, done, by, left)
    reassess(session, keyring, plans, request, [each for each in retentions if each.closed_at is None])
    return _finish(session, request_id, done)


def _plan_of(plans: RetentionPlan, request: Request) -> RetentionPlan:
    try:
        return plans.for_people(request.subject_type)
    except Refused:
        raise NotFound("The data map no longer declares this kind of people.") from None


def _change_rows(plan: RetentionPlan, batch: _Batch) -> tuple[TableResult, ...]:
    """Delete or change what has come due; the tables where that was anything."""
    in_use = plan.count_reused_key is not None and batch.session.scalar(plan.count_reused_key, batch.values)
    done = tuple(each for keep in plan.tables.values() if (each := batch.carry_out(keep)).rows)
    if done:
        require_schema(batch.session, plan.plan.fingerprint)
    if in_use and done:
        raise Conflict(IN_USE)
    return done


def _audit_rows(plan: RetentionPlan, done: Sequence[TableResult]) -> Iterator[tuple[str, Action, int]]:
    """Table, action and number of rows, one for each event in the audit trail."""
    for each in done:
        if each.deleted:
            yield each.table, Action.DELETED, each.deleted
    for each in done:
        if each.changed:
            yield each.table, _change_action(plan, each.table), each.changed


def count_remaining_rows(session: Session, keyring: Keyring, plans: RetentionPlan, request_id: UUID) -> int:
    """How many rows are still to be deleted or changed.

    Slow when there are very many, so ending itself does not call it.
    """
    request = session.get_one(Request, request_id)
    plan = plans.for_people(request.subject_type)
    for mine in open_retentions_of(session, request_id)[:1]:
        values = {**parameters_for_reading(session, plan.plan, subject_of(keyring, mine)), TODAY: plan.today}
        return sum(
            DueRows(*session.execute(keep.count_due, values).one()).rows for keep in plan.tables.values()
        )
    return 0


def hand_over(session: Session, request_id: UUID, *, after: timedelta = timedelta()) -> None:
    """Let the scheduler continue with the rest, at once or after a while."""
    mine = RetentionEnding.request_id == request_id
    session.execute(update(RetentionEnding).where(mine).values(go_on_at=dbtime.now(session) + after))


def stop_ending(session: Session, request_id: UUID) -> None:
    """Stop until a person asks for it again."""
    session.execute(delete(RetentionEnding).where(RetentionEnding.request_id == request_id))


def _finish(session: Session, request_id: UUID, done: tuple[TableResult, ...] = ()) -> TransactionResult:
    stop_ending(session, request_id)
    return TransactionResult(done)


def _record_progress(
    session: Session, request_id: UUID, done: tuple[TableResult, ...], by: Instruction, left: int
) -> TransactionResult:
    """Record that there is more to do, who began it, and that it is being worked on now."""
    ending = session.get(RetentionEnding, request_id)
    if ending is None:
        ending = RetentionEnding(request_id=request_id, actor=by.actor, rows=0, of=0)
        if by.note:
            ending.note_id, ending.note_hmac = by.note.note_id, by.note.note_hmac
        session.add(ending)
    if left:
        ending.of = ending.rows + left
    ending.rows += sum(each.rows for each in done)
    ending.go_on_at = dbtime.now(session) + _LEFT_ALONE
    return TransactionResult(done, False, ending.rows, ending.of)


def _lock_open(session: Session, retentions: Sequence[Retention]) -> list[Retention]:
    """Lock those that are still open, and read them as they are now."""
    mine = Retention.id.in_([each.id for each in retentions])
    query = select(Retention).where(mine, Retention.closed_at.is_(None)).order_by(Retention.id)
    return list(session.scalars(query.with_for_update().execution_options(populate_existing=True)))


@dataclass(slots=True)
class _Batch:
    """One transaction: the parameters of its statements, and how many rows it may still change."""

    session: Session
    values: dict[str, Any]
    most: int
    left: int

    @property
    def finished(self) -> bool:
        return self.left > 0

    def carry_out(self, keep: TableRetention) -> TableResult:
        deleted = changed = 0
        while self.left > 0:
            gone, altered = self._run(keep, keep.delete), self._run(keep, keep.change)
            deleted, changed = deleted + gone, changed + altered
            if self.left <= 0 or not keep.untils:
                break
            if not DueRows(*self.session.execute(keep.count_due, self.values).one()).rows:
                break
            if not gone + altered:
                raise Conflict(f"The database kept rows that it should have changed: {keep.table}.")
            self.left -= self.most // _ROUNDS
        return TableResult(keep.table, deleted, changed)

    def _run(self, keep: TableRetention, statement: Delete | Update | None) -> int:
        if statement is None or self.left <= 0:
            return 0
        try:
            values = self.values | limited_to(self.left)
            rows = int(self.session.connection().execute(statement, values).rowcount)
        except DBAPIError as error:
            refused = refusal("erase", keep.table, error)
            if refused is None:
                raise
            raise refused from None
        self.left -= rows
        return rows


def _change_action(plan: RetentionPlan, table: str) -> Action:
    """PSEUDONYMISED if a replacement in the table is a keyed hash, else ANONYMISED."""
    hashed = any(
        rule.then and rule.then.pseudonymises for rule in plan.data_map.tables[table].columns.values()
    )
    return Action.PSEUDONYMISED if hashed else Action.ANONYMISED
