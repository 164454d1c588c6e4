"""Engine and sessions, for PostgreSQL and SQLite alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.engine import URL, Connection
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, NoSuchModuleError
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import ConnectionPoolEntry

from effaced.core import clock
from effaced.core.arguments import checked
from effaced.core.errors import ConfigurationError
from effaced.core.private_files import make_parents, new_private_file

_READ_ONLY = "effaced_read_only"
_RETURNED = "effaced_returned_at"
_TRUSTED_SECONDS = 1.0


class Database:
    """One database: `begin()` for a transaction that writes, `read()` for one that does not.

    On SQLite a writer takes the write lock when it begins, so that it never has to be told halfway
    that somebody else was faster; readers go on undisturbed (WAL).
    """

    @checked
    def __init__(
        self, url: str | URL, *, pool_size: int = 5, lock_timeout_ms: int = 5_000, only_look: bool = False
    ) -> None:
        self.engine = make_engine(
            url, pool_size=pool_size, lock_timeout_ms=lock_timeout_ms, only_look=only_look
        )
        self.sessions = sessionmaker(self.engine, expire_on_commit=False)
        self.readers = sessionmaker(
            self.engine.execution_options(**{_READ_ONLY: True}), expire_on_commit=False, autoflush=False
        )
        # Of SQLite's transactions nothing travels anywhere, so there is nothing to save.
        alone = {"isolation_level": "AUTOCOMMIT"} if is_postgres(self.engine) else {_READ_ONLY: True}
        self.lookers = sessionmaker(
            self.engine.execution_options(**alone), expire_on_commit=False, autoflush=False
        )

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """A transaction: committed at the end of the block, rolled back if it raises."""
        with self.sessions.begin() as session:
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session that only looks."""
        with self.readers() as session:
            yield session
            # A rollback would have psycopg forget the connection's prepared statements.
            session.expunge_all()
            session.commit()

    @contextmanager
    def look(self) -> Iterator[Session]:
        """A session for one statement that only looks: it costs no round trips for a transaction."""
        with self.lookers() as session:
            yield session

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """A session that only looks, and sees what was committed when it first looked, and nothing later."""
        with self.read() as session:
            if is_postgres(session):
                session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
            yield session

    def dispose(self) -> None:
        self.engine.dispose()


def make_engine(
    url: str | URL, *, pool_size: int = 5, lock_timeout_ms: int = 5_000, only_look: bool = False
) -> Engine:
    """An engine that keeps values out of errors and answers locks in bounded time.

    With `only_look`, a SQLite file keeps the journal that its owner has chosen.
    """
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _sqlite(parsed, pool_size, lock_timeout_ms, only_look=only_look)
    options = (
        f"-c timezone=UTC -c lock_timeout={lock_timeout_ms} -c idle_in_transaction_session_timeout=60000"
    )
    engine = create_engine(
        parsed,
        pool_size=pool_size,
        max_overflow=pool_size,
        hide_parameters=True,
        connect_args={"options": options, "connect_timeout": 10, "application_name": "effaced"},
    )
    _test_idle_connections(engine)
    return engine


def _test_idle_connections(engine: Engine) -> None:
    """Replace connections that were lost while they lay idle; testing each time costs a round trip."""

    @event.listens_for(engine, "checkin")
    def _note(_: object, record: ConnectionPoolEntry) -> None:
        record.info[_RETURNED] = clock.monotonic()

    @event.listens_for(engine, "checkout")
    def _test(dbapi_connection: Any, record: ConnectionPoolEntry, _: object) -> None:
        idle = clock.monotonic() - record.info.get(_RETURNED, clock.monotonic())
        if idle < _TRUSTED_SECONDS:
            return
        try:
            engine.dialect.do_ping(dbapi_connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise DisconnectionError from error


def parse_url(url: str | URL) -> URL:
    """Check a database URL; PostgreSQL always means psycopg 3."""
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, NoSuchModuleError, ValueError):
        backend = ""
    if backend == "postgresql" and "autocommit" in parsed.query:  # the driver would take it
        raise ConfigurationError("EFFACED_DATABASE_URL: effaced needs transactions; leave out autocommit.")
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and parsed.database not in (None, "", ":memory:"):
        return parsed
    raise ConfigurationError(
        "EFFACED_DATABASE_URL: expected postgresql://user:password@host/name or sqlite:///path/to/file.db"
    )


def is_postgres(bind: Session | Connection | Engine) -> bool:
    """Whether this is PostgreSQL (else it is SQLite)."""
    if isinstance(bind, Session):
        bind = bind.get_bind()
    return bind.dialect.name == "postgresql"


def error_code(error: DBAPIError) -> str:
    """The database's own word for what went wrong: `sqlstate_23503`, `sqlite_busy`; empty if it had none."""
    state = getattr(error.orig, "sqlstate", None)
    return f"sqlstate_{state}" if state else getattr(error.orig, "sqlite_errorname", "").lower()


def sqlite_file(url: str | URL) -> Path | None:
    """Where a SQLite database is; None for PostgreSQL and for SQLite's own `file:` addresses."""
    parsed = parse_url(url)
    if parsed.get_backend_name() != "sqlite" or str(parsed.database).startswith("file:"):
        return None
    return Path(str(parsed.database))


def _sqlite(url: URL, pool_size: int, lock_timeout_ms: int, *, only_look: bool) -> Engine:
    file = sqlite_file(url)
    if file and not only_look:
        make_parents(file)
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=pool_size,
        hide_parameters=True,
        # Writers wait for each other here, so this is longer than PostgreSQL's lock_timeout.
        connect_args={"timeout": max(30.0, lock_timeout_ms / 1000)},
    )

    @event.listens_for(engine, "do_connect")
    def _make(*_: object) -> None:
        # -wal, -shm and -journal take the mode of the database's own file.
        if file and not only_look:
            new_private_file(file)

    @event.listens_for(engine, "connect")
    def _prepare(dbapi_connection: Any, _record: object) -> None:
        # pysqlite would begin transactions on its own; `_begin` below does it instead.
        dbapi_connection.isolation_level = None
        cursor = dbapi_connection.cursor()
        cursor.execute("PRAGMA foreign_keys = ON")
        if not only_look:
            cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = FULL")  # what was answered with 201 survives a power cut
        # Without this an INSERT OR REPLACE deletes silently, past the audit trail's triggers.
        cursor.execute("PRAGMA recursive_triggers = ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        read_only = connection.get_execution_options().get(_READ_ONLY, False)
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    return engine
