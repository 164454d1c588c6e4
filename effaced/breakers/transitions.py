"""The log of all transitions: read by telemetry and pages, and by processes whose shared store is away."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from sqlalchemy import Select, and_, delete, func, or_, select
from sqlalchemy.orm import Session

from effaced.audit.append import Record, append
from effaced.breakers.model import (
    RESOLVER,
    RETRY_AFTER,
    BreakerEvent,
    BreakerState,
    CircuitBreakerStateData,
    Transition,
)
from effaced.breakers.tables import BreakerTransition, transitions
from effaced.core import clock
from effaced.core.db.sql import insert_rows
from effaced.core.paging import PAGE, Page, after_key, decode, page_of

_WAIT_S = 60.0
_PINS = (BreakerEvent.FORCED_OPEN, BreakerEvent.FORCED_CLOSED)
_FIELDS = tuple(Transition.__dataclass_fields__)
_COLUMNS = [transitions.c[name] for name in _FIELDS]
_IN_ORDER = (transitions.c.at, transitions.c.generation, transitions.c.id)


def write(session: Session, made: Sequence[Transition], records: Sequence[Record] = ()) -> None:
    """Append transitions, and the audit events that belong to them."""
    insert_rows(session, BreakerTransition, [asdict(each) for each in made])
    append(session, records)


def read(
    session: Session,
    *,
    service_name: str | None = None,
    since: datetime | None = None,
    limit: int | None = None,
) -> list[Transition]:
    """Transitions, newest first."""
    found = select(*_COLUMNS).order_by(transitions.c.id.desc()).limit(limit)
    if service_name is not None:
        found = found.where(transitions.c.service_name == service_name)
    if since is not None:
        found = found.where(transitions.c.at >= since)
    return [Transition(*row) for row in session.execute(found)]


def history(session: Session, since: datetime, until: datetime) -> dict[str, list[Transition]]:
    """Each breaker's transitions in this period, oldest first, preceded by the last one before it."""
    order = transitions.c.at.desc(), transitions.c.generation.desc(), transitions.c.id.desc()
    place = func.row_number().over(partition_by=transitions.c.service_name, order_by=order).label("place")
    before = select(transitions.c.id, place).where(transitions.c.at < since).subquery()
    last = select(before.c.id).where(before.c.place == 1)
    within = and_(transitions.c.at >= since, transitions.c.at < until)
    found = select(*_COLUMNS).where(or_(within, transitions.c.id.in_(last))).order_by(*_IN_ORDER)
    by_name: dict[str, list[Transition]] = {}
    for row in session.execute(found):
        by_name.setdefault(row.service_name, []).append(Transition(*row))
    return by_name


def page(
    session: Session, names: Collection[str] | None = None, *, after: str | None = None, limit: int = PAGE
) -> Page[Transition]:
    """A page of the transitions of these breakers, or of all, newest first."""
    # By the time of the transition: with a shared store, rows may be written in another order.
    keys = [transitions.c.at, transitions.c.id]
    found = select(transitions.c.id, *_COLUMNS).order_by(*(key.desc() for key in keys)).limit(limit + 1)
    if names is not None:
        found = found.where(transitions.c.service_name.in_(names))
    if after is not None:
        found = found.where(after_key(keys, decode(after, datetime, int), descending=True))
    rows = session.execute(found).all()
    return page_of([Transition(*row[1:]) for row in rows], limit, [(row.at, row.id) for row in rows])


def not_closed_since(session: Session, names: Collection[str]) -> dict[str, datetime]:
    """When each of these breakers last stopped being closed, as far as the log reaches."""
    moment = func.max(transitions.c.at, type_=transitions.c.at.type)
    found = select(transitions.c.service_name, moment).where(
        transitions.c.service_name.in_(names),
        transitions.c.old == BreakerState.CLOSED,
        transitions.c.new != BreakerState.CLOSED,
    )
    return dict(session.execute(found.group_by(transitions.c.service_name)).all())


def same_moment(session: Session, made: Transition) -> bool:
    """Whether a resolver's breaker made the same move in the change that `made` belongs to."""
    same = select(transitions.c.id).where(
        transitions.c.at == made.at,
        transitions.c.new == made.new,
        transitions.c.old != made.new,
        transitions.c.service_name.startswith(f"{RESOLVER}:"),
    )
    return session.scalar(same.limit(1)) is not None


def last_known(session: Session, names: Collection[str] | None = None) -> dict[str, CircuitBreakerStateData]:
    """Breakers as their latest transitions left them. A deleted one has the reason `deleted`."""
    rows = session.execute(select(*_COLUMNS).where(transitions.c.id.in_(_latest(names))))
    return {row.service_name: _row_after(Transition(*row)) for row in rows}


def delete_old(session: Session, older_than: timedelta) -> int:
    """Delete old transitions, except each breaker's latest; returns how many."""
    old = delete(transitions).where(
        transitions.c.at < clock.now() - older_than, transitions.c.id.not_in(_latest(None))
    )
    return session.connection().execute(old).rowcount


def _latest(names: Collection[str] | None) -> Select[tuple[int]]:
    """The ids of the latest transitions. Not the highest ids: with a shared store, two processes may write
    their transitions in the wrong order."""
    order = transitions.c.at.desc(), transitions.c.generation.desc(), transitions.c.id.desc()
    place = func.row_number().over(partition_by=transitions.c.service_name, order_by=order).label("place")
    ranked = select(transitions.c.id, place)
    if names is not None:
        ranked = ranked.where(transitions.c.service_name.in_(names))
    inner = ranked.subquery()
    return select(inner.c.id).where(inner.c.place == 1)


def _row_after(last: Transition) -> CircuitBreakerStateData:
    """Half-open becomes open: nobody knows any more which trials are in progress."""
    # A pin without an end is known by its transition alone.
    is_pinned = last.pinned_until is not None or last.reason in _PINS
    is_open, is_hold = last.new is not BreakerState.CLOSED, last.reason == RETRY_AFTER
    retry_at = last.retry_at
    if last.new is BreakerState.HALF_OPEN:
        retry_at = last.at + timedelta(seconds=last.reset_timeout_s or _WAIT_S)
    return CircuitBreakerStateData(
        last.service_name,
        state=BreakerState.OPEN if is_open else BreakerState.CLOSED,
        opened_at=last.at if is_open else None,
        retry_at=retry_at if is_open else None,
        reset_timeout_s=last.reset_timeout_s,
        reason=last.reason,
        generation=last.generation,
        pinned=last.new if is_pinned else None,
        controlled_by=last.actor if is_pinned else None,
        control_reason=last.control_reason if is_pinned else None,
        expires_at=last.pinned_until,
        cooldown_since=last.at if is_hold else None,
        cooldown_until=last.retry_at if is_hold else None,
        cooldown_reason=last.reason if is_hold else None,
        updated_at=last.at,
    )
