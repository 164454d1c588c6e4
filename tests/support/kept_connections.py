"""PostgreSQL connections that outlive a test: a new one starts a server process with empty caches.

What a test closes, a later one takes, once its database was emptied and the session's state discarded.
Within a test a connection that is closed is not opened again, so that it still sees a new session.
"""

from __future__ import annotations

import os
from typing import Any

import psycopg
from psycopg.abc import AdaptContext
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

# Enough for nearly all tests; each is a process of the server.
_MOST = 4
# By database: those of the tests before, and those that the present test has closed.
_free: dict[str, list[KeptConnection]] = {}
_closed: dict[str, list[KeptConnection]] = {}


class KeptConnection(psycopg.Connection[Any]):
    """A connection whose `close` keeps it, if its database is one that is kept."""

    asked: dict[str, Any]
    owner: int

    def close(self) -> None:
        left = _closed.get(self.asked["dbname"])
        idle = self.pgconn.transaction_status == TransactionStatus.IDLE
        if left is None or not idle or self.owner != os.getpid():
            super().close()
        elif self not in left:
            left.append(self)


def connect(*, context: AdaptContext | None = None, **asked: Any) -> KeptConnection:
    """A connection with these parameters, of an earlier test if there is one."""
    free = _free.get(asked["dbname"], [])
    for connection in reversed(free):
        if connection.asked == asked and connection.owner == os.getpid():
            free.remove(connection)
            connection._adapters = AdaptersMap(context.adapters) if context else None
            return connection
    made = KeptConnection.connect(context=context, **asked)
    made.asked, made.owner = asked, os.getpid()
    return made


def keep(database: str) -> None:
    """From now on, connections to this database are kept."""
    _free.setdefault(database, [])
    _closed.setdefault(database, [])


def any_of(url: str) -> KeptConnection:
    """A connection to this database, whatever its other parameters."""
    asked = conninfo_to_dict(url)
    for kept in (_closed, _free):
        if connections := kept.get(asked["dbname"]):
            return connections.pop()
    return connect(**asked)


def server_processes(database: str) -> list[int]:
    """Of the connections that are kept, and not in use."""
    kept = (*_free.get(database, ()), *_closed.get(database, ()))
    return [each.info.backend_pid for each in kept]


def renew(database: str) -> None:
    """Make the connections that the test has closed as good as new, for the next one."""
    closed, free = _closed.get(database, []), _free.get(database, [])
    while closed:
        connection = closed.pop()
        connection.autocommit = True
        connection.execute("DISCARD ALL")
        # psycopg has to forget too: settings, handlers, prepared statements.
        connection.__init__(connection.pgconn)  # type: ignore[misc]
        free.append(connection)
    while len(free) > _MOST:
        psycopg.Connection.close(free.pop(0))


def close_all(database: str) -> None:
    """Close them, and keep no others."""
    for kept in (_free, _closed):
        for connection in kept.pop(database, ()):
            psycopg.Connection.close(connection)
