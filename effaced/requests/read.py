"""Reading requests: lists with what is derived (overdue, blocked, waiting), and one request in full."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Select, and_, func, not_, select
from sqlalchemy.orm import Session

from effaced.accounts.tables import ApiKey, Officer
from effaced.core.db.days import Day, count_by_day
from effaced.core.paging import PAGE, Page, after_key, count_up_to, decode, page_of
from effaced.model import AttemptOutcome, CallRole, RequestKind, RequestStatus, SubjectKey
from effaced.notify.target import About
from effaced.outbox.tables import Operation
from effaced.requests.blocks import Block as Block
from effaced.requests.blocks import Blocker as Blocker
from effaced.requests.blocks import blocked_by, blocks_of, has_unverified
from effaced.requests.duplicates import visible_status_sql
from effaced.requests.tables import Approval, Request
from effaced.retries.tables import Attempt

SOON_DAYS = 7


class Due(StrEnum):
    """How close an open request is to its legal deadline. Soon: today or on one of the next seven days."""

    OVERDUE = "overdue"
    SOON = "7d"


class OpenState(StrEnum):
    """What a running request is shown as where its status says too little.

    Not verified: every call has succeeded, but a read-back is due, was given up, or found the data.
    """

    NOT_VERIFIED = "not_verified"


@dataclass(frozen=True, slots=True)
class Steps:
    """A request's external calls: all, those that have succeeded, and those of them that are not verified."""

    total: int = 0
    done: int = 0
    unverified: int = 0


def state_of(status: RequestStatus, steps: Steps) -> RequestStatus | OpenState:
    """What a request is shown as; the filter for a state finds exactly the requests that show it."""
    if status is RequestStatus.RUNNING and steps.unverified and steps.done == steps.total:
        return OpenState.NOT_VERIFIED
    return status


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """Which requests. `open` true or false chooses by whether they are closed; None takes both.

    `by_hand` are the resolvers whose parked entries wait for a person and not for a vendor.
    """

    open: bool | None = None
    status: RequestStatus | OpenState | None = None
    due: Due | None = None
    kind: RequestKind | None = None
    blocked: Blocker | None = None
    ids: tuple[UUID, ...] | None = None
    by_hand: frozenset[str] = frozenset()
    subject: SubjectKey | None = None
    received_from: datetime | None = None
    received_before: datetime | None = None
    api_key_id: UUID | None = None
    """Only what this API key has sent, with the status that it may see."""
    metadata: tuple[str, str] | None = None
    """A name and its value; only open requests have any."""


@dataclass(frozen=True, slots=True)
class RequestLine:
    """One request in a list. `steps` are its external calls; none before it was executed.

    `unverified` of the steps done have a read-back that is due, was given up, or found the data.
    """

    id: UUID
    ref: str
    kind: RequestKind
    status: RequestStatus
    received_at: datetime
    due_at: datetime
    closed_at: datetime | None
    source: str
    steps: int = 0
    steps_done: int = 0
    unverified: int = 0
    blocks: tuple[Block, ...] = ()
    duplicate_of: str | None = None
    """The ref of the request that this one ends with."""

    @property
    def state(self) -> RequestStatus | OpenState:
        return state_of(self.status, Steps(self.steps, self.steps_done, self.unverified))

    def overdue(self, now: datetime) -> bool:
        return self.closed_at is None and self.due_at < now


def list_requests(
    session: Session,
    which: RequestFilter,
    now: datetime,
    *,
    latest_first: bool = False,
    after: str | None = None,
    limit: int = PAGE,
) -> Page[RequestLine]:
    """A page of requests by due date, with what is derived of each."""
    page = find_page(session, which, now, latest_first=latest_first, after=after, limit=limit)
    return Page(tuple(_lines(session, page.items, which.by_hand)), page.next)


def find_page(
    session: Session,
    which: RequestFilter,
    now: datetime,
    *,
    latest_first: bool = False,
    after: str | None = None,
    limit: int = PAGE,
) -> Page[Request]:
    """A page of requests by due date. `now` is in the time zone whose days count."""
    key = (Request.due_at, Request.id)
    order = [column.desc() if latest_first else column.asc() for column in key]
    query = _matching(which, now, Request).order_by(*order).limit(limit + 1)
    if after:
        query = query.where(after_key(key, decode(after, datetime, UUID), descending=latest_first))
    found = list(session.scalars(query))
    return page_of(found, limit, [(each.due_at, each.id) for each in found])


