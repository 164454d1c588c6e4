"""Another database: transactions that are bounded in time and can be ended from outside.

It belongs to somebody else. So nothing of it is set up or changed here, no file is made, and no lock is
held longer than a call may take.
"""

from __future__ import annotations

import logging
import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock
from typing import Any, cast
from urllib.parse import quote

import psycopg
from sqlalchemy import Connection, Engine, bindparam, create_engine, event, func, select
from sqlalchemy.engine import URL
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.core.db import is_postgres
from effaced.resolvers.protocols import CallTimeout

_READ_ONLY = "effaced_read_only"
_LOGGER = "other_database"
# So many steps of SQLite's machine lie between two looks at the time.
_STEPS = 50_000


class Span:
    """The time that one call has. `end` ends it early, from another thread."""

    def __init__(self, seconds: float) -> None:
        self._until = clock.monotonic() + seconds
        self._ended = Event()
        self._lock = Lock()
        self._running: psycopg.Connection[Any] | None = None

    @property
    def left(self) -> float:
        return 0.0 if self._ended.is_set() else max(0.0, self._until - clock.monotonic())

    @property
    def is_over(self) -> bool:
        return self.left <= 0

    def require(self) -> None:
        if self.is_over:
            raise CallTimeout("No answer in time.", code="timeout")

    def end(self) -> None:
        """Nothing more is begun or committed; the statement that runs is called off."""
        self._ended.set()
        with self._lock:
            if self._running is not None:
                with suppress(psycopg.Error):
                    self._running.cancel_safe(timeout=1)

    def cut(self) -> None:
        """Break the connection off, where calling off did not help: a network that swallows everything."""
        with self._lock:
            if self._running is not None:
                with suppress(OSError, psycopg.Error):
                    end = socket.socket(fileno=os.dup(self._running.fileno()))
                    with end:
                        end.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def limit(self, connection: Connection) -> Iterator[None]:
        """Stop whatever runs on the connection within the block once this span is over."""
        raw = connection.connection.driver_connection
        if isinstance(raw, sqlite3.Connection):
            raw.set_progress_handler(lambda: self.is_over, _STEPS)
            try:
                yield
            finally:
                raw.set_progress_handler(None, 0)
            return
        self._running = cast("psycopg.Connection[Any]", raw)
        try:
            yield
        finally:
            with self._lock:
                self._running = None


class OtherDatabase:
    """An engine for a database that is not effaced's own."""

    def __init__(self, url: URL, *, connections: int, timeout: float, lock_timeout: float) -> None:
        self._lock_timeout = lock_timeout = min(lock_timeout, timeout)
        make = _sqlite if url.get_backend_name() == "sqlite" else _postgres
        self._engine = make(url, connections, timeout, lock_timeout)
        self._reading = self._engine.execution_options(**{_READ_ONLY: True, "postgresql_readonly": True})

    @contextmanager
    def begin(self, span: Span) -> Iterator[Session]:
        """A transaction: committed at the end of the block if there is time left, else rolled back."""
        with self._session(self._engine, span) as session:
            yield session
            session.flush()
            span.require()
            session.commit()

    @contextmanager
    def read(self, span: Span) -> Iterator[Session]:
        """A transaction that can't change anything."""
        with self._session(self._reading, span) as session:
            yield session

    @contextmanager
    def _session(self, engine: Engine, span: Span) -> Iterator[Session]:
        span.require()
        with Session(engine, expire_on_commit=False) as session:
            connection = session.connection()
            with span.limit(connection):
                try:
                    self._bound(session, span)
                    yield session
                except BaseException:
                    # A call that was called off may have its cancellation still on the way.
                    if span.is_over and is_postgres(connection) and not connection.closed:
                        connection.invalidate()
                    raise

    def _bound(self, session: Session, span: Span) -> None:
        """Tell PostgreSQL how long it has. For this transaction only: a pooler may hand the connection on."""
        if is_postgres(session):
            left = max(1, int(span.left * 1000))
            waits = min(left, int(self._lock_timeout * 1000))
            session.execute(_limits, {"left": f"{left}ms", "waits": f"{waits}ms"})

    def dispose(self) -> None:
        self._engine.dispose()


_limits = select(
    func.set_config("statement_timeout", bindparam("left"), True),
    func.set_config("idle_in_transaction_session_timeout", bindparam("left"), True),
    func.set_config("lock_timeout", bindparam("waits"), True),
    func.set_config("timezone", "UTC", True),
)


def _options(connections: int, timeout: float) -> dict[str, Any]:
    # At its most talkative the engine logs rows. They are people.
    logging.getLogger(f"sqlalchemy.engine.Engine.{_LOGGER}").setLevel(logging.WARNING)
    return {
        "pool_size": connections,
        "max_overflow": 0,
        "pool_timeout": timeout,
        "hide_parameters": True,
        "logging_name": _LOGGER,
    }


def _postgres(url: URL, connections: int, timeout: float, _lock_timeout: float) -> Engine:
    return create_engine(
        url,
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": max(2, min(10, int(timeout))),
            "application_name": "effaced",
            # A host that has gone without a word is noticed, also while nothing is under way.
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": int(timeout * 1000),
        },
        **_options(connections, timeout),
    )


def _sqlite(url: URL, connections: int, timeout: float, lock_timeout: float) -> Engine:
    assert url.database is not None
    name = url.database
    # `rw`: a file that is not there is trouble, not an empty database.
    uri = name if name.startswith("file:") else f"file:{quote(os.path.abspath(name))}?mode=rw"  # noqa: PTH100

    def connect() -> sqlite3.Connection:
        made = sqlite3.connect(uri, uri=True, timeout=lock_timeout, check_same_thread=False)
        made.isolation_level = None  # pysqlite would begin transactions on its own; `_begin` does it
        made.execute("PRAGMA foreign_keys = ON")
        return made

    engine = create_engine(url, creator=connect, **_options(connections, timeout))

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        reads = connection.get_execution_options().get(_READ_ONLY, False)
        connection.exec_driver_sql(f"PRAGMA query_only = {'ON' if reads else 'OFF'}")
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return engine
