"""Counting rows by calendar day, in a time zone, the same way on both databases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Integer, and_, column, func, select, values
from sqlalchemy.orm import Session

from effaced.core.db.columns import UtcDateTime


@dataclass(frozen=True, slots=True)
class Day:
    """One calendar day and how many rows fell on it."""

    date: date
    count: int


def start_of(day: date, zone: ZoneInfo) -> datetime:
    """The first moment of a day in that zone."""
    return datetime.combine(day, time(), tzinfo=zone)


def days_from(first: date, count: int) -> list[date]:
    return [first + timedelta(days=offset) for offset in range(count)]


def count_by_day(
    session: Session, moment: Any, days: Sequence[date], zone: ZoneInfo, *where: ColumnElement[bool]
) -> list[Day]:
    """Rows per day of `days`, zeros included. One index range per day; summer time is respected."""
    listed = values(
        column("n", Integer), column("starts", UtcDateTime), column("ends", UtcDateTime), name="days"
    ).data([(n, start_of(day, zone), start_of(day + timedelta(days=1), zone)) for n, day in enumerate(days)])
    bounds = listed.cte("days")
    hit = and_(moment >= bounds.c.starts, moment < bounds.c.ends, *where)
    query = select(bounds.c.n, func.count()).select_from(bounds).join(moment.class_, hit).group_by(bounds.c.n)
    counts: dict[int, int] = dict(session.execute(query).all())
    return [Day(day, counts.get(n, 0)) for n, day in enumerate(days)]
