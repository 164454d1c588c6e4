"""When a request must be answered: Art. 12(3) GDPR, counted as Regulation 1182/71 counts."""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

SATURDAY = 5


def due_date(received: datetime, zone: ZoneInfo) -> datetime:
    """The end of the day one calendar month after receipt, moved past a weekend.

    In a month without that day the last day counts: a request received on 31 January is due on 28 or 29
    February.
    """
    day = _month_later(received.astimezone(zone).date())
    while day.weekday() >= SATURDAY:
        day += timedelta(days=1)
    return datetime.combine(day, time(23, 59, 59), zone).astimezone(UTC)


def _month_later(day: date) -> date:
    year, month = (day.year + 1, 1) if day.month == 12 else (day.year, day.month + 1)
    return date(year, month, min(day.day, calendar.monthrange(year, month)[1]))
