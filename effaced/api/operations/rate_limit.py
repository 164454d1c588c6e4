"""How many calls an API key may make in a minute.

Processes count together in Redis where there is one. Without it, and while it is away, each counts for
itself: a limit protects effaced from its callers, so an outage of Redis is no reason to turn them away. What
Redis says decides nothing but whether a call has to wait.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

from flask import Flask
from limits import RateLimitItem, RateLimitItemPerMinute
from limits.storage import MemoryStorage, Storage, storage_from_string
from limits.strategies import SlidingWindowCounterRateLimiter

from effaced.api.operations.problems import RATE_LIMITED, ApiProblem
from effaced.core import clock
from effaced.core.config import Settings
from effaced.core.log import get_logger

_EXTENSION = "effaced_rate_limit"
_ANSWER_WITHIN_S = 0.25
# After Redis has failed: how long it is left alone, so that not every call waits for it.
_PAUSE_S = 30.0
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of a key's calls."""

    limit: int
    remaining: int
    reset_s: int

    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_s),
        }


class RateLimit:
    """Counts calls. `per_minute` 0 counts nothing."""

    def __init__(self, per_minute: int, redis_url: str | None) -> None:
        self._item: RateLimitItem | None = RateLimitItemPerMinute(per_minute) if per_minute else None
        self._own = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._shared = SlidingWindowCounterRateLimiter(_redis(redis_url)) if redis_url else None
        self._paused_until = 0.0

    def count(self, key_id: str) -> Allowance | None:
        """Count one call of this key. Refuses with 429, and says when to come back, one too many."""
        if self._item is None:
            return None
        allowed, allowance = self._hit(self._item, key_id)
        if not allowed:
            raise ApiProblem(
                RATE_LIMITED,
                f"This API key may make {allowance.limit} calls a minute."
                f" Wait {allowance.reset_s} seconds and send this one again.",
                headers={"Retry-After": str(max(1, allowance.reset_s)), **allowance.headers()},
            )
        return allowance

    def _hit(self, item: RateLimitItem, key_id: str) -> tuple[bool, Allowance]:
        if self._shared is not None and clock.monotonic() >= self._paused_until:
            try:
                return _hit(self._shared, item, key_id)
            except Exception as error:  # whatever the client library raises
                self._paused_until = clock.monotonic() + _PAUSE_S
                _log.warning("rate_limit_counts_alone", error=type(error).__name__, seconds=_PAUSE_S)
        return _hit(self._own, item, key_id)


def install(app: Flask, settings: Settings) -> None:
    limit = RateLimit(settings.api_calls_per_minute, settings.redis_url)
    app.extensions[_EXTENSION] = limit


def installed(app: Flask) -> RateLimit:
    found: RateLimit = app.extensions[_EXTENSION]
    return found


def _hit(
    limiter: SlidingWindowCounterRateLimiter, item: RateLimitItem, key_id: str
) -> tuple[bool, Allowance]:
    allowed = limiter.hit(item, key_id)
    reset, remaining = limiter.get_window_stats(item, key_id)
    wait = max(0, math.ceil(reset - clock.system().timestamp()))
    return allowed, Allowance(item.amount, max(0, remaining), wait)


def _redis(url: str) -> Storage:
    """The doorbell's Redis. It is told how long we wait, and hears of the keys by their ids only."""
    path = url.removeprefix("unix://")
    storage = storage_from_string(
        f"redis+unix://{path}" if path != url else url,
        key_prefix="effaced:calls",
        socket_timeout=_ANSWER_WITHIN_S,
        socket_connect_timeout=_ANSWER_WITHIN_S,
    )
    return cast(Storage, storage)
