"""From the commit that enqueues an entry to the claim that takes it, by a worker that has nothing to do."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from uuid import UUID

from sqlalchemy import select, text

from effaced import doorbell
from effaced.bench.ground import RESOLVER, Ground, Progress, prepare
from effaced.bench.latency_floor import job_starts, notifications
from effaced.bench.report import Report, quantiles, ratio
from effaced.core import clock
from effaced.core.config import PREFIX, Settings
from effaced.core.errors import Unavailable
from effaced.core.servers import valkey_server
from effaced.model import OutboxStatus, SubjectRef, new_id
from effaced.outbox.enqueue import Call, enqueue
from effaced.outbox.tables import outbox
from effaced.worker.bell import RqBell

_MAP = """
version: 1
subject: {table: bench_people, key: id}
refs: {person: {column: id}}
tables:
  bench_people: {columns: {id: delete}}
"""
_RESOLVERS = f"version: 1\nresolvers:\n  {RESOLVER}: {{kind: noop, ref: person}}\n"
_PATIENCE = 60.0
_PER_SWEEP = 5
# Long enough for a worker to have put its last job away.
_IDLE = 0.1


def bench_latency(*, samples: int, sweep_seconds: float, url: str | None, progress: Progress) -> Report:
    """With the bell, then without it and a scheduler instead; the floor is the start of an empty RQ job."""
    with ExitStack() as stack:
        ground = stack.enter_context(prepare(url, progress))
        redis_url = stack.enter_context(valkey_server())
        environ = stack.enter_context(_configured(ground, redis_url, sweep_seconds))
        stack.callback(doorbell.install, None)
        progress(f"{samples} empty RQ jobs, one at a time")
        floor = quantiles(job_starts(redis_url, samples))
        progress(f"{samples} notifications, one at a time")
        notify = quantiles(notifications(ground.database.engine.url, samples))
        with _running("worker", environ):
            progress(f"{samples} entries with the bell, one at a time")
            bell = RqBell(Settings.model_construct(redis_url=redis_url))
            _sample(ground, bell, 1, pause=_IDLE)  # the worker has started when it has taken one
            rung = quantiles(_sample(ground, bell, samples, pause=_IDLE))
            progress(f"{samples} entries without the bell, a sweep every {sweep_seconds:g} s")
            with _running("scheduler", environ):
                _sample(ground, None, 1, pause=0)
                gap = sweep_seconds / _PER_SWEEP
                swept = quantiles(_sample(ground, None, samples, pause=gap, together=True))
    lines = (
        f"latency: {rung['p50']:.1f} ms from commit to claim with the bell (p95 {rung['p95']:.1f});"
        f" an empty RQ job starts after {floor['p50']:.1f} ms; ratio {ratio(rung['p50'], floor['p50']):.2f}",
        f"latency: {swept['p50']:.0f} ms with a sweep every {sweep_seconds:g} s alone"
        f" (p95 {swept['p95']:.0f}); LISTEN/NOTIFY would take {notify['p50']:.1f} ms",
    )
    more = {**rung, "floor_is": "start of an empty RQ job in a forking worker", "notify": notify,
            "sweep": {"seconds": sweep_seconds, **swept}}  # fmt: skip
    return Report("latency", samples, rung["p50"], "ms", floor["p50"], lines, more)


def _sample(
    ground: Ground, bell: RqBell | None, samples: int, *, pause: float, together: bool = False
) -> list[float]:
    """Enqueue one entry after the other, each when the last was taken or, `together`, without waiting."""
    committed: dict[UUID, datetime] = {}
    taken: list[float] = []
    for _ in range(samples):
        entry_id, at = _enqueue(ground, bell)
        committed[entry_id] = at
        if not together:
            taken += _taken(ground, committed)
            committed.clear()
        time.sleep(random.uniform(pause / 2, pause * 3 / 2))  # noqa: S311
    return taken + _taken(ground, committed)


def _enqueue(ground: Ground, bell: RqBell | None) -> tuple[UUID, datetime]:
    rung: list[datetime] = []

    def ring(names: frozenset[str]) -> None:
        rung.append(clock.now())  # what rings is called right after the commit
        if bell is not None:
            bell.ring(names)

    doorbell.install(ring)
    call = Call(RESOLVER, SubjectRef("person", "1"))
    with ground.database.begin() as session:
        subject = ground.keyring.subject_key(str(call.entry_id))
        enqueue(session, ground.keyring, new_id(), subject, [call])
    return call.entry_id, rung[0]


def _taken(ground: Ground, committed: dict[UUID, datetime]) -> list[float]:
    """Wait until all of them have ended; how long after its commit each was claimed."""
    deadline = clock.monotonic() + _PATIENCE
    query = select(outbox.c.entry_id, outbox.c.last_attempt_at).where(
        outbox.c.entry_id.in_(list(committed)), outbox.c.status == OutboxStatus.SUCCEEDED
    )
    while True:
        with ground.database.read() as session:
            rows = session.execute(query).all()
        if len(rows) == len(committed):
            return [(row.last_attempt_at - committed[row.entry_id]).total_seconds() for row in rows]
        if clock.monotonic() > deadline:
            raise Unavailable("The worker takes nothing; what it said stands above.")
        time.sleep(0.01)


@contextmanager
def _configured(ground: Ground, redis_url: str, sweep_seconds: float) -> Iterator[dict[str, str]]:
    """What the processes of a fleet need, in their environment; the table goes with it."""
    with tempfile.TemporaryDirectory() as folder:
        datamap, resolvers = Path(folder, "datamap.yaml"), Path(folder, "resolvers.yaml")
        datamap.write_text(_MAP)
        resolvers.write_text(_RESOLVERS)
        with ground.database.begin() as session:
            session.execute(text("CREATE TABLE bench_people (id integer PRIMARY KEY)"))
        others = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        ours = {
            "database_url": ground.url, "redis_url": redis_url, "keys": ground.keys, "log_level": "error",
            "datamap": str(datamap), "resolvers": str(resolvers), "sweep_seconds": str(sweep_seconds),
        }  # fmt: skip
        try:
            yield others | {f"{PREFIX}{name.upper()}": value for name, value in ours.items()}
        finally:
            with ground.database.begin() as session:
                session.execute(text("DROP TABLE IF EXISTS bench_people"))


@contextmanager
def _running(command: str, environ: dict[str, str]) -> Iterator[None]:
    words: Sequence[str] = (sys.executable, "-m", "effaced", command)
    process = subprocess.Popen(words, env=environ, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.returncode:
        raise Unavailable(f"`effaced {command}` ended with {process.returncode}; what it said stands above.")
