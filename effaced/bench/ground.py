"""Where a bench happens: an empty PostgreSQL database with durable commits, left as it was found."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from sqlalchemy import exists, literal, select, table, text

from effaced import migrate
from effaced.bench.floor import Raw, connect_raw
from effaced.core.crypto import Keyring, new_key
from effaced.core.db import Database, parse_url
from effaced.core.errors import ConfigurationError
from effaced.core.servers import postgres_server

RESOLVER = "noop"
BATCH = 200
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ground:
    """The database, the keys of its rows, and how to tell what is going on."""

    url: str
    database: Database
    keys: str
    progress: Progress

    @property
    def keyring(self) -> Keyring:
        return Keyring.parse(self.keys)

    def raw(self) -> Raw:
        return connect_raw(self.database.engine.url)

    def settle_down(self) -> None:
        """Let both sides start from a database that has nothing else to do."""
        with self.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
            connection.execute(text("CHECKPOINT"))

    def clear(self) -> None:
        """Remove every row: the next round must not pay for the last one's."""
        with self.database.begin() as session:
            names = ", ".join(_effaced_tables(self.database))
            # The trail refuses this from everybody else.
            session.execute(text("ALTER TABLE effaced_audit_events DISABLE TRIGGER USER"))
            session.execute(text(f"TRUNCATE {names}"))
            session.execute(text("ALTER TABLE effaced_audit_events ENABLE TRIGGER USER"))


@contextmanager
def prepare(url: str | None, progress: Progress) -> Iterator[Ground]:
    """An empty database with effaced's tables: at `url`, or on a server that is started for the run."""
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
        gc.collect()
        gc.freeze()  # as the worker process does
        stack.callback(gc.unfreeze)
        yield Ground(url, database, new_key(), progress)
        migrate.downgrade(database.engine.url.render_as_string(hide_password=False), "base")


def _require_empty(database: Database) -> None:
    for name in _effaced_tables(database):
        with database.read() as session:
            if session.scalar(select(exists(select(literal(1)).select_from(table(name))))):
                raise ConfigurationError(f"--url: {name} has rows. The bench wants an empty database.")


def _effaced_tables(database: Database) -> list[str]:
    query = text(
        "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        " AND tablename LIKE 'effaced\\_%'"
        " AND tablename NOT IN ('effaced_alembic_version', 'effaced_schema_levels') ORDER BY tablename"
    )
    with database.read() as session:
        return list(session.scalars(query))
