"""Finding dead letters for the repository: whole rows, by status, age, window and cap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, func, select
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.deadletters import sla
from effaced.deadletters.purge import purgeable
from effaced.deadletters.rules import ACTIVE, PENDING, domain_of, status_of
from effaced.deadletters.tables import DeadLetter
from effaced.deadletters.tidy import ARCHIVED_AFTER, archivable

COLUMNS = [
    getattr(DeadLetter, name)
    for name in (
        "id", "domain", "failure_type", "error_code", "entry_id", "request_id", "resolver",
        "subject_key_id", "subject_hmac", "status", "retry_count", "max_retries", "acquired",
        "recommended_action", "next_action_hint", "context", "marks", "assigned_to", "created_at",
        "updated_at", "last_retry_at", "expires_at", "resolved_at", "resolved_by", "resolution",
        "resolution_note_id", "archived_at",
    )
]  # fmt: skip
_OLDEST = (DeadLetter.created_at, DeadLetter.id)
_NEWEST = (DeadLetter.created_at.desc(), DeadLetter.id.desc())
_PURGE_HINT_DAYS = 90
Rows = Sequence[Row[*tuple[Any, ...]]]


def matching(
    status: str | None = None, domain: str | None = None, failure_type: str | None = None
) -> list[ColumnElement[bool]]:
    """The conditions of a filter; nothing named means everything."""
    conditions: list[ColumnElement[bool]] = []
    if status is not None:
        conditions.append(DeadLetter.status == status_of(status))
    if domain is not None:
        conditions.append(DeadLetter.domain == domain_of(domain))
    if failure_type is not None:
        conditions.append(DeadLetter.failure_type == failure_type)
    return conditions


def by_id(session: Session, letter_id: UUID) -> Row[*tuple[Any, ...]] | None:
    return session.execute(select(*COLUMNS).where(DeadLetter.id == letter_id)).first()


def oldest(session: Session, *conditions: ColumnElement[bool], limit: int | None = None) -> Rows:
    return session.execute(select(*COLUMNS).where(*conditions).order_by(*_OLDEST).limit(limit)).all()


def newest(session: Session, *conditions: ColumnElement[bool], offset: int, limit: int) -> Rows:
    query = select(*COLUMNS).where(*conditions).order_by(*_NEWEST)
    return session.execute(query.offset(offset).limit(limit)).all()


def count(session: Session, *conditions: ColumnElement[bool]) -> int:
    return session.scalar(select(func.count()).select_from(DeadLetter).where(*conditions)) or 0


def replayable() -> ColumnElement[bool]:
    return (DeadLetter.status == PENDING) & (DeadLetter.retry_count < DeadLetter.max_retries)


def breached(session: Session, now: datetime, thresholds: Mapping[str, timedelta]) -> Rows:
    return oldest(session, sla.breached(now, thresholds))


def expired(session: Session, *conditions: ColumnElement[bool], limit: int | None = None) -> Rows:
    """The first to expire first; those that never expire are not among them."""
    query = select(*COLUMNS).where(DeadLetter.expires_at.is_not(None), *conditions)
    return session.execute(query.order_by(DeadLetter.expires_at, DeadLetter.id).limit(limit)).all()


def oldest_ids(session: Session, number: int, *conditions: ColumnElement[bool]) -> list[UUID]:
    query = select(DeadLetter.id).where(*conditions).order_by(*_OLDEST)
    return list(session.scalars(query.limit(max(0, number))))


def counts_by(session: Session, column: Any, *conditions: ColumnElement[bool]) -> dict[str, int]:
    """How many letters each value of a column has; values that nobody has are not there."""
    query = select(column, func.count()).where(*conditions).group_by(column)
    return {str(value): number for value, number in session.execute(query) if value is not None}


def statistics(session: Session, thresholds: Mapping[str, timedelta]) -> dict[str, Any]:
    """Everything at a glance: how many, where, since when, and how many have waited too long."""
    by_status = counts_by(session, DeadLetter.status)
    active = DeadLetter.status.in_(ACTIVE)
    now = clock.now()
    waiting = select(func.min(DeadLetter.created_at, type_=DeadLetter.created_at.type)).where(active)
    return {
        "total": sum(by_status.values()),
        "active": sum(by_status.get(each, 0) for each in ACTIVE),
        "by_status": by_status,
        "by_domain": counts_by(session, DeadLetter.domain, active),
        "by_failure_type": counts_by(session, DeadLetter.failure_type, active),
        "sla_breached": counts_by(session, DeadLetter.domain, sla.breached(now, thresholds)),
        "oldest_active_at": session.scalar(waiting),
    }


def cleanup_statistics(session: Session) -> dict[str, Any]:
    """What there is to tidy up."""
    by_status = counts_by(session, DeadLetter.status)
    return {
        "total": sum(by_status.values()),
        "by_status": by_status,
        "resolved_older_than_30_days": count(session, archivable(ARCHIVED_AFTER)),
        "archived_older_than_90_days": count(session, purgeable(_PURGE_HINT_DAYS)),
    }
