"""Looking at dead letters: which wait for a person, why they failed, since when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from effaced.deadletters.acquire import ACQUIRABLE
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, DeadLetterStatus
from effaced.paging import PAGE, Page, beyond, count_up_to, cut, decode

# A letter is open while a person has to decide about it.
OPEN = ACQUIRABLE


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Which letters; empty `statuses` means all of them."""

    statuses: tuple[DeadLetterStatus, ...] = OPEN
    domain: DeadLetterDomain | None = None
    resolver: str | None = None
    error: str | None = None
    request_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class DeadLetterLine:
    """One dead letter, to be shown."""

    id: UUID
    domain: DeadLetterDomain
    failure_type: str
    error_code: str
    entry_id: UUID | None
    request_id: UUID | None
    resolver: str | None
    status: DeadLetterStatus
    retry_count: int
    recommended_action: str
    created_at: datetime
    updated_at: datetime

    @property
    def open(self) -> bool:
        return self.status in OPEN


@dataclass(frozen=True, slots=True)
class DeadLetterGroup:
    """Letters that failed at the same place in the same way."""

    domain: DeadLetterDomain
    resolver: str | None
    failure_type: str
    count: int
    oldest: datetime


_COLUMNS = [getattr(DeadLetter, name) for name in DeadLetterLine.__slots__]
_ORDER = (DeadLetter.created_at, DeadLetter.id)


def list_dead_letters(
    session: Session, which: DeadLetterFilter, *, after: str | None = None, limit: int = PAGE
) -> Page[DeadLetterLine]:
    """A page of letters, the oldest first."""
    query = _matching(which, *_COLUMNS).order_by(*_ORDER).limit(limit + 1)
    if after:
        query = query.where(beyond(_ORDER, decode(after, datetime, UUID)))
    lines = [DeadLetterLine(*row) for row in session.execute(query)]
    return cut(lines, limit, [(line.created_at, line.id) for line in lines])


def count_dead_letters(session: Session, which: DeadLetterFilter) -> int:
    return count_up_to(session, _matching(which, DeadLetter.id))


def count_by_resolver(session: Session, which: DeadLetterFilter) -> dict[str, int]:
    """How many letters of a filter each resolver has."""
    query = _matching(which, DeadLetter.resolver, func.count()).where(DeadLetter.resolver.is_not(None))
    return dict(session.execute(query.group_by(DeadLetter.resolver)).all())


def ids_matching(session: Session, which: DeadLetterFilter, *, limit: int) -> list[UUID]:
    """The ids of the oldest `limit` letters of a filter: what a bulk action is about."""
    return list(session.scalars(_matching(which, DeadLetter.id).order_by(*_ORDER).limit(limit)))


def lines_by_id(session: Session, ids: Iterable[UUID]) -> list[DeadLetterLine]:
    """These letters, the oldest first; unknown ids are left out."""
    query = select(*_COLUMNS).where(DeadLetter.id.in_(list(ids))).order_by(*_ORDER)
    return [DeadLetterLine(*row) for row in session.execute(query)]


def groups(session: Session, which: DeadLetterFilter, *, limit: int = 20) -> list[DeadLetterGroup]:
    """The letters of a filter by place and error class, the biggest groups first."""
    by = (DeadLetter.domain, DeadLetter.resolver, DeadLetter.failure_type)
    count, oldest = func.count(), func.min(DeadLetter.created_at, type_=DeadLetter.created_at.type)
    query = _matching(which, *by, count, oldest).group_by(*by)
    query = query.order_by(count.desc(), oldest, DeadLetter.failure_type).limit(limit)
    return [DeadLetterGroup(*row) for row in session.execute(query)]


def choices(session: Session, column: Any, which: DeadLetterFilter) -> list[str]:
    """What a filter could be set to: the values of one column among the letters of the other filters."""
    query = _matching(which, column).where(column.is_not(None)).distinct().order_by(column).limit(200)
    return list(session.scalars(query))


def open_letters_of(session: Session, request_ids: Iterable[UUID]) -> list[DeadLetterLine]:
    """The open letters of these requests, the oldest first."""
    query = select(*_COLUMNS).where(DeadLetter.request_id.in_(list(request_ids)), is_open())
    return [DeadLetterLine(*row) for row in session.execute(query.order_by(*_ORDER))]


def is_open() -> ColumnElement[bool]:
    return DeadLetter.status.in_(OPEN)


def _matching(which: DeadLetterFilter, *columns: Any) -> Select[Any]:
    query = select(*columns)
    if which.statuses:
        query = query.where(DeadLetter.status.in_(which.statuses))
    if which.domain:
        query = query.where(DeadLetter.domain == which.domain)
    if which.resolver:
        query = query.where(DeadLetter.resolver == which.resolver)
    if which.error:
        query = query.where(DeadLetter.failure_type == which.error)
    if which.request_id:
        query = query.where(DeadLetter.request_id == which.request_id)
    return query
