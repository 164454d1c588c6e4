"""How a system did over the last day: rate, p95, last success, and an hour-by-hour picture of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from effaced.breakers import transitions
from effaced.breakers.model import BreakerState, CircuitBreakerStateData, Transition
from effaced.core import clock
from effaced.model import AttemptOutcome
from effaced.retries.count import HOUR, hour_of
from effaced.retries.figures import P95, Figures, merged
from effaced.retries.metrics import read_hours
from effaced.retries.tables import attempts

HOURS = 24
# A breaker that flutters all day makes a few thousand moves; more than that would draw nothing more.
_MOST_MOVES = 5_000
_FAILED = (AttemptOutcome.FAILURE, AttemptOutcome.TIMEOUT)


@dataclass(frozen=True, slots=True)
class Hour:
    """One hour of calls, and how many of its minutes a breaker was not closed."""

    at: datetime
    succeeded: int
    failed: int
    held_minutes: int


@dataclass(frozen=True, slots=True)
class Span:
    """A time in which a breaker was not closed."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Health:
    """`rate` is a share from 0 to 1; None where nothing was called."""

    rate: float | None
    p95_ms: float | None
    last_success: datetime | None
    hours: tuple[Hour, ...]
    spans: tuple[Span, ...]

    @property
    def calls(self) -> int:
        return sum(each.succeeded + each.failed for each in self.hours)


def read_health(
    session: Session,
    breakers_of: Mapping[str, Sequence[str]],
    rows: Mapping[str, CircuitBreakerStateData],
) -> dict[str, Health]:
    """The last 24 hours of these systems, whatever their number: a handful of statements for all."""
    by_hour = read_hours(session, HOURS)
    since = min(by_hour)
    moved = _moves(session, since)
    successes = _last_successes(session, by_hour)
    return {
        name: _health(name, by_hour, _spans(names, moved, rows, since), successes.get(name))
        for name, names in breakers_of.items()
    }


def _health(
    name: str,
    by_hour: Mapping[datetime, Mapping[str, Figures]],
    spans: tuple[Span, ...],
    last: datetime | None,
) -> Health:
    hours = tuple(_hour(at, by_hour[at].get(name), spans) for at in sorted(by_hour))
    total = merged([each[name] for each in by_hour.values() if name in each])
    good, bad = sum(each.succeeded for each in hours), sum(each.failed for each in hours)
    rate = good / (good + bad) if good + bad else None
    return Health(rate, total.latency.quantile(P95), last, hours, spans)


def _hour(at: datetime, figures: Figures | None, spans: Sequence[Span]) -> Hour:
    outcomes = figures.outcomes if figures else {}
    held = sum((_within(span, at) for span in spans), timedelta(0))
    return Hour(
        at,
        outcomes.get(AttemptOutcome.SUCCESS, 0),
        sum(outcomes.get(each, 0) for each in _FAILED),
        min(60, round(held.total_seconds() / 60)),
    )


def _within(span: Span, hour: datetime) -> timedelta:
    return max(timedelta(0), min(span.end, hour + HOUR) - max(span.start, hour))


def _last_successes(
    session: Session, by_hour: Mapping[datetime, Mapping[str, Figures]]
) -> dict[str, datetime]:
    """Exactly when, looked for only in the hour that is known to have one."""
    latest: dict[str, datetime] = {}
    for hour in sorted(by_hour):
        for name, figures in by_hour[hour].items():
            if figures.outcomes.get(AttemptOutcome.SUCCESS, 0):
                latest[name] = hour
    where = [
        and_(attempts.c.resolver == name, attempts.c.at >= hour, attempts.c.at < hour + HOUR)
        for name, hour in latest.items()
        if name != "*"
    ]
    if not where:
        return {}
    moment = func.max(attempts.c.at, type_=attempts.c.at.type)
    found = select(attempts.c.resolver, moment).where(
        or_(*where), attempts.c.outcome == AttemptOutcome.SUCCESS
    )
    return dict(session.execute(found.group_by(attempts.c.resolver)).all())


def _moves(session: Session, since: datetime) -> dict[str, list[Transition]]:
    found: dict[str, list[Transition]] = defaultdict(list)
    for each in transitions.read(session, since=since, limit=_MOST_MOVES):
        found[each.service_name].append(each)
    for moves in found.values():
        moves.sort(key=lambda each: (each.at, each.generation))
    return found


def _spans(
    names: Sequence[str],
    moved: Mapping[str, list[Transition]],
    rows: Mapping[str, CircuitBreakerStateData],
    since: datetime,
) -> tuple[Span, ...]:
    found: list[Span] = []
    for name in names:
        found += _spans_of(moved.get(name, []), rows.get(name), since)
    return _joined(found)


def _spans_of(
    moves: Sequence[Transition], row: CircuitBreakerStateData | None, since: datetime
) -> list[Span]:
    """From the state before the first move on; a breaker that has not moved is as it is."""
    now = clock.now()
    state = moves[0].old if moves else row.state if row else BreakerState.CLOSED
    start = since if state is not BreakerState.CLOSED else None
    found: list[Span] = []
    for move in moves:
        closed = move.new is BreakerState.CLOSED
        if not closed and start is None:
            start = move.at
        elif closed and start is not None:
            found.append(Span(start, move.at))
            start = None
    return [*found, Span(start, now)] if start is not None else found


def _joined(spans: list[Span]) -> tuple[Span, ...]:
    """A resolver's and its host's times as one."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda each: each.start):
        if found and span.start <= found[-1].end:
            found[-1] = Span(found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(span)
    return tuple(found)


def window() -> tuple[datetime, datetime]:
    """The picture's first moment and its last."""
    first = hour_of(clock.now()) - (HOURS - 1) * HOUR
    return first, first + HOURS * HOUR
