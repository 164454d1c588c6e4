"""Reading dead letters: which wait for a person, why they failed, since when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, func, or_, select
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.core.errors import NotFound
from effaced.core.paging import PAGE, Page, after_key, count_up_to, decode, page_of
from effaced.deadletters.context import FAILURES
from effaced.deadletters.rules import DEFAULT_SLA, OPEN, PENDING, SLA, UNRESOLVED, Sla, late_at
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, DeadLetterStatus

FACET_VALUES = 200


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Which dead letters; no `statuses` means all of them.

    `late` ones have been open longer than `sla` allows; of `expired` ones `expires_at` has passed.
    """

    statuses: tuple[DeadLetterStatus, ...] = OPEN
    domain: DeadLetterDomain | None = None
    resolver: str | None = None
    error: str | None = None
    request_id: UUID | None = None
    code: str | None = None
    assigned_to: UUID | None = None
    unassigned: bool = False
    late: bool = False
    expired: bool = False
    sla: Sla = field(default_factory=lambda: SLA, compare=False, repr=False)

    def plain(self) -> dict[str, Any]:
        """As it is stored and shown: only what narrows the set down."""
        values = {name: getattr(self, name) for name in self.__slots__ if name != "sla"}
        return {name: _plain(value) for name, value in values.items() if value not in (None, False, ())}


@dataclass(frozen=True, slots=True)
class DeadLetterLine:
    """One dead letter. Ids, words, counts and moments; nothing in it is personal."""

    id: UUID
    domain: DeadLetterDomain
    failure_type: str
    error_code: str
    entry_id: UUID | None
    request_id: UUID | None
    resolver: str | None
    subject_key_id: str | None
    subject_hmac: str | None
    status: DeadLetterStatus
    retry_count: int
    max_retries: int
    acquired: int
    recommended_action: str
    next_action_hint: str
    assigned_to: UUID | None
    created_at: datetime
    updated_at: datetime
    last_retry_at: datetime | None
    expires_at: datetime | None
    resolved_at: datetime | None
    resolved_by: str | None
    resolution: str
    resolution_note_id: UUID | None
    archived_at: datetime | None
    marks: dict[str, Any] | None
    context: dict[str, Any]
    late_at: datetime

    @property
    def open(self) -> bool:
        return self.status in OPEN

    @property
    def late(self) -> bool:
        """Whether it has been open for longer than its domain allows."""
        return self.open and self.late_at <= clock.now()

    def plain(self) -> dict[str, Any]:
        """As programs read it, in the API and in the output of `--json`: by the names of the filters."""
        return {
            "id": str(self.id),
            "status": self.status.value,
            "domain": self.domain.value,
            "resolver": self.resolver,
            "error": self.failure_type,
            "code": self.error_code,
            "entry_id": _id(self.entry_id),
            "request_id": _id(self.request_id),
            "attempts": self.context.get("attempts"),
            "tables": self.context.get("tables", []),
            "failures": self.context.get(FAILURES, []),
            "retry_count": self.retry_count,
            "max_retries": self.max_retries,
            "marks": self.marks or {},
            "recommended_action": self.recommended_action,
            "next_action_hint": self.next_action_hint,
            "assigned_to": _id(self.assigned_to),
            "late": self.late,
            "created_at": clock.text(self.created_at),
            "updated_at": clock.text(self.updated_at),
            "last_retry_at": clock.text(self.last_retry_at),
            "expires_at": clock.text(self.expires_at),
            "resolved_at": clock.text(self.resolved_at),
            "resolved_by": self.resolved_by,
            "resolution": self.resolution,
            "archived_at": clock.text(self.archived_at),
        }


@dataclass(frozen=True, slots=True)
class DeadLetterGroup:
    """Dead letters that failed at the same place in the same way."""

    domain: DeadLetterDomain
    resolver: str | None
    failure_type: str
    count: int
    oldest: datetime

    def plain(self) -> dict[str, Any]:
        return {
            "domain": self.domain.value,
            "resolver": self.resolver,
            "error": self.failure_type,
            "count": self.count,
            "oldest_at": clock.text(self.oldest),
        }


ALL = DeadLetterFilter(statuses=())
OLDEST_FIRST = (DeadLetter.created_at, DeadLetter.id)
NEWEST_FIRST = (DeadLetter.created_at.desc(), DeadLetter.id.desc())
FIRST_TO_EXPIRE = (DeadLetter.expires_at, DeadLetter.id)
_COLUMNS = [getattr(DeadLetter, each.name) for each in fields(DeadLetterLine) if each.name != "late_at"]


def list_dead_letters(
    session: Session, which: DeadLetterFilter, *, after: str | None = None, limit: int = PAGE
) -> Page[DeadLetterLine]:
    """A page of dead letters, oldest first."""
    start = (after_key(OLDEST_FIRST, decode(after, datetime, UUID)),) if after else ()
    found = find_dead_letters(session, which, *start, limit=limit + 1)
    return page_of(found, limit, [(each.created_at, each.id) for each in found])


def find_dead_letters(
    session: Session,
    which: DeadLetterFilter,
    *conditions: ColumnElement[bool],
    order: Sequence[Any] = OLDEST_FIRST,
    offset: int = 0,
    limit: int | None = None,
) -> list[DeadLetterLine]:
    query = matching(which, *_COLUMNS).where(*conditions).order_by(*order).offset(offset).limit(limit)
    return [
        DeadLetterLine(**row._asdict(), late_at=late_at(row.domain, row.created_at, which.sla))
        for row in session.execute(query)
    ]


