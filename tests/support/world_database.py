"""A world in a database: its tables and rows in one go, its map, and every cell as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy.orm import Session
from world import SCHEMA, Link, Mention, Row, Table, World

Rows = dict[tuple[Any, ...], Row]
Seen = list[Rows]
_CHECKED = "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED"


def script(world: World) -> list[str]:
    """The statements that make it. SQLite knows foreign keys only in its CREATE TABLE."""
    if world.dialect == "sqlite":
        return [*_tables(world), *_inserts(world)]
    return [*_types(), *_tables(world), *_inserts(world), *_foreign_keys(world)]


def build(session: Session, world: World) -> None:
    """On PostgreSQL in one round trip."""
    cursor = session.connection().connection.cursor()
    if world.dialect == "sqlite":
        cursor.execute("PRAGMA defer_foreign_keys = ON")
        for statement in script(world):
            cursor.execute(statement)
        cursor.execute("PRAGMA defer_foreign_keys = OFF")
    else:
        # However slow the machine is, the transaction may wait.
        patient = "SET LOCAL idle_in_transaction_session_timeout = 0"
        cursor.execute("; ".join([patient, *script(world), _CHECKED]))
    cursor.close()


def look(session: Session, world: World) -> Seen:
    """Every cell of every table as the database has it: PostgreSQL's as texts, SQLite's as they are."""
    cursor = session.connection().connection.cursor()
    queries = [
        f"SELECT {', '.join(_seen(world, table, name) for name in table.columns)} FROM {_name(table)}"
        for table in world.tables
    ]
    found = []
    if world.dialect == "sqlite":
        found = [cursor.execute(query).fetchall() for query in queries]
    else:
        cursor.execute(";".join(queries))
        for _ in queries:
            found.append(cursor.fetchall())
            cursor.nextset()
    cursor.close()
    seen = []
    for table, rows in zip(world.tables, found, strict=True):
        cells = [dict(zip(table.columns, row, strict=True)) for row in rows]
        seen.append({tuple(row[name] for name in table.key): row for row in cells})
    return seen


def violations(session: Session, world: World) -> list[Any]:
    """What only a commit would tell. PostgreSQL raises for itself."""
    cursor = session.connection().connection.cursor()
    if world.dialect == "sqlite":
        return list(cursor.execute("PRAGMA foreign_key_check").fetchall())
    cursor.execute(_CHECKED)
    return []


def _seen(world: World, table: Table, name: str) -> str:
    cell = _quoted(name)
    if world.dialect == "sqlite":
        return cell
    return f"to_json({cell})::text" if table.columns[name].kind == "array" else f"{cell}::text"


# --- tables and rows -------------------------------------------------------------------------------------


def _types() -> Iterator[str]:
    yield f"CREATE SCHEMA {SCHEMA}"
    yield "CREATE TYPE mood AS ENUM ('new', 'gone', 'other')"
    yield "CREATE DOMAIN mail_address AS varchar(120) CHECK (VALUE LIKE '%@%')"


def _tables(world: World) -> Iterator[str]:
    for number, table in enumerate(world.tables):
        parts = []
        for column in table.columns.values():
            cell = _quoted(column.name)
            made = (
                f" GENERATED ALWAYS AS (length({_quoted(column.made_from)})) STORED"
                if column.made_from
                else ""
            )
            check = f" CHECK ({column.check.format(cell)})" if column.check else ""
            parts.append(
                f"{cell} {column.type}{made}{'' if column.nullable else ' NOT NULL'}"
                f"{' UNIQUE' if column.unique else ''}{check}"
            )
        parts.append(f"PRIMARY KEY ({_list(table.key)})")
        parts += [f"UNIQUE ({_list(each)})" for each in table.uniques]
        if world.dialect == "sqlite":
            parts += [clause for pointer, clause in _clauses(world) if pointer == number]
        by = f" PARTITION BY HASH ({_quoted(table.key[0])})" if table.partitioned else ""
        yield f"CREATE TABLE {_name(table)} ({', '.join(parts)}){by}"
        for part in range(2) if table.partitioned else ():
            yield (
                f"CREATE TABLE part_{number}_{part} PARTITION OF {_name(table)}"
                f" FOR VALUES WITH (MODULUS 2, REMAINDER {part})"
            )
        if table.viewed:
            yield f"CREATE VIEW view_{number} AS SELECT * FROM {_name(table)}"


def _clauses(world: World) -> Iterator[tuple[int, str]]:
    for each in world.pointers:
        if each.foreign_key is not None:
            to = f"{_name(world.tables[each.to])} ({_list([target for _, target in each.pairs])})"
            yield each.table, f"FOREIGN KEY ({_list(each.columns)}) REFERENCES {to}{each.foreign_key}"


def _foreign_keys(world: World) -> Iterator[str]:
    for table, clause in _clauses(world):
        yield f"ALTER TABLE {_name(world.tables[table])} ADD {clause}"


def _inserts(world: World) -> Iterator[str]:
    for table in world.tables:
        names = [name for name, column in table.columns.items() if not column.made_from]
        rows = [
            f"({', '.join(_literal(row[name], table.columns[name].type, world.dialect) for name in names)})"
            for row in table.rows
        ]
        if rows:
            yield f"INSERT INTO {_name(table)} ({_list(names)}) VALUES {', '.join(rows)}"


def _literal(value: Any, kind: str, dialect: str) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case bytes():
            return f"x'{value.hex()}'" if dialect == "sqlite" else f"'\\x{value.hex()}'"
        case list():
            return f"ARRAY[{', '.join(_literal(each, kind, dialect) for each in value)}]::{kind}"
        case _:
            return "'" + str(value).replace("'", "''") + "'"


def _quoted(name: str | None) -> str:
    return '"' + str(name).replace('"', '""') + '"'


def _list(names: list[str]) -> str:
    return ", ".join(map(_quoted, names))


def _name(table: Table) -> str:
    return (f"{table.schema}." if table.schema else "") + _quoted(table.name)


# --- the map ---------------------------------------------------------------------------------------------


def write_map(world: World) -> str:
    """As JSON, which is YAML, and written much faster."""
    people = [
        {
            "table": world.tables[number].full_name,
            "key": world.key_of_subject(number),
            "identifiers": {kind: kind for kind in ("email", "name", "phone")},
            "refs": {"folder": {"template": "x/{alt}/"}},
        }
        for number in world.subjects
    ]
    said: dict[str, Any] = {"version": 1}
    if len(people) == 1:
        said |= {name: people[0].pop(name) for name in ("identifiers", "refs")}
        said["subject"] = people[0]
    else:
        said["subjects"] = {f"kind{number}": each for number, each in enumerate(people)}
    if world.dialect == "postgresql":
        said["schemas"] = [SCHEMA]
    said["tables"] = {table.full_name: _table(world, table) for table in world.tables if table.declared}
    if others := [table.full_name for table in world.tables if not table.declared]:
        said["not_personal"] = others
    return json.dumps(said, ensure_ascii=False)


def _table(world: World, table: Table) -> dict[str, Any]:
    said: dict[str, Any] = {"columns": {name: column.rule for name, column in table.columns.items()}}
    if table.links:
        said["link"] = [_link(world, link) for link in table.links]
    if table.mentions:
        said["mentions"] = [_link(world, each) | {"columns": each.columns} for each in table.mentions]
    return said


def _link(world: World, link: Link | Mention) -> dict[str, Any]:
    back = isinstance(link, Link) and link.back
    pointer = link.pointer
    said: dict[str, Any] = {
        ("from" if back else "to"): world.tables[pointer.table if back else pointer.to].full_name,
        "on": {other: own for own, other in pointer.pairs} if back else dict(pointer.pairs),
    }
    said |= {"where": link.where} if link.where else {}
    return said | ({"as": "text"} if pointer.as_text else {})
