"""How many calls an API key may make in a minute.

Processes count together in Redis where there is one. Without it, and while it is away, each counts for
itself: a limit protects effaced from its callers, so an outage of Redis is no reason to turn them away. What
Redis says decides nothing but whether a call has to wait, and for a minute at most.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import cast

from flask import Flask
from limits import RateLimitItem, RateLimitItemPerMinute
from limits.storage import MemoryStorage, RedisStorage, Storage
from limits.strategies import SlidingWindowCounterRateLimiter
from redis.backoff import NoBackoff
from redis.retry import Retry

from effaced.api.operations.problems import RATE_LIMITED, ApiProblem
from effaced.core import clock
from effaced.core.config import Settings
from effaced.core.log import get_logger

PREFIX = "effaced:calls"
ANSWER_WITHIN_S = 0.25
# After Redis has failed: how long it is left alone, so that not every call waits for it.
PAUSE_S = 30.0
_WINDOW_S = 60
_EXTENSION = "effaced_rate_limit"
_log = get_logger(__name__)
Counted = tuple[bool, "Allowance"]


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
        self._asker = _Asker()
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
                headers={"Retry-After": str(allowance.reset_s), **allowance.headers()},
            )
        return allowance

    def _hit(self, item: RateLimitItem, key_id: str) -> Counted:
        shared = self._shared
        if shared is not None and clock.monotonic() >= self._paused_until:
            try:
                return self._asker.ask(lambda: _hit(shared, item, key_id))
            except Exception as error:  # whatever the client library raises
                self._paused_until = clock.monotonic() + PAUSE_S
                _log.warning("rate_limit_counts_alone", error=type(error).__name__, seconds=PAUSE_S)
        return _hit(self._own, item, key_id)


class _Asker:
    """Asks Redis on a thread of its own.

    A socket's timeout begins again with every byte, so a server that sends one now and then could keep a call
    waiting for ever. Here the caller leaves when its time is up, and nobody waits until the thread is back.
    """

    def __init__(self) -> None:
        self._questions: SimpleQueue[tuple[Future[Counted], Callable[[], Counted]]] = SimpleQueue()
        self._process = 0
        self._late: Future[Counted] | None = None

    def ask(self, question: Callable[[], Counted]) -> Counted:
        if self._process != os.getpid():  # threads do not survive a fork
            self._process, self._questions, self._late = os.getpid(), SimpleQueue(), None
            Thread(target=_answer_questions, args=(self._questions,), daemon=True).start()
        if self._late is not None and not self._late.done():
            raise TimeoutError
        answer: Future[Counted] = Future()
        self._questions.put((answer, question))
        try:
            return answer.result(timeout=ANSWER_WITHIN_S)
        except TimeoutError:
            if not answer.cancel():
                self._late = answer
            raise


def _answer_questions(questions: SimpleQueue[tuple[Future[Counted], Callable[[], Counted]]]) -> None:
    while True:
        answer, question = questions.get()
        if not answer.set_running_or_notify_cancel():
            continue
        try:
            answer.set_result(question())
        except Exception as error:
            answer.set_exception(error)


def install(app: Flask, settings: Settings) -> None:
    limit = RateLimit(settings.api_calls_per_minute, settings.redis_url)
    app.extensions[_EXTENSION] = limit


def installed(app: Flask) -> RateLimit:
    found: RateLimit = app.extensions[_EXTENSION]
    return found


def _hit(limiter: SlidingWindowCounterRateLimiter, item: RateLimitItem, key_id: str) -> Counted:
    allowed = limiter.hit(item, key_id)
    reset, remaining = limiter.get_window_stats(item, key_id)
    wait = math.ceil(reset - clock.system().timestamp())
    # Within bounds, whatever stands in Redis.
    return allowed, Allowance(item.amount, min(max(0, remaining), item.amount), min(max(1, wait), _WINDOW_S))


def _redis(url: str) -> Storage:
    """The doorbell's Redis. It hears of the keys by their ids only."""
    path = url.removeprefix("unix://")
    storage = RedisStorage(
        f"redis+unix://{path}" if path != url else url,
        key_prefix=PREFIX,
        socket_timeout=ANSWER_WITHIN_S,
        socket_connect_timeout=ANSWER_WITHIN_S,
        retry=Retry(NoBackoff(), 0),  # type: ignore[arg-type]  # goes to the client as it is
    )
    return cast(Storage, storage)
