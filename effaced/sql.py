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
    Text,
    Uuid,
    any_,
    bindparam,
    column,
    func,
    insert,
    literal,
    select,
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
        lot = json.dumps(rows, default=_as_text, separators=(",", ":"))
        connection.execute(_from_json(table, tuple(rows[0])), {"lot": lot})
    else:
        connection.execute(insert(table), list(rows))


def among(session: Session, key: InstrumentedAttribute[Any], ids: Collection[UUID]) -> ColumnElement[bool]:
    """`key IN (ids)`, for few or many."""
    if is_postgres(session):
        array = literal("{" + ",".join(map(str, ids)) + "}", Text())
        return key == any_(sql_cast(array, ARRAY(Uuid())))
    return key.in_(ids)


@lru_cache(maxsize=64)
def _from_json(table: Table, columns: tuple[str, ...]) -> Insert:
    lot = func.json_to_recordset(sql_cast(bindparam("lot", type_=Text()), JSON()))
    cells = lot.table_valued(*(column(name, table.c[name].type) for name in columns)).render_derived(
        with_types=True
    )
    return insert(table).from_select(columns, select(cells), include_defaults=False)


def _as_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    return str(value)
