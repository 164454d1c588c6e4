"""Looking at dead letters: which wait for a person, why they failed, since when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.core.errors import NotFound
from effaced.core.paging import PAGE, Page, beyond, count_up_to, cut, decode
from effaced.deadletters import sla
from effaced.deadletters.rules import OPEN, UNDONE
from effaced.deadletters.sla import THRESHOLDS, Sla
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, DeadLetterStatus


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Which letters; empty `statuses` means all of them. `late` ones have waited longer than `sla` allows."""

    statuses: tuple[DeadLetterStatus, ...] = OPEN
    domain: DeadLetterDomain | None = None
    resolver: str | None = None
    error: str | None = None
    request_id: UUID | None = None
    code: str | None = None
    assigned_to: UUID | None = None
    unassigned: bool = False
    late: bool = False
    sla: Sla = field(default_factory=lambda: THRESHOLDS, compare=False, repr=False)

    def plain(self) -> dict[str, Any]:
        """As it is kept and shown: only what narrows the set down."""
        values = {name: getattr(self, name) for name in self.__slots__ if name != "sla"}
        return {
            name: [str(each) for each in value]
            if isinstance(value, tuple)
            else value
            if isinstance(value, bool)
            else str(value)
            for name, value in values.items()
            if value
        }


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
    max_retries: int
    recommended_action: str
    next_action_hint: str
    assigned_to: UUID | None
    created_at: datetime
    updated_at: datetime
    last_retry_at: datetime | None
    resolved_at: datetime | None
    resolved_by: str | None
    resolution: str
    archived_at: datetime | None
    marks: dict[str, Any] | None
    context: dict[str, Any]
    late_at: datetime

    @property
    def open(self) -> bool:
        return self.status in OPEN

    @property
    def late(self) -> bool:
        """Whether it has waited longer than its domain allows."""
        return self.open and self.late_at <= clock.now()


@dataclass(frozen=True, slots=True)
class DeadLetterGroup:
    """Letters that failed at the same place in the same way."""

    domain: DeadLetterDomain
    resolver: str | None
    failure_type: str
    count: int
    oldest: datetime


_COLUMNS = [getattr(DeadLetter, name) for name in DeadLetterLine.__slots__ if name != "late_at"]
_ORDER = (DeadLetter.created_at, DeadLetter.id)


def list_dead_letters(
    session: Session, which: DeadLetterFilter, *, after: str | None = None, limit: int = PAGE
) -> Page[DeadLetterLine]:
    """A page of letters, the oldest first."""
    query = matching(which, *_COLUMNS).order_by(*_ORDER).limit(limit + 1)
    if after:
        query = query.where(beyond(_ORDER, decode(after, datetime, UUID)))
    lines = _lines(session, query, which.sla)
    return cut(lines, limit, [(line.created_at, line.id) for line in lines])


def count_dead_letters(session: Session, which: DeadLetterFilter) -> int:
    return count_up_to(session, matching(which, DeadLetter.id))


def letter(session: Session, letter_id: UUID, waits: Sla) -> DeadLetterLine:
    """One letter; refuses an id that no letter has."""
    found = lines_by_id(session, [letter_id], waits)
    if not found:
        raise NotFound("There is no such dead letter.")
    return found[0]


def count_by_resolver(session: Session, which: DeadLetterFilter) -> dict[str, int]:
    """How many letters of a filter each resolver has."""
    query = matching(which, DeadLetter.resolver, func.count()).where(DeadLetter.resolver.is_not(None))
    return dict(session.execute(query.group_by(DeadLetter.resolver)).all())


def ids_matching(session: Session, which: DeadLetterFilter, *, limit: int) -> list[UUID]:
    """The ids of the oldest `limit` letters of a filter: what a bulk action is about."""
    return list(session.scalars(matching(which, DeadLetter.id).order_by(*_ORDER).limit(limit)))


def lines_by_id(session: Session, ids: Iterable[UUID], waits: Sla) -> list[DeadLetterLine]:
    """These letters, the oldest first; unknown ids are left out."""
    return _lines(session, select(*_COLUMNS).where(DeadLetter.id.in_(list(ids))).order_by(*_ORDER), waits)


def _lines(session: Session, query: Select[Any], waits: Sla) -> list[DeadLetterLine]:
    return [
        DeadLetterLine(**row._asdict(), late_at=sla.late_at(row.domain, row.created_at, waits))
        for row in session.execute(query)
    ]


def groups(session: Session, which: DeadLetterFilter, *, limit: int = 20) -> list[DeadLetterGroup]:
    """The letters of a filter by place and error class, the biggest groups first."""
    by = (DeadLetter.domain, DeadLetter.resolver, DeadLetter.failure_type)
    count, oldest = func.count(), func.min(DeadLetter.created_at, type_=DeadLetter.created_at.type)
    query = matching(which, *by, count, oldest).group_by(*by)
    query = query.order_by(count.desc(), oldest, DeadLetter.failure_type).limit(limit)
    return [DeadLetterGroup(*row) for row in session.execute(query)]


@dataclass(frozen=True, slots=True)
class Facets:
    """How many letters each value would show, with the other filters as they are."""

    status: dict[str, int]
    domain: dict[str, int]
    resolver: dict[str, int]
    error: dict[str, int]


def facets(session: Session, which: DeadLetterFilter) -> Facets:
    """Each facet leaves its own filter out, so that its other values can be chosen; none has a zero."""
    return Facets(
        status=_counts(session, DeadLetter.status, replace(which, statuses=())),
        domain=_counts(session, DeadLetter.domain, replace(which, domain=None)),
        resolver=_counts(session, DeadLetter.resolver, replace(which, resolver=None)),
        error=_counts(session, DeadLetter.failure_type, replace(which, error=None)),
    )


def _counts(session: Session, column: Any, which: DeadLetterFilter) -> dict[str, int]:
    number = func.count()
    query = matching(which, column, number).where(column.is_not(None)).group_by(column)
    return {
        str(value): found
        for value, found in session.execute(query.order_by(number.desc(), column).limit(200))
    }


def choices(session: Session, column: Any, which: DeadLetterFilter) -> list[str]:
    """What a filter could be set to: the values of one column among the letters of the other filters."""
    query = matching(which, column).where(column.is_not(None)).distinct().order_by(column).limit(200)
    return list(session.scalars(query))


def open_letters_of(
    session: Session, request_ids: Iterable[UUID], waits: Sla = THRESHOLDS
) -> list[DeadLetterLine]:
    """The letters that hold these requests up, also those that were given up; the oldest first."""
    query = select(*_COLUMNS).where(DeadLetter.request_id.in_(list(request_ids)), holds_up())
    return _lines(session, query.order_by(*_ORDER), waits)


def holds_up() -> ColumnElement[bool]:
    """The condition for letters whose work is not done, and not being done."""
    return DeadLetter.status.in_(UNDONE)


def matching(which: DeadLetterFilter, *columns: Any) -> Select[Any]:
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
    if which.code:
        query = query.where(DeadLetter.error_code == which.code)
    if which.assigned_to:
        query = query.where(DeadLetter.assigned_to == which.assigned_to)
    if which.unassigned:
        query = query.where(DeadLetter.assigned_to.is_(None))
    if which.late:
        query = query.where(sla.breached(clock.now(), which.sla))
    return query
