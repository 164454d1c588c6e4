"""Batch statements for the hot paths. Their text does not depend on the number of rows: prepared once.

On PostgreSQL the rows are sent as one JSON value and ids as one array literal, both built by compiled code;
a bound parameter per cell costs more than the statement itself. Values that all rows share are sent once: in
a flush, that is most of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast
from uuid import UUID

from pydantic_core import to_json
from sqlalchemy import (
    JSON,
    ColumnElement,
    Insert,
    LargeBinary,
    Table,
    TableValuedAlias,
    Text,
    Update,
    Uuid,
    any_,
    bindparam,
    func,
    insert,
    literal,
    literal_column,
    select,
    update,
)
from sqlalchemy import cast as sql_cast
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.orm import InstrumentedAttribute, Session

from effaced.core.db.columns import Base
from effaced.core.db.engine import is_postgres
from effaced.core.db.pipeline import run_statement


def insert_rows(session: Session, into: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert many rows at once; all of them name the same columns."""
    if not rows:
        return
    table = cast(Table, into.__table__)
    if is_postgres(session):
        run_statement(session, _insert_from_json(table, tuple(rows[0])), _as_json(table, rows))
    else:
        session.connection().execute(insert(table), list(rows))


def insert_missing(session: Session, into: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows whose primary keys are not there yet, and leave the others as they are."""
    table = cast(Table, into.__table__)
    insert_or_leave = postgres_insert if is_postgres(session) else sqlite_insert
    session.connection().execute(insert_or_leave(table).on_conflict_do_nothing(), list(rows))


def key_in(
    session: Session, key: ColumnElement[Any] | InstrumentedAttribute[Any], ids: Collection[UUID]
) -> ColumnElement[bool]:
    """`key IN (ids)`, for few or many."""
    if is_postgres(session):
        return key == any_(sql_cast(literal(_array(ids), Text()), ARRAY(Uuid())))
    return key.in_(ids)


def key_in_bound_ids(
    key: ColumnElement[Any] | InstrumentedAttribute[Any], *, postgres: bool
) -> ColumnElement[bool]:
    """`key_in` for a statement that is built once: `bind_ids` makes the values it is run with."""
    if postgres:
        return key == any_(sql_cast(bindparam("ids", type_=Text()), ARRAY(Uuid())))
    return key.in_(bindparam("ids", expanding=True))


def bind_ids(session: Session, ids: Collection[UUID]) -> dict[str, Any]:
    return {"ids": _array(ids) if is_postgres(session) else list(ids)}


def _array(ids: Collection[UUID]) -> str:
    return "{" + to_json(list(ids)).decode()[1:-1] + "}"


def update_rows(session: Session, what: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Update many rows by primary key; all of them name the same columns.

    The caller must hold the locks: rows are updated in no particular order here.
    """
    table = cast(Table, what.__table__)
    if is_postgres(session):
        run_statement(session, _update_from_json(table, tuple(rows[0])), _as_json(table, rows))
    else:
        batch = [{f"new_{name}": value for name, value in row.items()} for row in rows]
        session.connection().execute(_update_each(table, tuple(rows[0])), batch)


@lru_cache(maxsize=64)
def _insert_from_json(table: Table, columns: tuple[str, ...]) -> Insert:
    return insert(table).from_select(columns, select(_rows_from_json(table, columns)), include_defaults=False)


@lru_cache(maxsize=64)
def _update_from_json(table: Table, columns: tuple[str, ...]) -> Update:
    batch = _rows_from_json(table, columns)
    keys = [each.name for each in table.primary_key]
    return (
        update(table)
        .where(*(table.c[name] == batch.c[name] for name in keys))
        .values({name: batch.c[name] for name in columns if name not in keys})
    )


@lru_cache(maxsize=64)
def _update_each(table: Table, columns: tuple[str, ...]) -> Update:
    keys = [each.name for each in table.primary_key]
    return (
        update(table)
        .where(*(table.c[name] == bindparam(f"new_{name}") for name in keys))
        .values({name: bindparam(f"new_{name}") for name in columns if name not in keys})
    )


def _rows_from_json(table: Table, columns: tuple[str, ...]) -> TableValuedAlias:
    """The JSON parameter `batch` as rows of the table; columns that its rows leave out come from `common`."""
    nothing: ColumnElement[Any] = literal_column(f"NULL::{table.name}")
    common = func.json_populate_record(nothing, sql_cast(bindparam("common", type_=Text()), JSON()))
    rows = func.json_populate_recordset(common, sql_cast(bindparam("batch", type_=Text()), JSON()))
    return rows.table_valued(*(table.c[name] for name in columns), name="batch")


def _as_json(table: Table, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    common: dict[str, Any] = {}
    varying: list[str] = []
    for name, value in rows[0].items():
        for row in rows:
            other = row[name]
            if other is not value and other != value:
                varying.append(name)
                break
        else:
            common[name] = value
    batch = [{name: row[name] for name in varying} for row in rows]
    for name in _binary_columns(table):
        # JSON has no bytes: they go in the form PostgreSQL reads.
        for row in [common] if name in common else batch if name in varying else ():
            if row[name] is not None:
                row[name] = f"\\x{row[name].hex()}"
    return {"common": to_json(common).decode(), "batch": to_json(batch).decode()}


@lru_cache(maxsize=64)
def _binary_columns(table: Table) -> tuple[str, ...]:
    return tuple(each.name for each in table.columns if isinstance(each.type, LargeBinary))
