"""When to try again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """Doubling delays up to a ceiling, without jitter: claims already spread the runners."""

    base_delay: timedelta = timedelta(seconds=30)
    max_delay: timedelta = timedelta(hours=1)
    lease: timedelta = timedelta(minutes=5)

    def __post_init__(self) -> None:
        if not timedelta(0) < self.base_delay <= self.max_delay <= timedelta(hours=24):
            raise ValueError("base_delay must be positive and at most max_delay, max_delay at most 24 hours")

    def delay(self, attempts: int) -> timedelta:
        """The wait after the n-th try: base_delay after the first, doubling from there."""
        if attempts < 1:
            raise ValueError("attempts counts from one")
        # Past 40 doublings any base is beyond any ceiling; stop before the multiplication overflows.
        factor: int = 2 ** min(attempts - 1, 40)
        return min(self.base_delay * factor, self.max_delay)
