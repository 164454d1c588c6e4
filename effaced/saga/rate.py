"""A token bucket: how many calls may start now."""

from __future__ import annotations

from effaced import clock


class RateLimit:
    """At most `per_second` calls a second, with bursts of one second's worth. None means no limit."""

    def __init__(self, per_second: float | None) -> None:
        self._per_second = per_second
        self._burst = max(1.0, per_second or 0.0)
        self._tokens = 1.0  # a drain that is rung for every entry must not start with a burst each time
        self._at = clock.monotonic()

    def allows(self, calls: int) -> int:
        """How many of these calls may start now."""
        if self._per_second is None:
            return max(calls, 0)
        now = clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second)
        self._at = now
        return max(min(calls, int(self._tokens)), 0)

    def spend(self, calls: int) -> None:
        self._tokens -= calls

    def wait(self) -> float:
        """Seconds until the next call may start."""
        if self._per_second is None or self._tokens >= 1:
            return 0.0
        return (1 - self._tokens) / self._per_second
