"""The doorbell made of RQ: a job that says which resolver has work, and nothing else.

A resolver has two rung jobs at most, one running and one waiting, so that a ring after the running
job's last empty claim is not lost. Their ids are free again the moment they end. The sweep uses ids of
its own: a drain that crashed keeps its id until its key expires, which may take minutes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from redis import Redis

from effaced.core import clock
from effaced.core.config import Settings
from effaced.worker.job import DELIVER, DRAIN, DoorbellJob, DoorbellQueue


def connect(url: str, *, answer_within: float | None = None) -> Redis:
    """A connection that is made or given up in bounded time.

    Whoever rings must not wait for a Redis that has gone silent; a worker waits for jobs as long as it takes.
    """
    return Redis.from_url(
        url, socket_connect_timeout=2, socket_timeout=answer_within, health_check_interval=30
    )


class RqBell:
    """Rings by putting a job into the queue."""

    def __init__(self, settings: Settings) -> None:
        assert settings.redis_url is not None
        self._queue = DoorbellQueue(connect(settings.redis_url, answer_within=2))

    def ring(self, resolvers: Iterable[str]) -> None:
        """After a commit: enqueue a job per resolver, unless two exist already."""
        for name in sorted(resolvers):
            any(self._enqueue(f"drain-{_id_part(name)}-{slot}", DRAIN, name) for slot in (0, 1))

    def sweep(self, resolvers: Iterable[str]) -> None:
        """From the scheduler: enqueue a job per resolver that has something due, whatever was rung before."""
        tick = int(clock.now().timestamp())
        # Those that wait for a worker already. A crashed job is not among them, so it hides nothing.
        waiting = b" ".join(self._queue.waiting())
        for name in sorted(resolvers):
            if _id_part(name).encode() not in waiting:
                self._enqueue(f"sweep-{_id_part(name)}-{tick}", DRAIN, name)

    def deliver(self) -> None:
        """From the scheduler: enqueue a job that delivers messages, unless one is waiting already."""
        if not any(each.startswith(b"deliver-") for each in self._queue.waiting()):
            self._enqueue(f"deliver-{int(clock.now().timestamp())}", DELIVER)

    def _enqueue(self, job_id: str, function: str, resolver: str = "") -> bool:
        return self._queue.ring(DoorbellJob.new(job_id, function, resolver, self._queue.connection))


def _id_part(resolver: str) -> str:
    # RQ takes only letters, digits, dashes and underscores in ids; resolvers may be called anything.
    return hashlib.sha256(resolver.encode()).hexdigest()[:16]
