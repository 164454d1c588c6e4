"""What an erasure leaves under `retain`: recorded, reassessed, closed when nothing of it is left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import cast
from uuid import UUID

from sqlalchemy import String, Table, Update, bindparam, null, or_, select, update
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.db import UtcDateTime
from effaced.core.db.pipeline import run_statement
from effaced.core.db.sql import insert_rows
from effaced.core.errors import NotFound, Refused, Unavailable
from effaced.datamap.plan.retention import TODAY, DueRows, KeptRows, RetentionPlan
from effaced.datamap.run.values import parameters_for_reading
from effaced.model import SubjectKey, new_id
from effaced.requests.subject import open_sealed, seal_subject
from effaced.requests.tables import Request, Retention

_table = cast(Table, Retention.__table__)


class RetentionState(StrEnum):
    """The state of what an erasure has retained in one table."""

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


@dataclass(frozen=True, slots=True)
class Assessment:
    """The state of one retention now, and what ending it would do."""

    standing: RetentionState
    ended: DueRows = field(default_factory=DueRows)
    kept: KeptRows | None = None


def record_retentions(
    session: Session,
    keyring: Keyring,
    request: Request,
    subject_id: str,
    keys: Sequence[SubjectKey],
    kept: Iterable[KeptRows],
    datamap_hash: str,
) -> None:
    """Record what this erasure has left; what earlier ones of the same person had left is closed."""
    now = clock.now()
    hmacs = {f"hmac_{place}": each.hmac for place, each in enumerate(keys)}
    run_statement(session, _close_earlier(len(hmacs)), {**hmacs, "now": now})
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


@cache
def _close_earlier(keys: int) -> Update:
    """Closes the open retentions of a person with so many keys."""
    hmacs = [bindparam(f"hmac_{place}", type_=String()) for place in range(keys)]
    theirs = select(Request.id).where(or_(*(Request.subject_hmac == hmac for hmac in hmacs)))
    return (
        update(_table)
        .where(_table.c.request_id.in_(theirs), _table.c.closed_at.is_(None))
        .values(closed_at=bindparam("now", type_=UtcDateTime()), subject_sealed=null())
    )


def assess(
    session: Session, keyring: Keyring, plans: RetentionPlan, retention: Retention, people: str | None
) -> Assessment:
    """The state now, by the map in force, for this kind of people. Changes nothing."""
    try:
        plan = plans.for_people(people)
    except Refused:
        return Assessment(RetentionState.UNREADABLE)
    if retention.table_name not in plan.data_map.tables:
        return Assessment(RetentionState.TABLE_GONE)
    keep = plan.tables.get(retention.table_name)
    if keep is None:
        return Assessment(RetentionState.NOT_RETAINED)
    try:
        values = parameters_for_reading(session, plan.plan, subject_of(keyring, retention))
    except (NotFound, Unavailable):
        return Assessment(RetentionState.UNREADABLE)
    kept = keep.read_counts(session.execute(keep.count_kept, values).one())
    ended = DueRows(*session.execute(keep.count_due, {**values, TODAY: plan.today}).one())
    if not ended.rows:
        return Assessment(RetentionState.WAITING if ended.waiting else RetentionState.KEPT, ended, kept)
    again = plan.count_reused_key is not None and session.scalar(plan.count_reused_key, values)
    return Assessment(RetentionState.IN_USE if again else RetentionState.DUE, ended, kept)


def reassess(
    session: Session,
    keyring: Keyring,
    plan: RetentionPlan,
    request: Request,
    retentions: Sequence[Retention],
) -> None:
    """Bring the retentions of one request up to date; one of which nothing is left is closed."""
    found = {each.id: assess(session, keyring, plan, each, request.subject_type) for each in retentions}
    later = [now.kept.first_due for now in found.values() if now.kept and now.standing is RetentionState.KEPT]
    for each in retentions:
        now = found[each.id]
        each.looked_at = clock.now()
        each.datamap_hash = plan.data_map.hash
        if now.kept is None:
            # This map can't end it, so it is shown to people as due.
            each.first_due = each.first_due or plan.today
            continue
        each.rows, each.undated, each.first_due = now.kept.rows, now.kept.undated, now.kept.first_due
        if not now.kept.rows:
            close_retention(each)
        elif now.standing is RetentionState.WAITING:
            # Nothing can be done before what it waits for comes due.
            each.first_due = min((day for day in later if day), default=None)
        if now.standing is not RetentionState.DUE:
            each.error = None


def open_retentions_of(
    session: Session, request_id: UUID, *, lock: bool = False, skip_locked: bool = False
) -> list[Retention]:
    """The request's open retentions; with `lock` locked, with `skip_locked` without what others locked."""
    query = select(Retention).where(Retention.request_id == request_id, Retention.closed_at.is_(None))
    query = query.with_for_update(skip_locked=skip_locked) if lock or skip_locked else query
    return list(session.scalars(query.order_by(Retention.id)))


def subject_of(keyring: Keyring, retention: Retention) -> str:
    if retention.subject_sealed is None:
        raise Unavailable("The retention no longer has its subject.")
    return open_sealed(keyring, retention.subject_sealed, retention.id).subject_id


def close_retention(retention: Retention) -> None:
    """Close it and delete its sealed subject: nothing is retained there any more."""
    retention.closed_at = clock.now()
    retention.subject_sealed = retention.first_due = retention.error = None
    retention.rows = retention.undated = 0
