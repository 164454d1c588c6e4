"""Statements that travel together: on PostgreSQL in one round trip (libpq's pipeline), else one by one.

What a statement gave can be looked at when the block has ended. Inside the block other code may run
statements through the session too, as long as it does not look at their results.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from types import TracebackType
from typing import Any, Self, cast
from weakref import WeakKeyDictionary

import psycopg
from sqlalchemy import Connection, Executable
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session
from sqlalchemy.sql.compiler import SQLCompiler

from effaced.core.db.engine import is_postgres

# Under this name in session.info: something that runs in the blocks looks at the results of its statements.
ONE_BY_ONE = "effaced.one_by_one"
_compiled: WeakKeyDictionary[Executable, SQLCompiler] = WeakKeyDictionary()


class Later:
    """What a statement gave: its rows if it asked for any, and how many it changed."""

    def __init__(self, label: str = "", cursor: psycopg.Cursor[Any] | None = None) -> None:
        self.label = label
        self.cursor = cursor
        self.rows: list[tuple[Any, ...]] = []
        self.count = 0

    def settle(self) -> None:
        if self.cursor is not None:
            self.count = self.cursor.rowcount
            self.rows = self.cursor.fetchall() if self.cursor.description else []
            self.cursor.close()


def run(session: Session, statement: Executable, values: Mapping[str, Any]) -> Later:
    """One statement by itself, for the hot paths: the caller keeps it, so that it is compiled once.

    On PostgreSQL it goes to the driver, past what SQLAlchemy does for every statement, which costs more
    than the statement. So rows come as the driver makes them: states are plain words.
    """
    connection = session.connection()
    if not is_postgres(connection):
        return _run_now(connection, statement, values)
    cursor = driver_connection(connection).cursor()
    later = Later(cursor=cursor)
    try:
        cursor.execute(*_bound(connection, statement, values))
        later.settle()
    except psycopg.Error as error:
        raise _wrapped(connection, error) from error
    return later


class Together:
    """A block of statements. `failed` names the one that the database refused, if one was."""

    def __init__(self, session: Session) -> None:
        session.flush()
        self._one_by_one = bool(session.info.get(ONE_BY_ONE))
        self._connection = session.connection()
        self._raw: psycopg.Connection[Any] | None = None
        self._sent: list[Later] = []
        self.failed = ""

    def __enter__(self) -> Self:
        if is_postgres(self._connection) and not self._one_by_one:
            self._raw = driver_connection(self._connection)
            self._pipeline = self._raw.pipeline()
            self._pipeline.__enter__()
        return self

    def run(self, statement: Executable, values: Mapping[str, Any] | None = None, label: str = "") -> Later:
        """Send a statement; what it gave is as `run` of this module has it."""
        if self._raw is not None:
            cursor = self._raw.cursor()
            self._sent.append(later := Later(label, cursor))
            cursor.execute(*_bound(self._connection, statement, values or {}))
            return later
        try:
            return _run_now(self._connection, statement, values or {})
        except DBAPIError:
            self.failed = label
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._raw is None:
            return
        refused = error if isinstance(error, psycopg.Error) else None  # told while more was being sent
        try:
            self._pipeline.__exit__(kind, error, trace)
        except psycopg.Error as told:
            refused = refused or told
        if refused is not None:
            # In the order in which they were sent; the first without a result is the one.
            self.failed = next((each.label for each in self._sent if _unanswered(each)), "")
            raise _wrapped(self._connection, refused) from refused
        if error is None:
            for each in self._sent:
                each.settle()


def driver_connection(connection: Connection) -> psycopg.Connection[Any]:
    """psycopg's own connection."""
    return cast("psycopg.Connection[Any]", connection.connection.driver_connection)


def _bound(
    connection: Connection, statement: Executable, values: Mapping[str, Any]
) -> tuple[str, MutableMapping[str, Any]]:
    """Text and values as the driver takes them."""
    compiled = _compiled.get(statement)
    if compiled is None:
        compiled = _compiled[statement] = statement.compile(dialect=connection.dialect)  # type: ignore[attr-defined]
        assert not compiled.post_compile_params, "IN with a list has no one text: see sql.among_ids"
    bound = compiled.construct_params(dict(values))
    for name, process in compiled._bind_processors.items():
        if name in bound:
            bound[name] = process(bound[name])  # type: ignore[operator]
    return str(compiled), bound


def _run_now(connection: Connection, statement: Executable, values: Mapping[str, Any]) -> Later:
    later = Later()
    result = connection.execute(statement, values)
    later.rows = [tuple(row) for row in result] if result.returns_rows else []
    later.count = result.rowcount
    return later


def _wrapped(connection: Connection, error: psycopg.Error) -> BaseException:
    """As SQLAlchemy would have raised it."""
    broken = driver_connection(connection).broken
    wrapped = DBAPIError.instance(
        None, None, error, psycopg.Error, hide_parameters=True, connection_invalidated=broken,
        dialect=connection.dialect,
    )  # fmt: skip
    if broken:
        connection.invalidate(error)
    return wrapped


def _unanswered(later: Later) -> bool:
    return later.cursor is not None and later.cursor.statusmessage is None
