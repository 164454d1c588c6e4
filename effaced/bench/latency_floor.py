"""How fast others are told: RQ's own job start, and PostgreSQL's LISTEN/NOTIFY.

The first is the floor of the doorbell, which is made of RQ. The second is what could be had without Redis,
by a process that keeps a connection open and does nothing but listen.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from typing import Any

from rq import Queue, Worker
from rq.serializers import JSONSerializer
from sqlalchemy import URL

from effaced.bench.floor import connect_raw
from effaced.core import clock
from effaced.core.errors import Unavailable
from effaced.worker.bell import connect

_QUEUE = "effaced-bench"
_CHANNEL = "effaced_bench"
_PATIENCE = 60
# Long enough for the other side to be idle again.
_IDLE = 0.1


def job_starts(redis_url: str, samples: int) -> list[float]:
    """Seconds from an enqueue to the first line of the job, in a worker that forks and has all imported."""
    taken: list[float] = []
    with closing(connect(redis_url)) as redis, _child(_work, redis_url):
        queue = Queue(_QUEUE, connection=redis, serializer=JSONSerializer)
        for _ in range(samples + 1):
            enqueued = clock.now().timestamp()
            queue.enqueue_call(record_start, args=(redis_url,), result_ttl=0, failure_ttl=0)
            told: Any = redis.blpop([_CHANNEL], timeout=_PATIENCE)
            if told is None:
                raise Unavailable("RQ's worker did not start a job.")
            taken.append(float(told[1]) - enqueued)
            time.sleep(_IDLE)
    return taken[1:]  # the first waited for the worker to come up


def record_start(redis_url: str) -> None:
    """The empty job: it records only that it has started."""
    started = clock.now().timestamp()
    with closing(connect(redis_url)) as redis:
        redis.rpush(_CHANNEL, str(started))


def notifications(url: URL, samples: int) -> list[float]:
    """Seconds from a commit with NOTIFY to the moment another process has it."""
    taken: list[float] = []
    with connect_raw(url) as connection, _child(_listen, url) as other:
        for _ in range(samples + 1):
            connection.execute(f"NOTIFY {_CHANNEL}")
            connection.commit()
            committed = clock.now().timestamp()
            if not other.poll(_PATIENCE):
                raise Unavailable("Nobody heard a notification.")
            taken.append(max(0.0, other.recv() - committed))  # it may have it before we have our answer
            time.sleep(_IDLE)
    return taken[1:]


def _work(redis_url: str, ready: Connection) -> None:
    connection = connect(redis_url)
    queue = Queue(_QUEUE, connection=connection, serializer=JSONSerializer)
    worker = Worker([queue], connection=connection, serializer=JSONSerializer)
    ready.send(None)
    worker.work(logging_level="WARNING")


def _listen(url: URL, ready: Connection) -> None:
    connection = connect_raw(url)
    connection.autocommit = True
    connection.execute(f"LISTEN {_CHANNEL}")
    ready.send(None)
    for _ in connection.notifies():
        ready.send(clock.now().timestamp())


@contextmanager
def _child(work: Any, address: Any) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=work, args=(address, theirs), daemon=True)
    child.start()
    try:
        if not ours.poll(_PATIENCE):
            raise Unavailable("A process of the bench did not start.")
        ours.recv()
        yield ours
    finally:
        child.terminate()
        child.join()
