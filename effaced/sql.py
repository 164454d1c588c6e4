"""Statements for the hot paths: the same text whatever the number of rows, so that it is prepared once.

On PostgreSQL many rows travel as one JSON value and many ids as one array literal. Both are put together
by C code in one go; a bound value per cell costs more than everything the database does with it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, cast
from uuid import UUID

from sqlalchemy import (
    JSON,
    ColumnElement,
    Insert,
    Table,
    TableValuedAlias,
    Text,
    Update,
    Uuid,
    any_,
    bindparam,
    column,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy import cast as sql_cast
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import InstrumentedAttribute, Session

from effaced.db import Base, is_postgres


def insert_rows(session: Session, into: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert many rows at once; all of them name the same columns."""
    if not rows:
        return
    table = cast(Table, into.__table__)
    connection = session.connection()
    if is_postgres(connection):
        connection.execute(_insert_from_json(table, tuple(rows[0])), {"lot": _as_json(rows)})
    else:
        connection.execute(insert(table), list(rows))


def among(
    session: Session, key: ColumnElement[Any] | InstrumentedAttribute[Any], ids: Collection[UUID]
) -> ColumnElement[bool]:
    """`key IN (ids)`, for few or many."""
    if is_postgres(session):
        array = literal("{" + ",".join([each.hex for each in ids]) + "}", Text())
        return key == any_(sql_cast(array, ARRAY(Uuid())))
    return key.in_(ids)


def update_rows(session: Session, what: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Give many rows, each named by its primary key, new values; all of them name the same columns.

    The caller has locked the rows: nothing is taken in any order here.
    """
    table = cast(Table, what.__table__)
    connection = session.connection()
    if is_postgres(connection):
        connection.execute(_update_from_json(table, tuple(rows[0])), {"lot": _as_json(rows)})
    else:
        lot = [{f"new_{name}": value for name, value in row.items()} for row in rows]
        connection.execute(_update_each(table, tuple(rows[0])), lot)


@lru_cache(maxsize=64)
def _insert_from_json(table: Table, columns: tuple[str, ...]) -> Insert:
    return insert(table).from_select(columns, select(_lot(table, columns)), include_defaults=False)


@lru_cache(maxsize=64)
def _update_from_json(table: Table, columns: tuple[str, ...]) -> Update:
    lot = _lot(table, columns)
    keys = [each.name for each in table.primary_key]
    return (
        update(table)
        .where(*(table.c[name] == lot.c[name] for name in keys))
        .values({name: lot.c[name] for name in columns if name not in keys})
    )


@lru_cache(maxsize=64)
def _update_each(table: Table, columns: tuple[str, ...]) -> Update:
    keys = [each.name for each in table.primary_key]
    return (
        update(table)
        .where(*(table.c[name] == bindparam(f"new_{name}") for name in keys))
        .values({name: bindparam(f"new_{name}") for name in columns if name not in keys})
    )


def _lot(table: Table, columns: tuple[str, ...]) -> TableValuedAlias:
    """The rows of the JSON value `lot`, typed as the table's columns are."""
    rows = func.json_to_recordset(sql_cast(bindparam("lot", type_=Text()), JSON()))
    cells = rows.table_valued(*(column(name, table.c[name].type) for name in columns), name="lot")
    return cells.render_derived(with_types=True)


def _as_json(rows: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(rows, default=_as_text, separators=(",", ":"))


def _as_text(value: object) -> str:
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    return str(value)
