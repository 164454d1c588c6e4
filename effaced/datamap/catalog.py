"""What only the database's own catalog tells, beyond what SQLAlchemy reads: one question per function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    MetaData,
    String,
    Table,
    case,
    false,
    literal_column,
    select,
    text,
    union,
)
from sqlalchemy.exc import OperationalError

Collations = dict[tuple[str, str], str]
"""By table and column."""


@dataclass(frozen=True, slots=True)
class HiddenKey:
    """A foreign key of a PostgreSQL table that is not looked at itself: a partition, or out of sight."""

    name: str
    schema: str
    table: str
    in_sight: bool
    to: str
    on: tuple[tuple[str, str], ...]
    acts: bool


_HIDDEN_KEYS = """
SELECT con.conname, spaces.nspname, child.relname, pg_table_is_visible(child.oid), parent.relname,
  ARRAY(SELECT attname::text FROM unnest(con.conkey) WITH ORDINALITY AS k(number, place)
        JOIN pg_attribute ON attrelid = con.conrelid AND attnum = number ORDER BY place),
  ARRAY(SELECT attname::text FROM unnest(con.confkey) WITH ORDINALITY AS k(number, place)
        JOIN pg_attribute ON attrelid = con.confrelid AND attnum = number ORDER BY place),
  con.confdeltype <> 'a'
FROM pg_constraint con
JOIN pg_class child ON child.oid = coalesce(pg_partition_root(con.conrelid), con.conrelid)
JOIN pg_namespace spaces ON spaces.oid = child.relnamespace
JOIN pg_class parent ON parent.oid = coalesce(pg_partition_root(con.confrelid), con.confrelid)
WHERE con.contype = 'f' AND con.conparentid = 0 AND pg_table_is_visible(parent.oid)
  AND (child.oid <> con.conrelid OR parent.oid <> con.confrelid OR NOT pg_table_is_visible(child.oid))
ORDER BY 2, 3, 1
"""


def hidden_keys(connection: Connection) -> list[HiddenKey]:
    """Foreign keys into tables in sight from those in other schemas, and those of single partitions."""
    return [
        HiddenKey(name, space, table, in_sight, to, tuple(zip(own, other, strict=True)), acts)
        for name, space, table, in_sight, to, own, other, acts in connection.execute(text(_HIDDEN_KEYS))
    ]


def partitions(connection: Connection) -> set[str]:
    """Partitions are reached through the table they are part of."""
    query = text("SELECT relname FROM pg_class WHERE relispartition AND pg_table_is_visible(oid)")
    return set(connection.scalars(query))


def heirs(connection: Connection) -> dict[str, list[str]]:
    """Tables whose statements reach into other tables (INHERITS), and which those are."""
    query = text(
        "SELECT parent.relname, child.oid::regclass::text FROM pg_inherits"
        " JOIN pg_class parent ON parent.oid = inhparent JOIN pg_class child ON child.oid = inhrelid"
        " WHERE NOT child.relispartition AND child.relkind IN ('r', 'f', 'p')"
        " AND pg_table_is_visible(parent.oid) ORDER BY 1, 2"
    )
    found: dict[str, list[str]] = {}
    for parent, child in connection.execute(query):
        found.setdefault(parent, []).append(child)
    return found


def postgres_collations(connection: Connection) -> Collations:
    query = text(
        "SELECT relname, attname, attcollation::regcollation::text FROM pg_attribute"
        " JOIN pg_class c ON c.oid = attrelid"
        " WHERE attcollation <> 0 AND attnum > 0 AND relkind IN ('r', 'p', 'f')"
        " AND pg_table_is_visible(c.oid)"
    )
    return {(table, column): collation for table, column, collation in connection.execute(query)}


def sqlite_collations(connection: Connection, tables: Mapping[str, Iterable[str]]) -> Collations:
    """SQLite tells no column's collation, so each is tried out: a union compares as its first column does.

    Tables with a collation of the company's own making, which can't be compared at all here, are left out.
    """
    found = {}
    for name, columns in tables.items():
        table = Table(name, MetaData(), *(Column(column) for column in columns))
        cells = list(table.c)
        nothing = select(*(cell.label(f"c{i}") for i, cell in enumerate(cells))).where(false())
        # UNION, not UNION ALL: SQLite may not dissolve it, and with it whose collation counts.
        tried = union(nothing, select(*[_word("a") for _ in cells])).subquery()
        try:
            row = connection.execute(select(*[_collation(cell) for cell in tried.c])).one()
        except OperationalError:
            continue
        found.update({(name, cell.name): collation for cell, collation in zip(cells, row, strict=True)})
    return found


def _collation(a: ColumnElement[Any]) -> ColumnElement[str]:
    any_case, any_blanks = (a == _word("A"), _word("NOCASE")), (a == _word("a "), _word("RTRIM"))
    return case(any_case, any_blanks, else_=_word("BINARY"))


def _word(word: str) -> ColumnElement[str]:
    return literal_column(f"'{word}'", String())


def sqlite_expression_uniques(connection: Connection) -> list[tuple[str, str]]:
    """Unique indexes over expressions, which SQLAlchemy passes over: the table and what is indexed."""
    query = text(
        "SELECT m.tbl_name, m.sql FROM sqlite_master m"
        " JOIN pragma_index_list(m.tbl_name) l ON l.name = m.name"
        " WHERE m.type = 'index' AND l.\"unique\""
        " AND EXISTS (SELECT 1 FROM pragma_index_info(m.name) i WHERE i.cid = -2) ORDER BY m.name"
    )
    return [(table, sql.partition("(")[2]) for table, sql in connection.execute(query)]
