"""Moments in words: absolute and relative, in the zone the settings name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from effaced.requests.read import SOON_DAYS

_STEPS = ((60, 60, "minute"), (3_600, 24, "hour"), (86_400, 60, "day"), (2_592_000, 24, "month"))


def day(value: date) -> str:
    return f"{value.day} {value:%b %Y}"


def absolute(value: datetime, zone: ZoneInfo) -> str:
    """12 Mar 2026, 14:05"""
    local = value.astimezone(zone)
    return f"{day(local)}, {local:%H:%M}"


def relative(value: datetime, now: datetime) -> str:
    """in 3 days, 2 hours ago, now"""
    seconds = (value - now).total_seconds()
    size, unit = _rounded(abs(seconds))
    if size == 0:
        return "now" if seconds >= 0 else "just now"
    amount = f"{size} {unit}{'' if size == 1 else 's'}"
    return f"in {amount}" if seconds > 0 else f"{amount} ago"


def countdown(until: datetime, now: datetime) -> str:
    return duration((until - now).total_seconds())


def duration(seconds: float) -> str:
    """45 s, 4 min 10 s, 2 h 5 min, 3 days; never less than 0 s"""
    seconds = max(0, round(seconds))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3_600:
        return f"{seconds // 60} min {seconds % 60} s"
    if seconds < 2 * 86_400:
        return f"{seconds // 3_600} h {seconds % 3_600 // 60} min"
    return _days(seconds // 86_400)


def length(seconds: float) -> str:
    """30 s, 15 min, 1 h, 25 days: a setting in the largest unit that fits it evenly."""
    for size, unit in ((86_400, "day"), (3_600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return _days(count) if unit == "day" else f"{count} {unit}"
    return f"{seconds:g} s"


def _rounded(seconds: float) -> tuple[int, str]:
    if seconds < 45:
        return 0, ""
    for length, most, unit in _STEPS:
        size = round(seconds / length) or 1
        if size < most:
            return size, unit
    return round(seconds / 31_536_000) or 1, "year"


@dataclass(frozen=True, slots=True)
class Deadline:
    """A legal deadline as people say it. `days` is negative once it has passed."""

    date: str
    days: int
    words: str
    tone: str
    icon: str


def deadline(due: datetime, now: datetime, zone: ZoneInfo, *, closed: datetime | None = None) -> Deadline:
    """A deadline runs to the end of a day, so it is told in days; a closed request was in time or late."""
    # One that ends at midnight belongs to the day before.
    last = (due - timedelta(microseconds=1)).astimezone(zone).date()
    days = (last - (closed or now).astimezone(zone).date()).days
    late = (closed or now) > due
    if closed is not None:
        words = f"{_days(max(1, -days))} late" if late else "in time"
        return Deadline(day(last), days, words, "bad" if late else "quiet", "alert" if late else "check")
    if late:
        return Deadline(day(last), min(days, -1), f"{_days(max(1, -days))} overdue", "bad", "alert")
    words = {0: "today", 1: "tomorrow"}.get(days, f"in {_days(days)}")
    soon = days <= SOON_DAYS
    return Deadline(day(last), days, words, "warn" if soon else "quiet", "clock")


def _days(count: int) -> str:
    return f"{count} day{'' if count == 1 else 's'}"
