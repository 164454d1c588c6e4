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
class PostgresKey:
    """A foreign key of PostgreSQL. One from or to a partition is given as the whole table's."""

    name: str
    table: str
    to: str
    on: tuple[tuple[str, str], ...]
    acts: bool


def _name(relation: str) -> str:
    """SQL for a table's name in the map: plain if it is on the search path, else with its schema."""
    return (
        f"CASE WHEN pg_table_is_visible({relation}.oid) THEN {relation}.relname::text"  # noqa: S608
        # Not as ::regnamespace writes it, which puts quotes around names with capitals.
        f" ELSE (SELECT nspname FROM pg_namespace WHERE oid = {relation}.relnamespace)"
        f" || '.' || {relation}.relname END"
    )


NAME_OF_C = _name("c")


# SQLAlchemy reads them from a text, which names with commas and brackets defeat.
_KEYS = f"""
SELECT con.conname, {_name("child")}, {_name("parent")},
  ARRAY(SELECT attname::text FROM unnest(con.conkey) WITH ORDINALITY AS k(number, place)
        JOIN pg_attribute ON attrelid = con.conrelid AND attnum = number ORDER BY place),
  ARRAY(SELECT attname::text FROM unnest(con.confkey) WITH ORDINALITY AS k(number, place)
        JOIN pg_attribute ON attrelid = con.confrelid AND attnum = number ORDER BY place),
  con.confdeltype <> 'a'
FROM pg_constraint con
JOIN pg_class child ON child.oid = coalesce(pg_partition_root(con.conrelid), con.conrelid)
JOIN pg_class parent ON parent.oid = coalesce(pg_partition_root(con.confrelid), con.confrelid)
WHERE con.contype = 'f' AND con.conparentid = 0
ORDER BY 2, 3, 1
"""  # noqa: S608


def foreign_keys(connection: Connection) -> list[PostgresKey]:
    """All foreign keys of the database, including those of tables that are not on the search path."""
    return [
        PostgresKey(name, table, to, tuple(zip(own, other, strict=True)), acts)
        for name, table, to, own, other, acts in connection.execute(text(_KEYS))
    ]


def search_path(connection: Connection) -> list[str]:
    """The schemas whose tables need no prefix."""
    return list(connection.scalar(text("SELECT current_schemas(false)")) or ())


def partitions(connection: Connection) -> set[str]:
    """The names of all partitions. They are reached through the table they are part of."""
    return set(connection.scalars(text(f"SELECT {_name('c')} FROM pg_class c WHERE relispartition")))  # noqa: S608


def inheriting_tables(connection: Connection) -> dict[str, list[str]]:
    """By table, those that inherit from it (INHERITS): its statements would change their rows too."""
    query = text(
        f"SELECT {_name('parent')}, child.oid::regclass::text FROM pg_inherits"  # noqa: S608
        " JOIN pg_class parent ON parent.oid = inhparent JOIN pg_class child ON child.oid = inhrelid"
        " WHERE NOT child.relispartition AND child.relkind IN ('r', 'f', 'p') ORDER BY 1, 2"
    )
    found: dict[str, list[str]] = {}
    for parent, child in connection.execute(query):
        found.setdefault(parent, []).append(child)
    return found


def postgres_collations(connection: Connection) -> Collations:
    """The collation of each column that has one."""
    query = text(
        f"SELECT {_name('c')}, attname, attcollation::regcollation::text FROM pg_attribute"  # noqa: S608
        " JOIN pg_class c ON c.oid = attrelid"
        " WHERE attcollation <> 0 AND attnum > 0 AND relkind IN ('r', 'p', 'f')"
        " AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
    )
    return {(table, column): collation for table, column, collation in connection.execute(query)}


def sqlite_collations(connection: Connection, tables: Mapping[str, Iterable[str]]) -> Collations:
    """The collation of each column. SQLite does not tell it, so each column's comparisons are tried out.

    Tables with a collation of the company's own making can't be compared at all here, and are left out.
    """
    found = {}
    for name, columns in tables.items():
        table = Table(name, MetaData(), *(Column(column) for column in columns))
        cells = list(table.c)
        nothing = select(*(cell.label(f"c{i}") for i, cell in enumerate(cells))).where(false())
        # UNION, not UNION ALL: SQLite may not dissolve it, and with it whose collation counts.
        tried = union(nothing, select(*[_text_literal("a") for _ in cells])).subquery()
        try:
            row = connection.execute(select(*[_collation(cell) for cell in tried.c])).one()
        except OperationalError:
            continue
        found.update({(name, cell.name): collation for cell, collation in zip(cells, row, strict=True)})
    return found


def _collation(a: ColumnElement[Any]) -> ColumnElement[str]:
    any_case, any_blanks = (
        (a == _text_literal("A"), _text_literal("NOCASE")),
        (a == _text_literal("a "), _text_literal("RTRIM")),
    )
    return case(any_case, any_blanks, else_=_text_literal("BINARY"))


def _text_literal(word: str) -> ColumnElement[str]:
    return literal_column(f"'{word}'", String())


def sqlite_expression_uniques(connection: Connection) -> list[tuple[str, str]]:
    """Unique indexes over expressions, which SQLAlchemy skips: the table and the indexed SQL."""
    query = text(
        "SELECT m.tbl_name, m.sql FROM sqlite_master m"
        " JOIN pragma_index_list(m.tbl_name) l ON l.name = m.name"
        " WHERE m.type = 'index' AND l.\"unique\""
        " AND EXISTS (SELECT 1 FROM pragma_index_info(m.name) i WHERE i.cid = -2) ORDER BY m.name"
    )
    return [(table, sql.partition("(")[2]) for table, sql in connection.execute(query)]


def sqlite_keys(connection: Connection) -> list[tuple[str, str, list[tuple[str, str | None]], bool]]:
    """Foreign keys: the table, the one it points at, pairs of columns, and whether ON DELETE does anything.

    A pair that names no column of the other table means its primary key.
    """
    query = text(
        'SELECT m.name, k.id, k."table", k."from", k."to", k.on_delete <> \'NO ACTION\''
        " FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) k WHERE m.type = 'table'"
        " ORDER BY m.name, k.id, k.seq"
    )
    found: dict[tuple[str, int], tuple[str, str, list[tuple[str, str | None]], bool]] = {}
    for table, number, to, own, other, acts in connection.execute(query):
        found.setdefault((table, number), (table, to, [], bool(acts)))[2].append((own, other))
    return list(found.values())