def count_requests(session: Session, which: RequestFilter, now: datetime) -> int:
    return count_up_to(session, _matching(which, now, Request.id))


def received_by_day(session: Session, days: list[date], zone: ZoneInfo) -> list[Day]:
    return count_by_day(session, Request.received_at, days, zone)


def completed_by_day(session: Session, days: list[date], zone: ZoneInfo) -> list[Day]:
    return count_by_day(session, Request.completed_at, days, zone)


def refs_of(session: Session, ids: Iterable[UUID | None]) -> dict[UUID, str]:
    """The short names of these requests."""
    wanted = {each for each in ids if each is not None}
    if not wanted:
        return {}
    found = session.execute(select(Request.id, Request.ref).where(Request.id.in_(wanted)))
    return dict(found.all())


def about_requests(session: Session, ids: Collection[UUID]) -> dict[UUID, About]:
    """What messages say of these requests."""
    query = select(Request.id, Request.ref, Request.metadata_values).where(Request.id.in_(ids))
    return {each: About(ref, metadata or {}) for each, ref, metadata in session.execute(query)}


def senders_of(session: Session, ids: Collection[UUID]) -> dict[UUID, UUID]:
    """The API keys that have sent these requests."""
    query = select(Request.id, Request.api_key_id).where(Request.id.in_(ids), Request.api_key_id.is_not(None))
    return {request_id: key_id for request_id, key_id in session.execute(query) if key_id is not None}


def duplicates_of(session: Session, request_id: UUID) -> tuple[str, ...]:
    """The refs of the requests that end with this one, oldest first."""
    query = select(Request.ref).where(Request.duplicate_of == request_id).order_by(Request.id)
    return tuple(session.scalars(query))


def find_by_ref(session: Session, ref: str) -> Request | None:
    """The request of that name, in whatever case it was typed."""
    if not ref.isprintable():  # PostgreSQL can't even compare a NUL
        return None
    return session.scalar(select(Request).where(Request.ref == ref.strip().upper()))


def line_of(session: Session, request: Request, by_hand: frozenset[str] = frozenset()) -> RequestLine:
    """One request as a list would show it."""
    return _lines(session, [request], by_hand)[0]


def approvals_of(session: Session, request_id: UUID) -> list[Approval]:
    query = select(Approval).where(Approval.request_id == request_id).order_by(Approval.at)
    return list(session.scalars(query))


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """One attempt at an external call, for display."""

    id: int
    entry_id: UUID
    number: int
    resolver: str
    at: datetime
    outcome: AttemptOutcome
    status_code: int | None
    latency_ms: int
    error: str | None
    role: CallRole | None


def last_attempts_of(session: Session, request_id: UUID, *, limit: int) -> list[AttemptLine]:
    """The last attempts of one request, in the order in which they were written down."""
    columns = [getattr(Attempt, name) for name in AttemptLine.__slots__]
    query = select(*columns).where(Attempt.request_id == request_id).order_by(Attempt.id.desc()).limit(limit)
    return [AttemptLine(*row) for row in reversed(session.execute(query).all())]


def list_attempts(
    session: Session, request_id: UUID, *, after: str | None = None, limit: int = PAGE
) -> Page[AttemptLine]:
    """The attempts of one request, in the order in which they were written down: paging misses none."""
    columns = [getattr(Attempt, name) for name in AttemptLine.__slots__]
    query = select(*columns).where(Attempt.request_id == request_id).order_by(Attempt.id).limit(limit + 1)
    if after is not None:
        query = query.where(after_key([Attempt.id], decode(after, int)))
    lines = [AttemptLine(*row) for row in session.execute(query)]
    return page_of(lines, limit, [(line.id,) for line in lines])


# --- how the conditions are made ---


