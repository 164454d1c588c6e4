"""Whether and how fast a resolver may be called: pauses and the rate limit, shared by all processes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    String,
    bindparam,
    cast,
    exists,
    insert,
    literal_column,
    null,
    select,
    union_all,
    update,
)
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.events import ResolverPaused, ResolverResumed
from effaced.audit.notes import NoteRef, note_fields
from effaced.core.db import Json, dbtime, is_postgres
from effaced.core.db.pipeline import run_statement
from effaced.doorbell import ring_after_commit
from effaced.model import PolicyScope
from effaced.notify import notices
from effaced.notify.write import announce
from effaced.outbox.tables import Flow, flow
from effaced.retries.overrides import rate_in_force
from effaced.retries.tables import policies

ALL = "*"
BY_OFFICER = "officer"
CREDENTIALS_REFUSED = "credentials_refused"
_SECOND = timedelta(seconds=1)
# Asked before every claim, in one go: what is paused, and whose rate somebody has changed.
_MINE = [bindparam("resolver", type_=String()), literal_column(f"'{ALL}'")]
_IS_PAUSED = flow.c.paused_at.is_not(None) & (
    flow.c.paused_until.is_(None) | (flow.c.paused_until > dbtime.NOW)
)
_STANDING = union_all(
    select(literal_column("'pause'"), cast(null(), Json)).where(flow.c.resolver.in_(_MINE), _IS_PAUSED),
    select(policies.c.scope, policies.c.body).where(
        policies.c.kind == literal_column("'rate'"),
        policies.c.scope.in_([literal_column("'resolver'"), literal_column("'global'")]),
        policies.c.key.in_(_MINE),
    ),
)


def unpaused(resolver: ColumnElement[str]) -> ColumnElement[bool]:
    """The condition that a resolver is not paused, for the claim's own statement.

    So a pause that commits together with an entry that is released is seen together with it, or neither is.
    """
    return ~exists().where(flow.c.resolver.in_([resolver, literal_column(f"'{ALL}'")]), _IS_PAUSED)


@dataclass(frozen=True, slots=True)
class Pause:
    """Why nothing of a resolver (or of all, under the name `*`) is claimed, who decided it, until when."""

    resolver: str
    at: datetime
    until: datetime | None
    by: str
    code: str
    note_id: UUID | None


def pause(
    session: Session,
    resolver: str,
    *,
    actor: str,
    code: str = BY_OFFICER,
    note: NoteRef | None = None,
    until: datetime | None = None,
) -> bool:
    """Stop claiming entries of the resolver; calls in flight finish. False if it was paused already."""
    row = lock(session, resolver)
    now = dbtime.now(session)
    if _holds(row, now):
        return False
    session.execute(
        update(flow)
        .where(flow.c.resolver == resolver)
        .values(
            paused_at=now,
            paused_until=until,
            paused_by=actor,
            pause_code=code,
            note_id=note.note_id if note else None,
        )
    )
    event = ResolverPaused(resolver=resolver, code=code, until=until, **note_fields(note))
    append_one(session, event, actor=actor)
    announce(session, [notices.ResolverPaused(resolver=resolver, code=code, until=until)])
    return True


def resume(session: Session, resolver: str, *, actor: str, note: NoteRef | None = None) -> bool:
    """Let the resolver be called again. False if it was not paused."""
    if not _holds(lock(session, resolver), dbtime.now(session)):
        return False
    ended = dict.fromkeys(("paused_at", "paused_until", "paused_by", "pause_code", "note_id"))
    session.execute(update(flow).where(flow.c.resolver == resolver).values(ended))
    append_one(session, ResolverResumed(resolver=resolver, **note_fields(note)), actor=actor)
    ring_after_commit(session, _due(session) if resolver == ALL else {resolver})
    return True


def pauses(session: Session) -> dict[str, Pause]:
    """What is paused now, by name; `*` stands for everything."""
    now = dbtime.now(session)
    rows = session.execute(select(flow).where(flow.c.paused_at.is_not(None)).order_by(flow.c.resolver))
    return {
        row.resolver: Pause(
            row.resolver, row.paused_at, row.paused_until, row.paused_by, row.pause_code, row.note_id
        )
        for row in rows
        if _holds(row, now)
    }


@dataclass(frozen=True, slots=True)
class FlowState:
    """Whether a resolver is paused, and its rate limits if people have changed them."""

    paused: bool
    own_rate: float | None = None
    common_rate: float | None = None

    def rate(self, configured: float | None) -> float | None:
        """Calls per second, in force now; None without a limit."""
        return rate_in_force(self.own_rate, configured, self.common_rate)


def flow_state(session: Session, resolver: str) -> FlowState:
    """The resolver's pause and rate limits, in one query."""
    paused = False
    rates: dict[str, float | None] = {}
    values = {"resolver": resolver, **dbtime.from_now(session)}
    for what, body in run_statement(session, _STANDING, values).rows:
        if what == "pause":
            paused = True
        else:
            rates[what] = body.get("rate_per_second")
    return FlowState(paused, rates.get(PolicyScope.RESOLVER), rates.get(PolicyScope.GLOBAL))


def not_paused(session: Session, resolvers: Iterable[str]) -> set[str]:
    """Those of the resolvers that are not paused."""
    held = pauses(session)
    return set() if ALL in held else set(resolvers) - set(held)


def _due(session: Session) -> set[str]:
    from effaced.outbox.due import due_resolvers  # which asks here who is paused

    return due_resolvers(session)


class Booking:
    """The calls of one resolver that its rate limit allows now; the row stays locked meanwhile.

    `booked_until` is when the limit would be free again if calls went out evenly. A second's worth may be
    booked ahead, so that calls need not be claimed one by one.
    """

    def __init__(self, session: Session, resolver: str, per_second: float, cost: int = 1) -> None:
        self._session, self._resolver = session, resolver
        self._each = cost / per_second
        booked_until = lock(session, resolver).booked_until
        now = dbtime.now(session)  # not before the lock was given: that may have taken a while
        most = max(_SECOND.total_seconds(), self._each)
        # Nobody books further ahead than that. If it looks so, the clock was set back since: begin anew.
        if booked_until is not None and booked_until - now > timedelta(seconds=most) + _SECOND:
            booked_until = None
        self._from = max(booked_until or now, now)
        ahead = most - (self._from - now).total_seconds()
        self.room = max(0, int(ahead / self._each + 1e-9))
        self.wait = 0.0 if self.room else self._each - ahead

    def take(self, calls: int) -> None:
        """Count this many calls against the limit."""
        if calls:
            booked = self._from + timedelta(seconds=self._each * calls)
            self._session.execute(
                update(flow).where(flow.c.resolver == self._resolver).values(booked_until=booked)
            )


def lock(session: Session, resolver: str) -> Flow:
    """The resolver's row, created when first needed, locked until the transaction ends."""
    found = session.get(Flow, resolver, with_for_update=True, populate_existing=True)
    if found is None:
        if is_postgres(session):
            from sqlalchemy.dialects.postgresql import insert as insert_or_leave

            session.execute(insert_or_leave(flow).values(resolver=resolver).on_conflict_do_nothing())
        else:
            session.execute(insert(flow).values(resolver=resolver))
        found = session.get_one(Flow, resolver, with_for_update=True, populate_existing=True)
    return found


def _holds(row: object, now: datetime) -> bool:
    paused_at, until = getattr(row, "paused_at", None), getattr(row, "paused_until", None)
    return paused_at is not None and (until is None or until > now)
