"""Summaries of removed dead letters: one active row per kind that grows; then stale, then archived."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, func, insert, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.core.db import is_postgres
from effaced.core.errors import NotFound
from effaced.core.paging import PAGE, Page, after_key, decode, page_of
from effaced.deadletters.arguments import (
    as_uuid,
    code,
    dead_letter_domain,
    failure_type,
    moment,
    number,
    one_of,
)
from effaced.deadletters.data import DLQCompressedEntry, DLQCompressedStatus
from effaced.deadletters.tables import DeadLetterSummary
from effaced.model import DeadLetterDomain, new_id

_ACTIVE, _STALE, _ARCHIVED = DLQCompressedStatus
# To each status that a summary may be given, from which ones; and the column that is stamped.
SUMMARY_MOVES = {_STALE: (_ACTIVE,), _ARCHIVED: (_ACTIVE, _STALE)}
_STAMP = {_STALE: "stale_at", _ARCHIVED: "archived_at"}
_COLUMNS = tuple(DLQCompressedEntry.__dataclass_fields__)
_ORDER = (DeadLetterSummary.last_seen, DeadLetterSummary.id)


@dataclass(frozen=True, slots=True)
class Group:
    """Dead letters of one kind, to be added to a summary."""

    domain: DeadLetterDomain
    failure_type: str
    error_code: str
    count: int
    first_seen: datetime
    last_seen: datetime


def add_to_summaries(session: Session, groups: Iterable[Group]) -> None:
    """Add to the active summary of each kind, or start one."""
    for group in sorted(groups, key=lambda each: (each.domain, each.failure_type, each.error_code)):
        _upsert(session, group, new_id(), clock.now())


def store_summary(session: Session, entry: DLQCompressedEntry) -> bool:
    """Store a summary that was made elsewhere; an active one is added to the active one of its kind.

    False for an id that is taken or malformed, and for a count of zero.
    """
    entry = _checked(entry)
    summary_id = as_uuid(entry.id)
    if summary_id is None or not entry.count or session.get(DeadLetterSummary, summary_id) is not None:
        return False
    values = {name: getattr(entry, name) for name in _COLUMNS} | {
        "id": summary_id,
        "domain": DeadLetterDomain(entry.domain),
    }
    if entry.status == _ACTIVE:
        group = Group(**{name: values[name] for name in Group.__dataclass_fields__})
        _upsert(session, group, summary_id, entry.compressed_at)
    else:
        session.execute(insert(DeadLetterSummary), [values])
    return True


def summaries(
    session: Session, *, domain: str | None = None, status: str | None = None, limit: int = 100
) -> list[DLQCompressedEntry]:
    """Last seen first."""
    return _find(session, _conditions(domain, status), number("limit", limit))


def list_summaries(
    session: Session,
    *,
    domain: str | None = None,
    status: str | None = None,
    after: str | None = None,
    limit: int = PAGE,
) -> Page[DLQCompressedEntry]:
    """A page of summaries, last seen first."""
    conditions = _conditions(domain, status)
    if after:
        conditions.append(after_key(_ORDER, decode(after, datetime, UUID), descending=True))
    found = _find(session, conditions, limit + 1)
    return page_of(found, limit, [(each.last_seen, UUID(each.id)) for each in found])


def get_summary(session: Session, summary_id: UUID) -> DLQCompressedEntry:
    """Refuses an id that no summary has."""
    found = _find(session, [DeadLetterSummary.id == summary_id], 1)
    if not found:
        raise NotFound("There is no such summary.")
    return found[0]


def summary_totals(session: Session) -> dict[str, Any]:
    """How many dead letters the summaries stand for, by status and by domain."""
    total = func.sum(DeadLetterSummary.count)
    by_status = session.execute(select(DeadLetterSummary.status, total).group_by(DeadLetterSummary.status))
    by_domain = session.execute(select(DeadLetterSummary.domain, total).group_by(DeadLetterSummary.domain))
    entries = session.scalar(select(func.count()).select_from(DeadLetterSummary)) or 0
    statuses = {str(word): int(count) for word, count in by_status}
    return {
        "entries": entries,
        "letters": sum(statuses.values()),
        "by_status": statuses,
        "by_domain": {word.value: int(count) for word, count in by_domain},
    }


def set_summary_status(session: Session, summary_id: UUID, to: str) -> bool:
    """Forwards only: active, stale, archived. Whether it changed."""
    status = summary_status(to)
    if status is _ACTIVE:
        return False
    changed = session.execute(
        update(DeadLetterSummary)
        .where(DeadLetterSummary.id == summary_id, DeadLetterSummary.status.in_(SUMMARY_MOVES[status]))
        .values({"status": status, _STAMP[status]: clock.now()})
        .returning(DeadLetterSummary.id)
    )
    return changed.first() is not None


def _conditions(domain: str | None, status: str | None) -> list[ColumnElement[bool]]:
    conditions = []
    if domain is not None:
        conditions.append(DeadLetterSummary.domain == dead_letter_domain(domain))
    if status is not None:
        conditions.append(DeadLetterSummary.status == summary_status(status))
    return conditions


def _find(
    session: Session, conditions: Sequence[ColumnElement[bool]], limit: int
) -> list[DLQCompressedEntry]:
    query = select(*(getattr(DeadLetterSummary, name) for name in _COLUMNS)).where(*conditions)
    query = query.order_by(*(column.desc() for column in _ORDER)).limit(limit)
    return [
        replace(
            DLQCompressedEntry(**row._asdict()),
            id=str(row.id),
            domain=row.domain.value,
            status=DLQCompressedStatus(row.status),
        )
        for row in session.execute(query)
    ]


def summary_status(word: str) -> DLQCompressedStatus:
    return one_of(DLQCompressedStatus, "status", word)


def _checked(entry: DLQCompressedEntry) -> DLQCompressedEntry:
    moments: dict[str, Any] = {
        name: moment(name, value)
        for name in ("first_seen", "last_seen", "compressed_at", "stale_at", "archived_at")
        if (value := getattr(entry, name)) is not None
    }
    return replace(
        entry,
        domain=dead_letter_domain(entry.domain).value,
        failure_type=failure_type(entry.failure_type),
        error_code=code("error_code", entry.error_code, 64),
        count=number("count", entry.count),
        status=summary_status(entry.status),
        **moments,
    )


def _upsert(session: Session, group: Group, summary_id: UUID, at: datetime) -> None:
    insert_or_add = postgresql.insert if is_postgres(session) else sqlite.insert
    least, most = (func.least, func.greatest) if is_postgres(session) else (func.min, func.max)
    statement: Any = insert_or_add(DeadLetterSummary).values(
        id=summary_id,
        status=_ACTIVE,
        compressed_at=at,
        **{name: getattr(group, name) for name in Group.__dataclass_fields__},
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
