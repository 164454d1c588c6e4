"""Summaries of letters that are gone: one active row per kind that grows; then stale, then archived."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.core.db import is_postgres
from effaced.core.errors import Problem
from effaced.deadletters.context import as_uuid, code
from effaced.deadletters.data import DLQCompressedEntry, DLQCompressedStatus
from effaced.deadletters.rules import BadChoice, domain_of
from effaced.deadletters.tables import DeadLetterSummary
from effaced.model import DeadLetterDomain, new_id

_ACTIVE, _STALE, _ARCHIVED = DLQCompressedStatus
# Where a summary can come from on its way, and the stamp that it gets.
BEFORE = {_STALE: (_ACTIVE,), _ARCHIVED: (_ACTIVE, _STALE)}
STAMP = {_STALE: "stale_at", _ARCHIVED: "archived_at"}


@dataclass(frozen=True, slots=True)
class Group:
    """Letters of one kind, summed up."""

    domain: DeadLetterDomain
    failure_type: str
    error_code: str
    count: int
    first_seen: datetime
    last_seen: datetime


def sum_up(session: Session, groups: Iterable[Group]) -> None:
    """Add to the active summary of each kind, or begin one."""
    for group in sorted(groups, key=lambda each: (each.domain, each.failure_type, each.error_code)):
        _upsert(session, group, new_id(), clock.now())


def store(session: Session, entry: DLQCompressedEntry) -> bool:
    """Keep a summary that was made elsewhere. An active one adds to what there is of its kind."""
    summary_id = as_uuid(entry.id)
    if summary_id is None or entry.count < 1 or session.get(DeadLetterSummary, summary_id) is not None:
        return False
    group = Group(
        domain_of(entry.domain),
        code("failure_type", entry.failure_type, 255, needed=True),
        code("error_code", entry.error_code, 64),
        entry.count,
        entry.first_seen,
        entry.last_seen,
    )
    status = compressed_status(entry.status)
    if status is _ACTIVE:
        _upsert(session, group, summary_id, entry.compressed_at)
        return True
    session.add(
        DeadLetterSummary(
            id=summary_id,
            domain=group.domain,
            failure_type=group.failure_type,
            error_code=group.error_code,
            count=group.count,
            first_seen=group.first_seen,
            last_seen=group.last_seen,
            status=status,
            compressed_at=entry.compressed_at,
            stale_at=entry.stale_at,
            archived_at=entry.archived_at,
        )
    )
    session.flush()
    return True


def summaries(
    session: Session, *, domain: str | None = None, status: str | None = None, limit: int = 100
) -> list[DLQCompressedEntry]:
    """Last seen first."""
    query = select(DeadLetterSummary).order_by(DeadLetterSummary.last_seen.desc(), DeadLetterSummary.id)
    if domain is not None:
        query = query.where(DeadLetterSummary.domain == domain_of(domain))
    if status is not None:
        query = query.where(DeadLetterSummary.status == compressed_status(status))
    return [_out(row) for row in session.scalars(query.limit(limit))]


def totals(session: Session) -> dict[str, Any]:
    """How many letters the summaries stand for, by status and by domain."""
    number = func.sum(DeadLetterSummary.count)
    by_status = session.execute(select(DeadLetterSummary.status, number).group_by(DeadLetterSummary.status))
    by_domain = session.execute(select(DeadLetterSummary.domain, number).group_by(DeadLetterSummary.domain))
    entries = session.scalar(select(func.count()).select_from(DeadLetterSummary)) or 0
    statuses = {str(word): int(count) for word, count in by_status}
    return {
        "entries": entries,
        "letters": sum(statuses.values()),
        "by_status": statuses,
        "by_domain": {word.value: int(count) for word, count in by_domain},
    }


def move(session: Session, summary_id: UUID, to: str) -> bool:
    """Forwards only: active, stale, archived. Whether it moved."""
    status = compressed_status(to)
    if status not in BEFORE:
        return False
    moved = session.execute(
        update(DeadLetterSummary)
        .where(DeadLetterSummary.id == summary_id, DeadLetterSummary.status.in_(BEFORE[status]))
        .values({"status": status, STAMP[status]: clock.now()})
        .returning(DeadLetterSummary.id)
    )
    return moved.first() is not None


def compressed_status(word: str) -> DLQCompressedStatus:
    try:
        return DLQCompressedStatus(word)
    except ValueError:
        said = f"must be one of {', '.join(DLQCompressedStatus)}"
        raise BadChoice(f"The status {said}.", problems=[Problem("status", said)]) from None


def _upsert(session: Session, group: Group, summary_id: UUID, at: datetime) -> None:
    insert = postgresql.insert if is_postgres(session) else sqlite.insert
    least, most = (func.least, func.greatest) if is_postgres(session) else (func.min, func.max)
    statement: Any = insert(DeadLetterSummary).values(
        id=summary_id,
        domain=group.domain,
        failure_type=group.failure_type,
        error_code=group.error_code,
        count=group.count,
        first_seen=group.first_seen,
        last_seen=group.last_seen,
        status=_ACTIVE,
        compressed_at=at,
    )
    new, old = statement.excluded, DeadLetterSummary
    session.execute(
        statement.on_conflict_do_update(
            index_elements=["domain", "failure_type", "error_code"],
            index_where=text("status = 'active'"),
            set_={
                "count": old.count + new.count,
                "first_seen": least(old.first_seen, new.first_seen),
                "last_seen": most(old.last_seen, new.last_seen),
                "compressed_at": new.compressed_at,
            },
        )
    )


def _out(row: DeadLetterSummary) -> DLQCompressedEntry:
    return DLQCompressedEntry(
        id=str(row.id),
        domain=row.domain.value,
        failure_type=row.failure_type,
        error_code=row.error_code,
        count=row.count,
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        compressed_at=row.compressed_at,
        status=DLQCompressedStatus(row.status),
        stale_at=row.stale_at,
        archived_at=row.archived_at,
    )
