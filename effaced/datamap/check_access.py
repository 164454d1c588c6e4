"""Does PostgreSQL let this role see and change what the map speaks of? Asked before anything is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import Connection

from effaced.datamap import catalog_access
from effaced.datamap.afterwards import after_retention
from effaced.datamap.catalog_access import Access, Obstacles
from effaced.datamap.locks import locked_tables
from effaced.datamap.model import OWN_PREFIX, DataMap, Strategy, TableRule
from effaced.datamap.order import own_columns, pointers
from effaced.datamap.schema import LiveSchema

Finding = tuple[int, str]
_UNLOCKED = "the role that effaced connects as may not lock its rows; GRANT UPDATE on one of its columns"


def role_problems(connection: Connection, schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    """What the role can't see or do, for the whole map; somebody may give it the right at any time."""
    if schema.dialect != "postgresql":
        return
    may = catalog_access.access(connection)
    locked = {name for each in data_map.people for name in locked_tables(data_map.seen_by(each.name))}
    for name, table in data_map.tables.items():
        if name in may and name in schema.tables:
            for said in (*_hidden(may[name]), *_missing(schema, data_map, table, may[name])):
                yield table.line, f"{name}: {said}"
            unlocked = may[name].unwritable >= set(schema.tables[name].columns)
            if unlocked and name in locked and not _written(data_map, table):
                yield table.line, f"{name}: {_UNLOCKED}"
    for name, line in data_map.not_personal.items():
        unreadable = may[name].unreadable if name in may else None
        if unreadable and (unread := _pointing(schema, data_map, name) & unreadable):
            yield line, f"{name}: {_unread(unread)}"


def obstacle_problems(connection: Connection, schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    """What stands in everybody's way. SQLite has no such things."""
    if schema.dialect != "postgresql":
        return
    yield from _out_of_sight(connection, data_map)
    found = catalog_access.obstacles(connection)
    for name, table in data_map.tables.items():
        if name in found and (_deletes(table) or _written(data_map, table)):
            for said in _otherwise(found[name]):
                yield table.line, f"{name}: {said}"


def _out_of_sight(connection: Connection, data_map: DataMap) -> Iterator[Finding]:
    line = data_map.tables_line
    named = data_map.schemas
    for name in catalog_access.unknown_schemas(connection, named) if named else ():
        yield data_map.subject_line, f"schemas: the database has no schema '{name}'"
    for schema, name in catalog_access.covered(connection):
        if not name.startswith(OWN_PREFIX):
            yield (
                line,
                f"{schema}.{name}: another table of this name comes before it on the search path, so that it"
                f" can't be declared; take {schema} off the search path and name it under schemas",
            )
    for name in catalog_access.ambiguous(connection, named) if named else ():
        yield line, f"{name}: there are two tables that a map would call so; rename the one with the dot"


def _hidden(may: Access) -> Iterator[str]:
    if may.hidden:
        yield (
            "row-level security may hide rows from the role that effaced connects as, and what is hidden is"
            " neither erased nor found afterwards; give the role BYPASSRLS, or a policy for all commands"
            " with USING (true)"
        )


def _otherwise(found: Obstacles) -> Iterator[str]:
    if found.rules:
        yield (
            f"the rule {', '.join(found.rules)} changes what a DELETE or UPDATE does here; drop it, or"
            " make it a trigger"
        )
    if found.publications:
        yield (
            f"the publication {', '.join(found.publications)} takes no change of rows without an identity;"
            " give the table a primary key or a REPLICA IDENTITY"
        )


def _missing(schema: LiveSchema, data_map: DataMap, table: TableRule, may: Access) -> Iterator[str]:
    if not may.in_schema:
        yield "the role that effaced connects as may not use its schema; GRANT USAGE"
    if _deletes(table) and not may.deletes:
        yield "the role that effaced connects as may not delete its rows; GRANT DELETE"
    # Most roles may do everything: then nobody need work out what is needed.
    if may.unwritable and (unwritten := _written(data_map, table) & may.unwritable):
        yield f"the role that effaced connects as may not change {_list(unwritten)}; GRANT UPDATE"
    if may.unreadable and (unread := _read(schema, data_map, table) & may.unreadable):
        yield _unread(unread)


def _unread(columns: Iterable[str]) -> str:
    return f"the role that effaced connects as may not read {_list(columns)}; GRANT SELECT"


def _deletes(table: TableRule) -> bool:
    """At once, or when a retention has ended."""
    return not table.stays or not after_retention(table).stays


def _written(data_map: DataMap, table: TableRule) -> set[str]:
    columns = {name for each in (table, after_retention(table)) if each.stays for name in each.changed}
    columns |= {name for mention in table.mentions for name in mention.columns}
    return columns | {
        column for rule in data_map.rectify.values() for name, column in rule.columns if name == table.name
    }


def _read(schema: LiveSchema, data_map: DataMap, table: TableRule) -> set[str]:
    """What tells whose rows they are, what is in them, and what others are found by."""
    columns = {name for name, rule in table.columns.items() if rule.strategy is not Strategy.NOT_PERSONAL}
    columns |= {*own_columns(data_map, table.name), *schema.tables[table.name].primary}
    for each in data_map.people:
        if each.table == table.name:
            columns |= {*each.key, *(rule.column for rule in each.identifiers)}
            columns |= {column for rule in each.refs for column in rule.columns}
    for other in data_map.tables.values():
        links = (*other.links, *(mention.link for mention in other.mentions))
        columns |= {name for link in links if link.to == table.name for name in link.targets}
    return columns | _pointing(schema, data_map, table.name)


def _pointing(schema: LiveSchema, data_map: DataMap, table: str) -> set[str]:
    """By what its rows may point at rows that are a person's only while nobody else points at them."""
    shared = (each.name for each in data_map.tables.values() if any(link.back for link in each.links))
    return {
        pointer
        for name in shared
        if name in schema.tables
        for pointing, pairs, _ in pointers(schema, data_map, name)
        if pointing == table
        for pointer, _ in pairs
    }


def _list(columns: Iterable[str]) -> str:
    return ", ".join(sorted(columns))
