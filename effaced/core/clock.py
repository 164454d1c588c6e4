"""The only place that reads the time. Tests put a clock of their own in with `pretend`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta


def _system() -> datetime:
    return datetime.now(UTC)


_source: Callable[[], datetime] = _system


def now() -> datetime:
    """The current moment, timezone-aware, in UTC."""
    return _source()


def system() -> datetime:
    """The machine's own time, whatever tests pretend: for libraries that read it themselves."""
    return _system()


def is_pretended() -> bool:
    """Whether tests have set the time: then it is the time of the whole system, databases included."""
    return isinstance(_source, ManualClock)


def monotonic() -> float:
    """Seconds for measuring durations; unrelated to the calendar."""
    return time.monotonic()


def cpu_seconds() -> float:
    """Seconds this process has kept a processor busy, whatever else ran beside it."""
    return time.process_time()


def text(at: datetime | None) -> str | None:
    """A moment in UTC, to the millisecond, as RFC 3339 writes it."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class ManualClock:
    """A clock that moves only when told to."""

    def __init__(self, at: datetime) -> None:
        if at.tzinfo is None:
            raise ValueError("a clock needs a timezone-aware moment")
        self.at = at.astimezone(UTC)

    def __call__(self) -> datetime:
        return self.at

    def advance(self, by: timedelta) -> datetime:
        self.at += by
        return self.at


@contextmanager
def pretend(at: datetime) -> Iterator[ManualClock]:
    """Within the block the whole process lives at `at`, until the clock is advanced."""
    global _source
    before, clock = _source, ManualClock(at)
    _source = clock
    try:
        yield clock
    finally:
        _source = before


@contextmanager
def shift(by: timedelta) -> Iterator[None]:
    """Within the block this process runs on a machine whose clock is wrong by that much. For tests."""
    global _source
    before = _source
    _source = lambda: _system() + by  # noqa: E731
    try:
        yield
    finally:
        _source = before
