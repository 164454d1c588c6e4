"""Statements that travel together: on PostgreSQL in one round trip (libpq's pipeline), else one by one.

What a statement gave can be looked at when the block has ended. Inside the block other code may run
statements through the session too, as long as it does not look at their results.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self, cast
from weakref import WeakKeyDictionary

import psycopg
from sqlalchemy import Executable
from sqlalchemy.engine.interfaces import Compiled
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from effaced.db import is_postgres

_compiled: WeakKeyDictionary[Executable, Compiled] = WeakKeyDictionary()


class Later:
    """What a statement gave: its rows if it asked for any, and how many it changed."""

    def __init__(self, label: str, cursor: psycopg.Cursor[Any] | None = None) -> None:
        self.label = label
        self.cursor = cursor
        self.rows: list[tuple[Any, ...]] = []
        self.count = 0

    def settle(self) -> None:
        if self.cursor is not None:
            self.count = self.cursor.rowcount
            self.rows = self.cursor.fetchall() if self.cursor.description else []
            self.cursor.close()


class Together:
    """A block of statements. `failed` names the one that the database refused, if one was."""

    def __init__(self, session: Session) -> None:
        session.flush()
        self._connection = session.connection()
        self._raw: psycopg.Connection[Any] | None = None
        self._sent: list[Later] = []
        self.failed = ""

    def __enter__(self) -> Self:
        if is_postgres(self._connection):
            self._raw = cast("psycopg.Connection[Any]", self._connection.connection.driver_connection)
            self._pipeline = self._raw.pipeline()
            self._pipeline.__enter__()
        return self

    def run(self, statement: Executable, values: dict[str, Any] | None = None, label: str = "") -> Later:
        """Send a statement. Values go to the driver as they are: no type of effaced's own among them."""
        if self._raw is None:
            return self._run_now(statement, values, label)
        compiled = _compiled.get(statement)
        if compiled is None:
            compiled = _compiled[statement] = statement.compile(dialect=self._connection.dialect)  # type: ignore[attr-defined]
        cursor = self._raw.cursor()
        later = Later(label, cursor)
        self._sent.append(later)
        cursor.execute(str(compiled), compiled.construct_params(values))
        return later

    def _run_now(self, statement: Executable, values: dict[str, Any] | None, label: str) -> Later:
        later = Later(label)
        try:
            result = self._connection.execute(statement, values or {})
        except DBAPIError:
            self.failed = label
            raise
        later.rows = [tuple(row) for row in result] if result.returns_rows else []
        later.count = result.rowcount
        return later

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
            raise self._wrapped(refused) from refused
        if error is None:
            for each in self._sent:
                each.settle()

    def _wrapped(self, error: psycopg.Error) -> BaseException:
        """As SQLAlchemy would have raised it."""
        broken = self._raw is not None and self._raw.broken
        return DBAPIError.instance(
            None, None, error, psycopg.Error, hide_parameters=True, connection_invalidated=broken,
            dialect=self._connection.dialect,
        )  # fmt: skip


def _unanswered(later: Later) -> bool:
    return later.cursor is not None and later.cursor.statusmessage is None
