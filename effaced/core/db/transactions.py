"""Whoever embeds effaced owns the transaction. Here it is refused unless a rollback undoes all of it."""

from __future__ import annotations

import sqlite3
from typing import Any
from weakref import WeakSet

from sqlalchemy import Connection, Engine, event
from sqlalchemy.orm import Session, SessionTransaction, sessionmaker

from effaced.core.errors import ConfigurationError

# How many rows one transaction changes at most, unless the settings say otherwise.
BATCH_ROWS = 20_000

_own: WeakSet[sessionmaker[Session]] = WeakSet()
_AUTOCOMMIT = (
    "The database connection is in AUTOCOMMIT mode, so that nothing could be rolled back and nobody could be"
    ' kept out. Give effaced sessions of an engine without isolation_level="AUTOCOMMIT" and without an'
    " autocommit of the driver."
)
_SAVEPOINT = (
    "The session is in a savepoint (begin_nested), and Python's sqlite3 has not begun a transaction around it"
    " for certain: releasing the savepoint might commit. Have the engine emit BEGIN itself, as SQLAlchemy's"
    " notes on pysqlite and savepoints say, use effaced.library.Database, or call this outside the savepoint."
)


def own_sessions(sessions: sessionmaker[Session]) -> sessionmaker[Session]:
    """Sessions made like the application's, for our own transactions: hooks on them are none of its business.

    They begin by themselves, and refuse AUTOCOMMIT: at once if the engine says so, else when one begins.
    """
    if sessions in _own:
        return sessions
    own = sessionmaker(class_=sessions.class_, **{**sessions.kw, "autobegin": True})
    with own() as session:
        bind = session.get_bind()
    if isinstance(bind, Engine):
        # What create_engine was told is kept in the dialect alone.
        told = getattr(bind.dialect, "_on_connect_isolation_level", None)
        if bind.get_execution_options().get("isolation_level", told) == "AUTOCOMMIT":
            raise ConfigurationError(_AUTOCOMMIT)
    event.listen(own, "after_begin", _refuse_autocommit)
    _own.add(own)
    return own


def require_transaction(connection: Connection) -> None:
    """Refuse AUTOCOMMIT; on SQLite see to it that the transaction has begun.

    Python's sqlite3 by default begins one at the first change only. A savepoint before that is the
    transaction itself, and releasing it commits.
    """
    raw = connection.connection.driver_connection
    if not isinstance(raw, sqlite3.Connection):
        if getattr(raw, "autocommit", False):
            raise ConfigurationError(_AUTOCOMMIT)
        return
    if connection.in_nested_transaction() and not _begins(connection, raw):
        raise ConfigurationError(_SAVEPOINT)
    if raw.in_transaction:
        return
    if raw.isolation_level is None:
        raise ConfigurationError(_AUTOCOMMIT)
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _begins(connection: Connection, raw: sqlite3.Connection) -> bool:
    """Whether the engine or the driver has begun a transaction before any savepoint."""
    if getattr(raw, "autocommit", None) is False:  # Python 3.12: the driver always has one open
        return True
    return raw.isolation_level is None and bool(connection.engine.dispatch.begin)


def _refuse_autocommit(_session: Session, _transaction: SessionTransaction, connection: Connection) -> None:
    raw: Any = connection.connection.driver_connection
    if isinstance(raw, sqlite3.Connection):
        if raw.isolation_level is None and not raw.in_transaction:
            raise ConfigurationError(_AUTOCOMMIT)
    elif getattr(raw, "autocommit", False):
        raise ConfigurationError(_AUTOCOMMIT)
