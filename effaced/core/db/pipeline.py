"""Statements sent as one pipeline: on PostgreSQL in one round trip (libpq's pipeline mode), else one by one.

Results can be read when the block has ended. Inside the block other code may run statements through the
session too, as long as it does not read their results.
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

# A key of session.info. True if code that runs inside the blocks reads the results of its statements.
NO_PIPELINE = "effaced.no_pipeline"
_compiled: WeakKeyDictionary[Executable, SQLCompiler] = WeakKeyDictionary()


class PendingResult:
    """A statement's result: the rows it returned, and how many it changed. Empty until it has arrived."""

    def __init__(self, label: str = "", cursor: psycopg.Cursor[Any] | None = None) -> None:
        self.label = label
        self.cursor = cursor
        self.rows: list[tuple[Any, ...]] = []
        self.count = 0

    def read(self) -> None:
        if self.cursor is not None:
            self.count = self.cursor.rowcount
            self.rows = self.cursor.fetchall() if self.cursor.description else []
            self.cursor.close()


def run_statement(session: Session, statement: Executable, values: Mapping[str, Any]) -> PendingResult:
    """Run one statement of a hot path. Keep the statement object: it is compiled once.

    On PostgreSQL it goes straight to the driver, because SQLAlchemy's work per statement costs more than
    the statement. So rows come as the driver returns them: a StrEnum column is a plain string.
    """
    connection = session.connection()
    if not is_postgres(connection):
        return _run_now(connection, statement, values)
    cursor = driver_connection(connection).cursor()
    result = PendingResult(cursor=cursor)
    try:
        cursor.execute(*_compile(connection, statement, values))
        result.read()
    except psycopg.Error as error:
        raise _as_sqlalchemy_error(connection, error) from error
    return result


class Pipeline:
    """A block of statements. `failed` is the label of the one that the database refused, if any."""

    def __init__(self, session: Session) -> None:
        session.flush()
        self._one_by_one = bool(session.info.get(NO_PIPELINE))
        self._connection = session.connection()
        self._raw: psycopg.Connection[Any] | None = None
        self._sent: list[PendingResult] = []
        self.failed = ""

    def __enter__(self) -> Self:
        if is_postgres(self._connection) and not self._one_by_one:
            self._raw = driver_connection(self._connection)
            self._pipeline = self._raw.pipeline()
            self._pipeline.__enter__()
        return self

    def run(
        self, statement: Executable, values: Mapping[str, Any] | None = None, label: str = ""
    ) -> PendingResult:
        """Send a statement. Its rows come as `run_statement` returns them."""
        if self._raw is not None:
            cursor = self._raw.cursor()
            self._sent.append(result := PendingResult(label, cursor))
            cursor.execute(*_compile(self._connection, statement, values or {}))
            return result
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
        refused = error if isinstance(error, psycopg.Error) else None  # raised while more was being sent
        try:
            self._pipeline.__exit__(kind, error, trace)
        except psycopg.Error as late:
            refused = refused or late
        if refused is not None:
            # Results arrive in the order of sending, so the first statement without one failed.
            self.failed = next((each.label for each in self._sent if _has_no_result(each)), "")
            raise _as_sqlalchemy_error(self._connection, refused) from refused
        if error is None:
            for each in self._sent:
                each.read()


def driver_connection(connection: Connection) -> psycopg.Connection[Any]:
    """psycopg's own connection."""
    return cast("psycopg.Connection[Any]", connection.connection.driver_connection)


def _compile(
    connection: Connection, statement: Executable, values: Mapping[str, Any]
) -> tuple[str, MutableMapping[str, Any]]:
    """The statement's text and values in the form that the driver expects."""
    compiled = _compiled.get(statement)
    if compiled is None:
        compiled = _compiled[statement] = statement.compile(dialect=connection.dialect)  # type: ignore[attr-defined]
        assert not compiled.post_compile_params, (
            "IN with a list has more than one text: use sql.key_in_bound_ids"
        )
    bound = compiled.construct_params(dict(values))
    for name, process in compiled._bind_processors.items():
        if name in bound:
            bound[name] = process(bound[name])  # type: ignore[operator]
    return str(compiled), bound


def _run_now(connection: Connection, statement: Executable, values: Mapping[str, Any]) -> PendingResult:
    result = PendingResult()
    done = connection.execute(statement, values)
    result.rows = [tuple(row) for row in done] if done.returns_rows else []
    result.count = done.rowcount
    return result


def _as_sqlalchemy_error(connection: Connection, error: psycopg.Error) -> BaseException:
    """The error that SQLAlchemy would have raised."""
    broken = driver_connection(connection).broken
    wrapped = DBAPIError.instance(
        None, None, error, psycopg.Error, hide_parameters=True, connection_invalidated=broken,
        dialect=connection.dialect,
    )  # fmt: skip
    if broken:
        connection.invalidate(error)
    return wrapped


def _has_no_result(result: PendingResult) -> bool:
    return result.cursor is not None and result.cursor.statusmessage is None