def dead_letters_by_id(session: Session, ids: Iterable[UUID], sla: Sla = SLA) -> list[DeadLetterLine]:
    """Oldest first; unknown ids are left out."""
    return find_dead_letters(session, replace(ALL, sla=sla), DeadLetter.id.in_(list(ids)))


def get_dead_letter(session: Session, dead_letter_id: UUID, sla: Sla) -> DeadLetterLine:
    """Refuses an id that no dead letter has."""
    found = dead_letters_by_id(session, [dead_letter_id], sla)
    if not found:
        raise NotFound("There is no such dead letter.")
    return found[0]


def unresolved_dead_letters(
    session: Session, request_ids: Iterable[UUID], sla: Sla = SLA
) -> list[DeadLetterLine]:
    """The dead letters that hold up these requests, those that were given up included; oldest first."""
    which = DeadLetterFilter(statuses=UNRESOLVED, sla=sla)
    return find_dead_letters(session, which, DeadLetter.request_id.in_(list(request_ids)))


def count_dead_letters(session: Session, which: DeadLetterFilter) -> int:
    """How many, up to the cap of `count_up_to`: for lists that people look at."""
    return count_up_to(session, matching(which, DeadLetter.id))


def count_exactly(session: Session, which: DeadLetterFilter, *conditions: ColumnElement[bool]) -> int:
    return session.scalar(matching(which, func.count(DeadLetter.id)).where(*conditions)) or 0


def count_by(
    session: Session, column: Any, which: DeadLetterFilter, *, limit: int | None = None
) -> dict[str, int]:
    """How many dead letters have each value of a column, most frequent first; none has a zero."""
    number = func.count()
    query = matching(which, column, number).where(column.is_not(None)).group_by(column)
    query = query.order_by(number.desc(), column).limit(limit)
    return {str(value): found for value, found in session.execute(query)}


def groups(session: Session, which: DeadLetterFilter, *, limit: int = 20) -> list[DeadLetterGroup]:
    """Dead letters by place and error class, the biggest groups first."""
    by = (DeadLetter.domain, DeadLetter.resolver, DeadLetter.failure_type)
    count, oldest = func.count(), func.min(DeadLetter.created_at, type_=DeadLetter.created_at.type)
    query = matching(which, *by, count, oldest).group_by(*by)
    query = query.order_by(count.desc(), oldest, DeadLetter.failure_type).limit(limit)
    return [DeadLetterGroup(*row) for row in session.execute(query)]


@dataclass(frozen=True, slots=True)
class Facets:
    """How many dead letters each value would show, with the other filters as they are."""

    status: Mapping[str, int]
    domain: Mapping[str, int]
    resolver: Mapping[str, int]
    error: Mapping[str, int]


def facets(session: Session, which: DeadLetterFilter) -> Facets:
    """Each facet leaves out its own filter, so that its other values can be chosen."""
    return Facets(
        status=count_by(session, DeadLetter.status, replace(which, statuses=()), limit=FACET_VALUES),
        domain=count_by(session, DeadLetter.domain, replace(which, domain=None), limit=FACET_VALUES),
        resolver=count_by(session, DeadLetter.resolver, replace(which, resolver=None), limit=FACET_VALUES),
        error=count_by(session, DeadLetter.failure_type, replace(which, error=None), limit=FACET_VALUES),
    )


def matching(which: DeadLetterFilter, *columns: Any) -> Select[Any]:
    query = select(*columns)
    if which.statuses:
        query = query.where(DeadLetter.status.in_(which.statuses))
    for column, value in (
        (DeadLetter.domain, which.domain),
        (DeadLetter.resolver, which.resolver),
        (DeadLetter.failure_type, which.error),
        (DeadLetter.request_id, which.request_id),
        (DeadLetter.error_code, which.code),
        (DeadLetter.assigned_to, which.assigned_to),
    ):
        if value is not None:
            query = query.where(column == value)
    if which.unassigned:
        query = query.where(DeadLetter.assigned_to.is_(None))
    if which.late:
        query = query.where(is_late(clock.now(), which.sla))
    if which.expired:
        query = query.where(is_expired(clock.now()))
    return query


def is_unresolved() -> ColumnElement[bool]:
    """The condition for dead letters whose work is neither done nor being retried."""
    return DeadLetter.status.in_(UNRESOLVED)


def is_replayable() -> ColumnElement[bool]:
    return (DeadLetter.status == PENDING) & (DeadLetter.retry_count < DeadLetter.max_retries)


def is_expired(at: datetime) -> ColumnElement[bool]:
    """Those that never expire are not expired."""
    return DeadLetter.expires_at <= at


def is_late(at: datetime, sla: Sla) -> ColumnElement[bool]:
    """The condition for dead letters that have been open for as long as their domain allows, or longer."""
    late = [
        and_(DeadLetter.domain == domain, DeadLetter.created_at <= at - sla.get(domain, DEFAULT_SLA))
        for domain in DeadLetterDomain
    ]
    return DeadLetter.status.in_(OPEN) & or_(*late)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [str(each) for each in value]
    return value if isinstance(value, bool) else str(value)


def _id(value: UUID | None) -> str | None:
    return None if value is None else str(value)
