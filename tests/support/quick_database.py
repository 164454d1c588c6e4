"""Databases of tests. They are many and short-lived, and each would compile all statements anew."""

from __future__ import annotations

from typing import Any

import kept_connections
from psycopg import Connection
from sqlalchemy import Engine, event

from effaced.core.db import Database

_dialects: dict[str, Any] = {}
_compiled: dict[Any, Any] = {}


def open_quickly(url: str, **options: Any) -> Database:
    """A Database whose compiled statements are shared with all others of this process.

    They are kept by dialect object, and each engine makes its own. So all engines get that of the first one.
    Connections to databases that serve several tests are shared with the tests before and after.
    """
    database = Database(url, **options)
    engine = database.engine
    if engine.dialect.name == "postgresql":
        _share_connections(engine)
    if engine.dialect.name not in _dialects:
        with engine.connect():  # which fills in what a dialect learns of its server
            _dialects[engine.dialect.name] = engine.dialect
    engine.dialect = _dialects[engine.dialect.name]
    for each in (database.sessions, database.readers):
        bind = each.kw["bind"]
        bind.dialect = engine.dialect
        bind.update_execution_options(compiled_cache=_compiled)
    return database


def _share_connections(engine: Engine) -> None:
    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: object, _record: object, _arguments: object, asked: dict[str, Any]) -> Connection:
        return kept_connections.connect(**asked)
