"""Hourly aggregates: each hour is counted anew until nothing of it can change, then kept for eight days.

An attempt belongs to the hour it began in, and is written down when it has ended. So an hour is counted every
few minutes until two hours after its end, and once more 23 hours after it: then it is final. No attempt is
removed sooner than that, so counting again never finds less.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from sqlalchemy import delete, func, insert, select, text
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.core.db import is_postgres
from effaced.retries.count import HOUR, count_hour, hour_of, known_resolvers
from effaced.retries.figures import Figures, from_columns
from effaced.retries.overrides import ALL
from effaced.retries.tables import attempt_hours, attempts

KEPT = 8 * 24 * HOUR
# Nobody holds a claim for longer than an hour; what an attempt came to is hardly ever written down later.
_SETTLED = 2 * HOUR
_FINAL = 23 * HOUR
# The row of what all the hours came to that are no longer kept.
EARLIER = datetime(1970, 1, 1, tzinfo=UTC)
_LOCK = 0x65666661_686F7572  # "effahour"


def aggregate(session: Session) -> int:
    """Count the hours whose figures may have changed, and store them. Returns how many. 0 if another process
    does.

    All of them in one transaction, so that a sum over hours always counts each attempt once.
    """
    if not _lock_aggregation(session):
        return 0
    now, names = clock.now(), known_resolvers(session)
    open_ = [hour for hour, counted in _hours(session, now) if not _needs_no_count(hour, counted, now)]
    for hour in open_:
        figures = count_hour(session, hour, names)
        session.execute(delete(attempt_hours).where(attempt_hours.c.hour == hour))
        _insert(session, hour, figures)
    _fold_old_hours(session, now)
    return len(open_)


def _fold_old_hours(session: Session, now: datetime) -> None:
    """Add the hours that were kept long enough to the row of what was earlier."""
    old = attempt_hours.c.hour < hour_of(now) - KEPT
    if session.scalar(select(func.max(attempt_hours.c.hour)).where(old)) in (None, EARLIER):
        return
    rows = session.execute(delete(attempt_hours).where(old).returning(*attempt_hours.c)).all()
    total: dict[str, Figures] = {}
    for row in rows:  # the earlier row is among them
        total.setdefault(row.resolver, Figures()).merge(from_columns(row._mapping))
    _insert(session, EARLIER, total)


def final_until(session: Session) -> datetime:
    """All hours before this one are final: their attempts are not needed for counting any more."""
    now = clock.now()
    open_ = (hour for hour, counted in _hours(session, now) if not _is_final(hour, counted))
    return next(open_, hour_of(now))


def _hours(session: Session, now: datetime) -> list[tuple[datetime, datetime | None]]:
    """Every hour since the oldest attempt, at most eight days back, and when it was counted last."""
    begins = [
        session.scalar(select(func.min(attempts.c.at)).where(attempts.c.resolver == name))
        for name in known_resolvers(session)
    ]
    if not begins:
        return []
    first = max(hour_of(min(each for each in begins if each is not None)), hour_of(now) - KEPT)
    counted = counted_hours(session, first)
    number = int((hour_of(now) - first) / HOUR)
    return [(hour, counted.get(hour)) for hour in (first + n * HOUR for n in range(number + 1))]


def counted_hours(session: Session, since: datetime) -> Mapping[datetime, datetime]:
    """When each of the hours was counted last."""
    query = select(attempt_hours.c.hour, attempt_hours.c.computed_at)
    rows = session.execute(query.where(attempt_hours.c.hour >= since, attempt_hours.c.resolver == ALL))
    return dict(rows.all())


def _needs_no_count(hour: datetime, counted: datetime | None, now: datetime) -> bool:
    if counted is None or counted < hour + HOUR + _SETTLED:
        return False
    return _is_final(hour, counted) or now < hour + HOUR + _FINAL


def _is_final(hour: datetime, counted: datetime | None) -> bool:
    return counted is not None and counted >= hour + HOUR + _FINAL


def _lock_aggregation(session: Session) -> bool:
    """False if another process aggregates: the slower one would overwrite newer figures."""
    if not is_postgres(session):
        return True
    return bool(session.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": _LOCK}))


def _insert(session: Session, hour: datetime, figures: Mapping[str, Figures]) -> None:
    rows = [
        {"hour": hour, "resolver": name, "computed_at": clock.now(), **each.columns()}
        for name, each in figures.items()
    ]
    if rows:
        session.execute(insert(attempt_hours), rows)
