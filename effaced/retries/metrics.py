"""Retry metrics: summary, time series, and the hourly aggregates they are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.core.db import Database
from effaced.core.errors import Problem, Refused
from effaced.retries.aggregate import KEPT, aggregate, counted_hours
from effaced.retries.count import HOUR, count_hour, hour_of, known_resolvers
from effaced.retries.figures import Figures, from_columns, merged
from effaced.retries.overrides import ALL
from effaced.retries.tables import attempt_hours

MOST_HOURS = 168
DEFAULT_HOURS = 24


@dataclass(frozen=True, slots=True)
class Point:
    """One hour, or the part of it that has passed."""

    hour: datetime
    figures: Figures


def require_hours(hours: int) -> None:
    """Refuse a window longer than the hours that are kept."""
    if not 1 <= hours <= MOST_HOURS:
        said = f"must be between 1 and {MOST_HOURS}"
        raise Refused(f"The number of hours {said}.", problems=[Problem("hours", said, code="out_of_range")])


def read_hours(session: Session, hours: int) -> dict[datetime, Mapping[str, Figures]]:
    """Figures by hour and resolver, the running hour included, and every hour there, if empty.

    What was not counted since its hour ended is counted now, so that nobody has to wait for the scheduler.
    """
    require_hours(hours)
    last = hour_of(clock.now())
    first = last - (hours - 1) * HOUR
    found: dict[datetime, dict[str, Figures]] = {first + n * HOUR: {} for n in range(hours)}
    for row in session.execute(select(attempt_hours).where(attempt_hours.c.hour >= first)):
        if row.hour in found:
            found[row.hour][row.resolver] = from_columns(row._mapping)
    counted, names = counted_hours(session, first), known_resolvers(session)
    for hour in found:
        if hour not in counted or counted[hour] < hour + HOUR:
            found[hour] = count_hour(session, hour, names)
    return dict(found)


def read_timeseries(session: Session, hours: int = DEFAULT_HOURS, resolver: str | None = None) -> list[Point]:
    """One point for each hour, the oldest first; of one resolver or of all."""
    by_hour = read_hours(session, hours)
    return [Point(hour, by_hour[hour].get(resolver or ALL, Figures())) for hour in sorted(by_hour)]


def read_by_resolver(session: Session, hours: int = DEFAULT_HOURS) -> dict[str, Figures]:
    """The figures of each resolver that had attempts, by name; `*` is all of them."""
    by_hour = read_hours(session, hours)
    names = {name for each in by_hour.values() for name in each} | {ALL}
    return {name: merged([each[name] for each in by_hour.values() if name in each]) for name in sorted(names)}


class RetryMetrics:
    """Retry metrics for applications that embed effaced; every method is a transaction of its own."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def aggregate_hourly(self) -> int:
        """Count the hours that may have changed.

        Returns how many. To be called every few minutes, by anybody.
        """
        with self._db.begin() as session:
            return aggregate(session)

    def get_summary(self, hours: int = DEFAULT_HOURS, resolver: str | None = None) -> dict[str, Any]:
        with self._db.read() as session:
            return summary(session, hours, resolver)

    def timeseries(self, hours: int = DEFAULT_HOURS, resolver: str | None = None) -> list[Point]:
        with self._db.read() as session:
            return read_timeseries(session, hours, resolver)


def summary(session: Session, hours: int = DEFAULT_HOURS, resolver: str | None = None) -> dict[str, Any]:
    """The window in short, with each resolver's share of it."""
    by_resolver = read_by_resolver(session, hours)
    shown = {name: each for name, each in by_resolver.items() if name != ALL and resolver in (None, name)}
    return {
        "hours": hours,
        "resolver": resolver,
        **by_resolver.get(resolver or ALL, Figures()).plain(),
        "by_resolver": {name: each.plain() for name, each in shown.items()},
        "retention_hours": int(KEPT / HOUR),
    }