def _matching(which: RequestFilter, now: datetime, *columns: Any) -> Select[Any]:
    query = select(*columns)
    # Whatever is overdue or blocked is open: the words say nothing about a closed request.
    if which.open or which.due or which.blocked:
        query = query.where(Request.closed_at.is_(None))
    if which.open is False:
        query = query.where(Request.closed_at.is_not(None))
    if which.status:
        query = query.where(_in_state(which.status, which.api_key_id))
    if which.api_key_id:
        query = query.where(Request.api_key_id == which.api_key_id)
    if which.subject:
        key = which.subject
        query = query.where(Request.subject_hmac == key.hmac, Request.subject_key_id == key.key_id)
    if which.metadata:
        name, value = which.metadata
        held = Request.metadata_values[name].as_string() == value
        query = query.where(Request.closed_at.is_(None), held)
    if which.received_from:
        query = query.where(Request.received_at >= which.received_from)
    if which.received_before:
        query = query.where(Request.received_at < which.received_before)
    if which.kind:
        query = query.where(Request.kind == which.kind)
    if which.due is Due.OVERDUE:
        query = query.where(Request.due_at < now)
    if which.due is Due.SOON:
        query = query.where(Request.due_at >= now, Request.due_at < _due_soon_before(now))
    if which.blocked:
        query = query.where(blocked_by(which.blocked, which.by_hand))
    return query if which.ids is None else query.where(Request.id.in_(which.ids))


def _in_state(state: RequestStatus | OpenState, api_key_id: UUID | None) -> ColumnElement[bool]:
    """The condition for requests that show this state; see `state_of`."""
    left = select(Operation.request_id).where(Operation.request_id == Request.id, Operation.remaining > 0)
    not_verified = and_(Request.status == RequestStatus.RUNNING, has_unverified(), ~left.exists())
    if isinstance(state, OpenState):
        return not_verified
    shown = Request.status == state if api_key_id is None else visible_status_sql(state)
    return and_(shown, not_(not_verified)) if state is RequestStatus.RUNNING else shown


def _due_soon_before(now: datetime) -> datetime:
    # Deadlines end with a day, so this counts days, as people do, and not hours.
    return datetime.combine(now.date() + timedelta(days=SOON_DAYS + 1), time(), now.tzinfo)


def _lines(session: Session, requests: Sequence[Request], by_hand: frozenset[str]) -> list[RequestLine]:
    """Requests with what has to be looked up elsewhere: one query per kind of fact, not per request."""
    ids = [request.id for request in requests]
    steps = steps_of(session, ids)
    sources = _sources(session, requests)
    blocks = blocks_of(session, requests, by_hand)
    originals = refs_of(session, [request.duplicate_of for request in requests])
    return [
        RequestLine(
            id=request.id,
            ref=request.ref,
            kind=request.kind,
            status=request.status,
            received_at=request.received_at,
            due_at=request.due_at,
            closed_at=request.closed_at,
            source=sources.get(request.api_key_id or request.entered_by, "unknown"),
            steps=steps.get(request.id, Steps()).total,
            steps_done=steps.get(request.id, Steps()).done,
            unverified=steps.get(request.id, Steps()).unverified,
            blocks=tuple(blocks.get(request.id, ())),
            duplicate_of=originals.get(request.duplicate_of) if request.duplicate_of else None,
        )
        for request in requests
    ]


def steps_of(session: Session, ids: Sequence[UUID]) -> dict[UUID, Steps]:
    """The external calls of these requests, counted; those that have none are missing."""
    total, remaining = func.sum(Operation.total), func.sum(Operation.remaining)
    counts = select(Operation.request_id, total, remaining, func.sum(Operation.unverified))
    query = counts.where(Operation.request_id.in_(ids))
    counted = session.execute(query.group_by(Operation.request_id))
    return {
        request_id: Steps(int(all_), int(all_ - left), int(unverified))
        for request_id, all_, left, unverified in counted
    }


def _sources(session: Session, requests: Sequence[Request]) -> dict[UUID | None, str]:
    keys = {request.api_key_id for request in requests}
    people = {request.entered_by for request in requests}
    names = session.execute(select(ApiKey.id, ApiKey.name).where(ApiKey.id.in_(keys - {None})))
    officers = session.execute(select(Officer.id, Officer.name).where(Officer.id.in_(people - {None})))
    return {**dict(names.all()), **dict(officers.all())}
