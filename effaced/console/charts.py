"""Geometry of the charts. Templates draw it as SVG; the same numbers stand in a table beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from math import ceil, log10

from effaced.core.db.days import Day
from effaced.triage.health import Health


@dataclass(frozen=True, slots=True)
class Flow:
    """How many requests came and how many were completed on one day."""

    date: date
    received: int
    completed: int


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing area with bars, lines across at round numbers, and dates below."""

    width: int
    height: int
    left: int
    base: float
    bars: tuple[Bar, ...]
    across: tuple[Tick, ...]
    below: tuple[Tick, ...]


def flow_chart(days: Sequence[Flow], *, width: int = 640, height: int = 300) -> Chart:
    """Two bars per day: received, completed."""
    frame = _Frame(width, height, len(days), max((max(d.received, d.completed) for d in days), default=0))
    bars = []
    for n, day in enumerate(days):
        for offset, kind, count in ((0, "received", day.received), (1, "completed", day.completed)):
            if count:
                slot = frame.slot * 0.36
                x = frame.x(n) + frame.slot * 0.12 + offset * (slot + frame.slot * 0.04)
                bars.append(frame.bar(x, slot, count, kind, f"{_short(day.date)}: {count} {kind}"))
    return frame.chart(
        bars, [(n, _short(day.date)) for n, day in enumerate(days) if (len(days) - 1 - n) % 7 == 0]
    )


def strip_chart(days: Sequence[Day], *, width: int = 1080, height: int = 110) -> Chart:
    """One bar per day, with months below."""
    frame = _Frame(width, height, len(days), max((day.count for day in days), default=0), lines=2)
    bars = [
        frame.bar(
            frame.x(n) + frame.slot * 0.15,
            frame.slot * 0.7,
            day.count,
            "scheduled",
            f"{_short(day.date)}: {day.count}",
        )
        for n, day in enumerate(days)
        if day.count
    ]
    return frame.chart(bars, [(n, _short(day.date)) for n, day in enumerate(days) if n % 14 == 0])


@dataclass(frozen=True, slots=True)
class Spark:
    """A day in small: two bars per hour, one on the other, and bands behind them."""

    width: int
    height: int
    bars: tuple[Bar, ...]
    bands: tuple[Bar, ...]


def spark(health: Health, window: tuple[datetime, datetime], *, width: int = 288, height: int = 44) -> Spark:
    """Calls per hour; failures stand on successes. A band says that a breaker was not closed."""
    start, end = window
    scale = width / (end - start).total_seconds()
    slot = width / max(len(health.hours), 1)
    most = max((each.succeeded + each.failed for each in health.hours), default=0) or 1
    bars = []
    for n, hour in enumerate(health.hours):
        top = float(height)
        for kind, count in (("went-well", hour.succeeded), ("failed", hour.failed)):
            if count:
                tall = max(2.0, count / most * (height - 4))
                top -= tall
                bars.append(_bar(n * slot + slot * 0.15, top, slot * 0.7, tall, kind, f"{count} {kind}"))
    bands = [
        _bar(
            max(0.0, (span.start - start).total_seconds() * scale),
            0,
            max(2.0, (span.end - max(span.start, start)).total_seconds() * scale),
            height,
            "held",
            "breaker not closed",
        )
        for span in health.spans
    ]
    return Spark(width, height, tuple(bars), tuple(bands))


def _bar(x: float, y: float, width: float, height: float, kind: str, title: str) -> Bar:
    return Bar(round(x, 2), round(y, 2), round(width, 2), round(height, 2), kind, title.replace("-", " "))


class _Frame:
    """The chart area: maps values to coordinates."""

    left, below, above = 30, 22, 10

    def __init__(self, width: int, height: int, slots: int, most: int, *, lines: int = 4) -> None:
        self.width, self.height = width, height
        self.slot = (width - self.left) / max(slots, 1)
        self.base = float(height - self.below)
        self.step = _round_step(most, lines)
        self.top = self.step * max(1, ceil(most / self.step))

    def x(self, slot: int) -> float:
        return self.left + slot * self.slot

    def bar(self, x: float, width: float, count: int, kind: str, title: str) -> Bar:
        height = max(2.0, count / self.top * (self.base - self.above))
        return Bar(round(x, 2), round(self.base - height, 2), round(width, 2), round(height, 2), kind, title)

    def chart(self, bars: list[Bar], dates: list[tuple[int, str]]) -> Chart:
        values = range(0, self.top + 1, self.step)
        across = [
            Tick(round(self.base - v / self.top * (self.base - self.above), 2), f"{v:,}") for v in values
        ]
        below = [Tick(round(self.x(n) + self.slot / 2, 2), text) for n, text in dates]
        return Chart(self.width, self.height, self.left, self.base, tuple(bars), tuple(across), tuple(below))


def _round_step(most: int, lines: int) -> int:
    """A step of 1, 2 or 5 times a power of ten that needs at most so many lines."""
    if most <= lines:
        return 1
    rough = most / lines
    power = 10 ** int(log10(rough))
    return next(int(size * power) for size in (1, 2, 5, 10) if size * power >= rough)


def _short(day: date) -> str:
    return f"{day.day} {day:%b}"
