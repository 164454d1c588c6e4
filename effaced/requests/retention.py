"""What an erasure leaves under `retain`: written down, looked at again, erased when it has come due."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast
from uuid import UUID

from sqlalchemy import Delete, Table, Update, select, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from effaced import clock
from effaced.audit.append import append_one
from effaced.audit.events import RetentionEnded
from effaced.audit.notes import NoteRef, noted
from effaced.crypto import Keyring
from effaced.datamap.erase import refusal
from effaced.datamap.model import Action
from effaced.datamap.retention import TODAY, Ended, Keep, Kept, RetentionPlan
from effaced.datamap.values import values_to_look
from effaced.errors import Conflict, NotFound, Refused, Unavailable
from effaced.model import SubjectKey, new_id
from effaced.requests.correct import look_at
from effaced.requests.subject import open_sealed, seal_subject
from effaced.requests.tables import Request, Retention
from effaced.sql import insert_rows

CLOSED = "closed"
_table = cast(Table, Retention.__table__)


class Standing(StrEnum):
    """How it stands with what was kept."""

    KEPT = "kept"
    DUE = "due"
    WAITING = "waiting"
    """It has come due, but rows that have not point at it."""
    IN_USE = "in_use"
    """The person's own row holds data again that the erasure had removed."""
    NOT_RETAINED = "not_retained"
    """The map in force does not retain anything in this table, or can't find it again."""
    TABLE_GONE = "table_gone"
    """The map in force has no such table with personal data."""
    UNREADABLE = "unreadable"
    """Whose it is can't be read: the key is missing, or the map names people by something else now."""


IN_USE = (
    "The person's own row holds data that the erasure had removed, so somebody lives under that key again."
    " Nothing was erased. If it is the same person, have them erased once more."
)


