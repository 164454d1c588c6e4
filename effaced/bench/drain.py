"""How fast one process carries entries from pending to settled, against the raw SQL floor."""

from __future__ import annotations

import asyncio
import gc
import statistics
from collections.abc import Callable
from contextlib import ExitStack

from sqlalchemy import text

from effaced import clock, migrate
from effaced.bench.fill import fill
from effaced.bench.floor import connect_raw, drain_raw
from effaced.bench.report import Report
from effaced.crypto import Keyring, new_key
from effaced.db import Database, parse_url
from effaced.errors import ConfigurationError
from effaced.requests.complete import complete_operations
from effaced.resolvers.noop import NoopResolver
from effaced.resolvers.protocols import Limits
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.saga.facade import Outbox
from effaced.saga.runner import SagaRunner
from effaced.servers import postgres_server

RESOLVER = "noop"
BATCH = 200
_ROUNDS = 2


def bench_drain(*, entries: int, url: str | None, progress: Callable[[str], None]) -> Report:
    """Drain `entries` entries through the runner and through the floor, by turns, in one database."""
    with ExitStack() as stack:
        if url is None:
            progress("starting a PostgreSQL (durable commits)")
            url = stack.enter_context(postgres_server(durable=True))
        if parse_url(url).get_backend_name() != "postgresql":
            raise ConfigurationError("--url: the bench compares with raw SQL on PostgreSQL; give its URL.")
        migrate.upgrade(url)
        database = Database(url)
        stack.callback(database.dispose)
        _require_empty(database)
        keyring = Keyring.parse(new_key())
        gc.collect()
        gc.freeze()  # as the worker process does
        rates: dict[str, list[float]] = {"floor": [], "effaced": []}
        for number in range(_ROUNDS):
            for what in rates:
                progress(f"round {number + 1} of {_ROUNDS}: {what}")
                fill(database, keyring, entries=entries, resolver=RESOLVER)
                _settle_down(database)
                started = clock.monotonic()
                drained = _floor(database) if what == "floor" else _effaced(database, keyring)
                rates[what].append(drained / (clock.monotonic() - started))
        _remove(database)
    value, floor = statistics.median(rates["effaced"]), statistics.median(rates["floor"])
    return Report("drain", entries, round(value, 1), "entries/s", round(floor, 1), round(value / floor, 3))


def _floor(database: Database) -> int:
    with connect_raw(database.engine.url) as c:
        return drain_raw(c, resolver=RESOLVER, batch=BATCH)


def _effaced(database: Database, keyring: Keyring) -> int:
    registry = ResolverRegistry((Registered(RESOLVER, "bench", NoopResolver(), Limits(concurrency=BATCH)),))
    runner = SagaRunner(
        registry,
        Outbox(database.sessions, keyring=keyring),
        batch_size=BATCH,
        on_operations_complete=complete_operations,
    )
    return asyncio.run(runner.drain(RESOLVER))


def _require_empty(database: Database) -> None:
    with database.read() as session:
        if session.scalar(text("SELECT count(*) FROM effaced_outbox")):
            raise ConfigurationError("--url: this database has outbox entries. The bench wants an empty one.")


def _settle_down(database: Database) -> None:
    # Both sides start from a database that has nothing else to do.
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE effaced_outbox, effaced_requests, effaced_operations"))
        connection.execute(text("CHECKPOINT"))


def _remove(database: Database) -> None:
    migrate.downgrade(database.engine.url.render_as_string(hide_password=False), "base")
