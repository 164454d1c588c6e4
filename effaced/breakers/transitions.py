"""Every move of every breaker, one row each: what telemetry, pages and a process without its store read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from sqlalchemy import Select, and_, delete, func, or_, select
from sqlalchemy.orm import Session

from effaced.audit.append import Record, append
from effaced.breakers.model import RESOLVER, BreakerState, CircuitBreakerStateData, Transition
from effaced.breakers.tables import BreakerTransition, transitions
from effaced.core import clock
from effaced.core.paging import PAGE, Page, beyond, cut, decode
from effaced.core.sql import insert_rows

_WAIT_S = 60.0
_FIELDS = tuple(Transition.__dataclass_fields__)
_COLUMNS = [transitions.c[name] for name in _FIELDS]
_IN_ORDER = (transitions.c.at, transitions.c.generation, transitions.c.id)


def keep(session: Session, made: Sequence[Transition], records: Sequence[Record] = ()) -> None:
    """Write moves down, and what the trail has to say of them."""
    insert_rows(session, BreakerTransition, [asdict(each) for each in made])
    append(session, records)


def read(
    session: Session,
    *,
    service_name: str | None = None,
    since: datetime | None = None,
    limit: int | None = None,
) -> list[Transition]:
    """Moves, the latest first."""
    found = select(*_COLUMNS).order_by(transitions.c.id.desc()).limit(limit)
    if service_name is not None:
        found = found.where(transitions.c.service_name == service_name)
    if since is not None:
        found = found.where(transitions.c.at >= since)
    return [Transition(*row) for row in session.execute(found)]


def history(session: Session, since: datetime, until: datetime) -> dict[str, list[Transition]]:
    """Each breaker's moves within that time, the oldest first, and ahead of them the last one before."""
    order = transitions.c.at.desc(), transitions.c.generation.desc(), transitions.c.id.desc()
    place = func.row_number().over(partition_by=transitions.c.service_name, order_by=order).label("place")
    before = select(transitions.c.id, place).where(transitions.c.at < since).subquery()
    last = select(before.c.id).where(before.c.place == 1)
    within = and_(transitions.c.at >= since, transitions.c.at < until)
    found = select(*_COLUMNS).where(or_(within, transitions.c.id.in_(last))).order_by(*_IN_ORDER)
    moves: dict[str, list[Transition]] = {}
    for row in session.execute(found):
        moves.setdefault(row.service_name, []).append(Transition(*row))
    return moves


def page(
    session: Session, names: Collection[str] | None = None, *, after: str | None = None, limit: int = PAGE
) -> Page[Transition]:
    """A page of the moves of these breakers, or of all, the latest first."""
    # By when they were made: with a shared store they may be written down in another order.
    keys = [transitions.c.at, transitions.c.id]
    found = select(transitions.c.id, *_COLUMNS).order_by(*(key.desc() for key in keys)).limit(limit + 1)
    if names is not None:
        found = found.where(transitions.c.service_name.in_(names))
    if after is not None:
        found = found.where(beyond(keys, decode(after, datetime, int), descending=True))
    rows = session.execute(found).all()
    return cut([Transition(*row[1:]) for row in rows], limit, [(row.at, row.id) for row in rows])


def left_closed(session: Session, names: Collection[str]) -> dict[str, datetime]:
    """When each of these breakers last ceased to be closed, as far as that is remembered."""
    moment = func.max(transitions.c.at, type_=transitions.c.at.type)
    found = select(transitions.c.service_name, moment).where(
        transitions.c.service_name.in_(names),
        transitions.c.old == BreakerState.CLOSED,
        transitions.c.new != BreakerState.CLOSED,
    )
    return dict(session.execute(found.group_by(transitions.c.service_name)).all())


def same_moment(session: Session, made: Transition) -> bool:
    """Whether a resolver's breaker went into the same state in the change that `made` belongs to."""
    twin = select(transitions.c.id).where(
        transitions.c.at == made.at,
        transitions.c.new == made.new,
        transitions.c.old != made.new,
        transitions.c.service_name.startswith(f"{RESOLVER}:"),
    )
    return session.scalar(twin.limit(1)) is not None


def remembered(session: Session, names: Collection[str] | None = None) -> dict[str, CircuitBreakerStateData]:
    """Breakers as their latest moves left them, for whoever has nothing better to go by."""
    rows = session.execute(select(*_COLUMNS).where(transitions.c.id.in_(_latest(names))))
    return {row.service_name: _as_left(Transition(*row)) for row in rows}


def forget(session: Session, older_than: timedelta) -> int:
    """Remove old moves but each breaker's latest; how many."""
    old = delete(transitions).where(
        transitions.c.at < clock.now() - older_than, transitions.c.id.not_in(_latest(None))
    )
    return session.connection().execute(old).rowcount


def _latest(names: Collection[str] | None) -> Select[tuple[int]]:
    """The ids of the latest moves. Not the highest ids: with a shared store, moves are written down later
    than they are made, and two processes may do so in the wrong order."""
    order = transitions.c.at.desc(), transitions.c.generation.desc(), transitions.c.id.desc()
    place = func.row_number().over(partition_by=transitions.c.service_name, order_by=order).label("place")
    ranked = select(transitions.c.id, place)
    if names is not None:
        ranked = ranked.where(transitions.c.service_name.in_(names))
    inner = ranked.subquery()
    return select(inner.c.id).where(inner.c.place == 1)


def _as_left(last: Transition) -> CircuitBreakerStateData:
    """As open where it was half open: nobody knows any more which trials are under way."""
    is_open = last.new is not BreakerState.CLOSED
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
        pinned=last.new if last.pinned_until is not None else None,
        controlled_by=last.actor if last.pinned_until is not None else None,
        expires_at=last.pinned_until,
        updated_at=last.at,
    )
