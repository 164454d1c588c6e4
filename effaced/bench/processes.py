"""Draining in processes of its own: each connects, says that it is ready, and starts when all are."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
from enum import StrEnum
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from threading import BrokenBarrierError

from effaced.bench.floor import connect_raw, drain_raw
from effaced.bench.ground import BATCH, RESOLVER
from effaced.breakers.registry import BreakerRegistry
from effaced.breakers.stores.sql import SqlBreakerStore
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.db import Database, parse_url
from effaced.core.errors import Unavailable
from effaced.requests.complete import complete_operations
from effaced.resolvers.noop import NoopResolver
from effaced.resolvers.protocols import Limits
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.saga.facade import Outbox
from effaced.saga.runner import SagaRunner

_NOBODY = "warm-up"
_START_SECONDS = 120.0
_Told = SimpleQueue[tuple[int, float, float]]


class Side(StrEnum):
    """Who drains."""

    FLOOR = "floor"
    EFFACED = "effaced"


def drain_with(side: Side, number: int, *, url: str, keys: str, entries: int) -> float:
    """Entries per second of so many processes, from the first start to the last end."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(number + 1)
    told: _Told = context.SimpleQueue()
    work = _drain_floor if side is Side.FLOOR else _drain_effaced
    children = [
        context.Process(target=work, args=(url, keys, barrier, told), daemon=True) for _ in range(number)
    ]
    for child in children:
        child.start()
    try:
        barrier.wait(_START_SECONDS)
    except BrokenBarrierError:
        raise Unavailable("A process of the bench did not start.") from None
    for child in children:
        child.join()
    if any(child.exitcode for child in children):
        raise Unavailable("A process of the bench has failed; what it said stands above.")
    ended = [told.get() for _ in children]
    drained = sum(each[0] for each in ended)
    if drained != entries:
        raise Unavailable(f"{drained} of {entries} entries were drained: the figure would mean nothing.")
    return drained / (max(each[2] for each in ended) - min(each[1] for each in ended))


def _drain_floor(url: str, _keys: str, barrier: Barrier, told: _Told) -> None:
    with connect_raw(parse_url(url)) as connection:
        drain_raw(connection, resolver=_NOBODY, batch=BATCH)
        barrier.wait()
        started = clock.monotonic()
        drained = drain_raw(connection, resolver=RESOLVER, batch=BATCH)
        told.put((drained, started, clock.monotonic()))


def _drain_effaced(url: str, keys: str, barrier: Barrier, told: _Told) -> None:
    database = Database(url)
    known = Registered(RESOLVER, "bench", NoopResolver(), Limits(concurrency=BATCH), host="bench.example")
    registry = ResolverRegistry((known,))
    runner = SagaRunner(
        registry,
        Outbox(database.sessions, keyring=Keyring.parse(keys)),
        batch_size=BATCH,
        breakers=BreakerRegistry(SqlBreakerStore(database)),
        on_operations_complete=complete_operations,
    )
    asyncio.run(runner.drain(_NOBODY))
    gc.collect()
    gc.freeze()  # as the worker process does
    barrier.wait()
    started = clock.monotonic()
    drained = asyncio.run(runner.drain(RESOLVER))
    told.put((drained, started, clock.monotonic()))
    database.dispose()