@dataclass(frozen=True, slots=True)
class Look:
    """What there is of one registration now, and what ending it would do."""

    standing: Standing
    ended: Ended = field(default_factory=Ended)
    kept: Kept | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What ending did in one table."""

    table: str
    deleted: int
    changed: int

    @property
    def rows(self) -> int:
        return self.deleted + self.changed


def register(
    session: Session,
    keyring: Keyring,
    request: Request,
    subject_id: str,
    keys: Sequence[SubjectKey],
    kept: Iterable[Kept],
    datamap_hash: str,
) -> None:
    """Write down what this erasure has left, instead of what earlier ones of the same person had."""
    now = clock.now()
    theirs = select(Request.id).where(Request.subject_hmac.in_([each.hmac for each in keys]))
    session.execute(
        update(_table)
        .where(_table.c.request_id.in_(theirs), _table.c.closed_at.is_(None))
        .values(closed_at=now, subject_sealed=None)
    )
    rows = []
    for each in kept:
        if each.rows:
            retention_id = new_id()
            rows.append(
                {
                    "id": retention_id,
                    "request_id": request.id,
                    "table_name": each.table,
                    "subject_sealed": seal_subject(keyring, retention_id, subject_id, {}),
                    "datamap_hash": datamap_hash,
                    "rows": each.rows,
                    "undated": each.undated,
                    "first_due": each.first_due,
                    "error": None,
                    "created_at": now,
                    "looked_at": now,
                    "closed_at": None,
                }
            )
    insert_rows(session, Retention, rows)


def look(
    session: Session, keyring: Keyring, plans: RetentionPlan, retention: Retention, people: str | None
) -> Look:
    """How it stands now, by the map in force, for this kind of people. Changes nothing."""
    try:
        plan = plans.named(people)
    except Refused:
        return Look(Standing.UNREADABLE)
    if retention.table_name not in plan.data_map.tables:
        return Look(Standing.TABLE_GONE)
    keep = plan.keeps.get(retention.table_name)
    if keep is None:
        return Look(Standing.NOT_RETAINED)
    try:
        values = values_to_look(session, plan.plan, whose(keyring, retention))
    except (NotFound, Unavailable):
        return Look(Standing.UNREADABLE)
    kept = keep.kept(session.execute(keep.look, values).one())
    ended = Ended(*session.execute(keep.due, {**values, TODAY: plan.today}).one())
    if not ended.rows:
        return Look(Standing.WAITING if ended.waiting else Standing.KEPT, ended, kept)
    again = plan.lives is not None and session.scalar(plan.lives, values)
    return Look(Standing.IN_USE if again else Standing.DUE, ended, kept)


def end(
    session: Session,
    keyring: Keyring,
    plans: RetentionPlan,
    request_id: UUID,
    *,
    actor: str,
    note: NoteRef | None = None,
) -> list[Done]:
    """Erase whatever has come due of this request's person, children first; what was done in which table.

    Conflict if somebody lives under the person's key again, or if the database refuses or keeps what it was
    told to change: the caller must roll back.
    """
    request = session.get_one(Request, request_id)
    mine = open_of(session, request_id)
    if not mine:
        return []
    try:
        plan = plans.named(request.subject_type)
    except Refused:
        raise NotFound("The data map has no such people any more.") from None
    subject_id = whose(keyring, mine[0])
    values = values_to_look(session, plan.plan, subject_id)
    # Everybody else who erases this person waits here until the end.
    look_at(session, keyring, plan.plan, subject_id)
    mine = _locked(session, mine)
    in_use = plan.lives is not None and session.scalar(plan.lives, values)
    done = [_carry_out(session, keep, {**values, TODAY: plan.today}) for keep in plan.keeps.values()]
    if in_use and any(each.rows for each in done):
        raise Conflict(IN_USE)
    gone = [each for each in mine if each.table_name not in plan.data_map.tables and note]
    for each in gone:
        _close(each)
    told = [
        *((each.table, Action.DELETED, each.deleted) for each in done if each.deleted),
        *((each.table, _changed_to(plan, each.table), each.changed) for each in done if each.changed),
        *((each.table_name, CLOSED, 0) for each in gone),
    ]
    for table, action, rows in told:
        hashed = plan.data_map.hash
        event = RetentionEnded(table=table, action=action, rows=rows, datamap_hash=hashed, **noted(note))
        append_one(session, event, actor=actor, request_id=request.id, subject=request.subject)
    look_again(session, keyring, plans, request, [each for each in mine if each.closed_at is None])
    return [each for each in done if each.rows]


def look_again(
    session: Session,
    keyring: Keyring,
    plan: RetentionPlan,
    request: Request,
    retentions: Sequence[Retention],
) -> None:
    """Bring registrations of one request up to date; one of which nothing is left is closed."""
    found = {each.id: look(session, keyring, plan, each, request.subject_type) for each in retentions}
    later = [now.kept.first_due for now in found.values() if now.kept and now.standing is Standing.KEPT]
    for each in retentions:
        now = found[each.id]
        each.looked_at = clock.now()
        each.datamap_hash = plan.data_map.hash
        if now.kept is None:
            # Nobody can end it by this map, so a person has to see it.
            each.first_due = each.first_due or plan.today
            continue
        each.rows, each.undated, each.first_due = now.kept.rows, now.kept.undated, now.kept.first_due
        if not now.kept.rows:
            _close(each)
        elif now.standing is Standing.WAITING:
            # Nothing can be done before what it waits for comes due.
            each.first_due = min((day for day in later if day), default=None)
        if now.standing is not Standing.DUE:
            each.error = None


def open_of(session: Session, request_id: UUID) -> list[Retention]:
    query = select(Retention).where(Retention.request_id == request_id, Retention.closed_at.is_(None))
    return list(session.scalars(query.order_by(Retention.id)))


def _locked(session: Session, retentions: Sequence[Retention]) -> list[Retention]:
    """Those that are still open, as they are now."""
    mine = Retention.id.in_([each.id for each in retentions])
    query = select(Retention).where(mine, Retention.closed_at.is_(None)).order_by(Retention.id)
    return list(session.scalars(query.with_for_update().execution_options(populate_existing=True)))


def whose(keyring: Keyring, retention: Retention) -> str:
    if retention.subject_sealed is None:
        raise Unavailable("The registration no longer knows its subject.")
    return open_sealed(keyring, retention.subject_sealed, retention.id).subject_id


def _close(retention: Retention) -> None:
    """Nothing is kept there any more: forget whose it was."""
    retention.closed_at = clock.now()
    retention.subject_sealed = retention.first_due = retention.error = None
    retention.rows = retention.undated = 0


def _carry_out(session: Session, keep: Keep, values: dict[str, Any]) -> Done:
    deleted = changed = 0
    try:
        while keep.delete is not None:
            gone = _count(session, keep.delete, values)
            deleted += gone
            if not (keep.repeat and gone):
                break
        if keep.change is not None:
            changed = _count(session, keep.change, values)
    except DBAPIError as error:
        refused = refusal("erase", keep.table, error)
        if refused is None:
            raise
        raise refused from None
    if keep.untils and Ended(*session.execute(keep.due, values).one()).rows:
        raise Conflict(f"The database kept rows that it was told to change: {keep.table}.")
    return Done(keep.table, deleted, changed)


def _count(session: Session, statement: Delete | Update, values: dict[str, Any]) -> int:
    return int(session.connection().execute(statement, values).rowcount)


def _changed_to(plan: RetentionPlan, table: str) -> Action:
    hashed = any(
        rule.then and rule.then.pseudonymises for rule in plan.data_map.tables[table].columns.values()
    )
    return Action.PSEUDONYMISED if hashed else Action.ANONYMISED
