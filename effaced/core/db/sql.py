"""Statements for the hot paths: the same text whatever the number of rows, so that it is prepared once.

On PostgreSQL many rows travel as one JSON value and many ids as one array literal. Both are put together
by compiled code in one go; a bound value per cell costs more than everything the database does with it.
What all rows have in common travels once: of a flush that is most of it.
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
from effaced.core.db.pipeline import run


def insert_rows(session: Session, into: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert many rows at once; all of them name the same columns."""
    if not rows:
        return
    table = cast(Table, into.__table__)
    if is_postgres(session):
        run(session, _insert_from_json(table, tuple(rows[0])), _as_json(table, rows))
    else:
        session.connection().execute(insert(table), list(rows))


def insert_missing(session: Session, into: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows whose primary keys are not there yet, and leave the others as they are."""
    table = cast(Table, into.__table__)
    insert_or_leave = postgres_insert if is_postgres(session) else sqlite_insert
    session.connection().execute(insert_or_leave(table).on_conflict_do_nothing(), list(rows))


def among(
    session: Session, key: ColumnElement[Any] | InstrumentedAttribute[Any], ids: Collection[UUID]
) -> ColumnElement[bool]:
    """`key IN (ids)`, for few or many."""
    if is_postgres(session):
        return key == any_(sql_cast(literal(_array(ids), Text()), ARRAY(Uuid())))
    return key.in_(ids)


def among_ids(key: ColumnElement[Any] | InstrumentedAttribute[Any], *, postgres: bool) -> ColumnElement[bool]:
    """The same for a statement that is kept: it gets its ids from `as_ids` when it is run."""
    if postgres:
        return key == any_(sql_cast(bindparam("ids", type_=Text()), ARRAY(Uuid())))
    return key.in_(bindparam("ids", expanding=True))


def as_ids(session: Session, ids: Collection[UUID]) -> dict[str, Any]:
    return {"ids": _array(ids) if is_postgres(session) else list(ids)}


def _array(ids: Collection[UUID]) -> str:
    return "{" + to_json(list(ids)).decode()[1:-1] + "}"


def update_rows(session: Session, what: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Give many rows, each named by its primary key, new values; all of them name the same columns.

    The caller has locked the rows: nothing is taken in any order here.
    """
    table = cast(Table, what.__table__)
    if is_postgres(session):
        run(session, _update_from_json(table, tuple(rows[0])), _as_json(table, rows))
    else:
        lot = [{f"new_{name}": value for name, value in row.items()} for row in rows]
        session.connection().execute(_update_each(table, tuple(rows[0])), lot)


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
    """The rows of the JSON value `lot`, as rows of the table; what they don't name stands in `common`."""
    nothing: ColumnElement[Any] = literal_column(f"NULL::{table.name}")
    common = func.json_populate_record(nothing, sql_cast(bindparam("common", type_=Text()), JSON()))
    rows = func.json_populate_recordset(common, sql_cast(bindparam("lot", type_=Text()), JSON()))
    return rows.table_valued(*(table.c[name] for name in columns), name="lot")


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
    lot = [{name: row[name] for name in varying} for row in rows]
    for name in _binary(table):
        # JSON has no bytes: they go in the form PostgreSQL reads.
        for row in [common] if name in common else lot if name in varying else ():
            if row[name] is not None:
                row[name] = f"\\x{row[name].hex()}"
    return {"common": to_json(common).decode(), "lot": to_json(lot).decode()}


@lru_cache(maxsize=64)
def _binary(table: Table) -> tuple[str, ...]:
    return tuple(each.name for each in table.columns if isinstance(each.type, LargeBinary))
