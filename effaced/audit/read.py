"""Reading the trail: by request, type, actor and time, newest first."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, or_, select
from sqlalchemy.orm import Session

from effaced.audit.events import TYPES, RequestRepeated
from effaced.audit.tables import AuditEvent
from effaced.core.errors import Problem, Refused
from effaced.core.paging import PAGE, Page, after_key, decode, page_of

_LONGEST_TYPE = 64


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which events. `since` is the first moment that counts, `until` the first that no longer does."""

    request_id: UUID | None = None
    type: str | None = None
    actor: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    without: frozenset[str] = frozenset()
    """Types that are left out."""
    repeated_by: str | None = None
    """Of REQUEST_REPEATED, only the events of this actor."""
    unnamed: frozenset[str] = frozenset()
    """Ids of requests that an export leaves empty where a payload names them."""


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One event, for display."""

    id: int
    at: datetime
    type: str
    actor: str
    request_id: UUID | None
    entry_id: UUID | None
    payload: dict[str, Any]


_COLUMNS = [getattr(AuditEvent, each.name) for each in fields(AuditLine)]


def conditions(which: AuditFilter) -> list[ColumnElement[bool]]:
    """The filter as SQL: the list and the export share it, so that they can't disagree."""
    asked: list[ColumnElement[bool] | None] = [
        AuditEvent.request_id == which.request_id if which.request_id else None,
        AuditEvent.type == which.type if which.type else None,
        AuditEvent.actor == which.actor if which.actor else None,
        AuditEvent.at >= which.since if which.since else None,
        AuditEvent.at < which.until if which.until else None,
        AuditEvent.type.not_in(sorted(which.without)) if which.without else None,
        or_(AuditEvent.type != RequestRepeated.type, AuditEvent.actor == which.repeated_by)
        if which.repeated_by
        else None,
    ]
    return [condition for condition in asked if condition is not None]


def require_event_type(name: str | None, *, field: str = "type") -> None:
    """Refuse a type that does not exist, with the closest ones."""
    if name is None or name in TYPES:
        return
    # Comparing takes the product of both lengths, and no type is anywhere near as long.
    closest = difflib.get_close_matches(name.upper(), TYPES, n=3) if len(name) <= _LONGEST_TYPE else []
    near = f"; did you mean {' or '.join(closest)}?" if closest else f"; known: {', '.join(sorted(TYPES))}"
    raise Refused(
        "There is no such type of event.",
        problems=[Problem(field, f"is not a type of event{near}", code="unknown_type")],
    )


def select_events(which: AuditFilter) -> Select[Any]:
    return select(*_COLUMNS).where(*conditions(which))


def list_events(
    session: Session, which: AuditFilter, *, after: str | None = None, limit: int = PAGE
) -> Page[AuditLine]:
    """A page of events, newest first."""
    query = select_events(which).order_by(AuditEvent.id.desc()).limit(limit + 1)
    if after:
        query = query.where(after_key([AuditEvent.id], decode(after, int), descending=True))
    lines = _lines(session.execute(query))
    return page_of(lines, limit, [(line.id,) for line in lines])


def last_events_of(session: Session, request_id: UUID, *, limit: int) -> list[AuditLine]:
    """The last events of one request, in the order in which they happened."""
    return last_events(session, AuditFilter(request_id=request_id), limit=limit)


def last_events(session: Session, which: AuditFilter, *, limit: int) -> list[AuditLine]:
    """The latest events, oldest first."""
    rows = session.execute(select_events(which).order_by(AuditEvent.id.desc()).limit(limit))
    return list(reversed(_lines(rows)))


def _lines(rows: Iterable[Any]) -> list[AuditLine]:
    return [AuditLine(*row) for row in rows]
