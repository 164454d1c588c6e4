"""The doorbell made of RQ: a job that says which resolver has work, and nothing else.

A resolver has two rung jobs at most, one running and one waiting, so that a ring after the running
job's last empty claim is not lost. Their ids are free again the moment they end. The sweep uses ids of
its own: a drain that crashed keeps its id until RQ notices, which may take minutes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import cast

from redis import Redis
from rq import Queue
from rq.exceptions import DuplicateJobError
from rq.registry import StartedJobRegistry

from effaced import clock
from effaced.config import Settings

QUEUE = "effaced"
_DRAIN = "effaced.worker.jobs.drain"
_DELIVER = "effaced.worker.jobs.deliver"


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
        self._queue = Queue(QUEUE, connection=connect(settings.redis_url, answer_within=2))
        # RQ's own deadline is a last resort; the job bounds itself well before.
        self._timeout = settings.drain_seconds + settings.lease_seconds

    def ring(self, resolvers: Iterable[str]) -> None:
        """After a commit: a job per resolver, unless two are there already."""
        for name in sorted(resolvers):
            any(self._enqueue(f"drain-{_slug(name)}-{slot}", _DRAIN, name) for slot in (0, 1))

    def sweep(self, resolvers: Iterable[str]) -> None:
        """From the scheduler: a job per resolver that has something due, whatever was rung before."""
        tick = int(clock.now().timestamp())
        # Those that wait for a worker already. A crashed job is not among them, so it hides nothing.
        waiting = " ".join(self._queue.get_job_ids())
        for name in sorted(resolvers):
            if _slug(name) not in waiting:
                self._enqueue(f"sweep-{_slug(name)}-{tick}", _DRAIN, name)

    def deliver(self) -> None:
        """From the scheduler: a job that delivers messages, unless one waits for a worker already."""
        if not any(each.startswith("deliver-") for each in self._queue.get_job_ids()):
            self._enqueue(f"deliver-{int(clock.now().timestamp())}", _DELIVER)

    def _enqueue(self, job_id: str, job: str, *resolver: str) -> bool:
        try:
            self._queue.enqueue_call(
                job,
                args=resolver,
                job_id=job_id,
                unique=True,
                timeout=self._timeout,
                result_ttl=0,
                failure_ttl=0,
                description=job.rpartition(".")[2],
            )
        except DuplicateJobError:
            return False
        return True


def forget_crashed(queue: Queue) -> int:
    """Remove what is left in Redis of jobs whose worker died, so that their ids can be rung again; how many.

    Nothing is run again from here: what such a job had claimed comes back when its lease ends.
    """
    redis, running = queue.connection, StartedJobRegistry(queue=queue).key
    found = cast(list[bytes], redis.zrangebyscore(running, 0, clock.now().timestamp()))
    crashed = [each.decode() for each in found]
    for execution in crashed:
        job_id = execution.partition(":")[0]
        redis.delete(f"rq:job:{job_id}", f"rq:executions:{job_id}", f"rq:execution:{execution}")
        redis.zrem(running, execution)
    return len(crashed)


def _slug(resolver: str) -> str:
    # RQ takes only letters, digits, dashes and underscores in ids; resolvers may be called anything.
    return hashlib.sha256(resolver.encode()).hexdigest()[:16]
