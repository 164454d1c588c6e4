"""May this role read and change what the map speaks of? Checked on PostgreSQL before anything changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import Connection

from effaced.datamap.compile.rights import (
    columns_pointing_at_shared_rows,
    columns_read,
    columns_written,
    locked_by_anybody,
    needs_delete,
)
from effaced.datamap.model.data_map import OWN_PREFIX, DataMap, TableRule
from effaced.datamap.schema import access as catalog_access
from effaced.datamap.schema.access import Access, Obstacles
from effaced.datamap.schema.tables import LiveSchema

Finding = tuple[int, str]
_UNLOCKED = "the role that effaced connects as may not lock its rows; GRANT UPDATE on one of its columns"


def role_problems(connection: Connection, schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    """What the role lacks rights for. Somebody can grant them at any time, without a new map."""
    if schema.dialect != "postgresql":
        return
    may = catalog_access.read_access(connection)
    locked = locked_by_anybody(data_map)
    for name, table in data_map.tables.items():
        if name in may and name in schema.tables:
            for message in (*_hidden_rows(may[name]), *_missing_rights(schema, data_map, table, may[name])):
                yield table.line, f"{name}: {message}"
            unlocked = may[name].unwritable >= set(schema.tables[name].columns)
            if unlocked and name in locked and not columns_written(data_map, table):
                yield table.line, f"{name}: {_UNLOCKED}"
    for name, line in data_map.not_personal.items():
        unreadable = may[name].unreadable if name in may else None
        if unreadable and (unread := columns_pointing_at_shared_rows(schema, data_map, name) & unreadable):
            yield line, f"{name}: {_cannot_read(unread)}"


def obstacle_problems(connection: Connection, schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    """What stops every role. SQLite has no such obstacles."""
    if schema.dialect != "postgresql":
        return
    yield from _out_of_sight(connection, data_map)
    found = catalog_access.read_obstacles(connection)
    for name, table in data_map.tables.items():
        if name in found and (needs_delete(table) or columns_written(data_map, table)):
            for message in _describe_obstacles(found[name]):
                yield table.line, f"{name}: {message}"


def _out_of_sight(connection: Connection, data_map: DataMap) -> Iterator[Finding]:
    """Tables that no name in the map can mean: schemas missing, tables shadowed, names ambiguous."""
    line = data_map.tables_line
    named = data_map.schemas
    for name in catalog_access.unknown_schemas(connection, named) if named else ():
        yield data_map.subject_line, f"schemas: the database has no schema '{name}'"
    for schema, name in catalog_access.shadowed_tables(connection):
        if not name.startswith(OWN_PREFIX):
            yield (
                line,
                f"{schema}.{name}: another table of this name comes before it on the search path, so that it"
                f" can't be declared; take {schema} off the search path and name it under schemas",
            )
    for name in catalog_access.ambiguous_names(connection, named) if named else ():
        yield line, f"{name}: there are two tables that a map would call so; rename the one with the dot"


def _hidden_rows(may: Access) -> Iterator[str]:
    if may.hidden:
        yield (
            "row-level security may hide rows from the role that effaced connects as, and what is hidden is"
            " neither erased nor found afterwards; give the role BYPASSRLS, or a policy for all commands"
            " with USING (true)"
        )


def _describe_obstacles(found: Obstacles) -> Iterator[str]:
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


def _missing_rights(schema: LiveSchema, data_map: DataMap, table: TableRule, may: Access) -> Iterator[str]:
    if not may.in_schema:
        yield "the role that effaced connects as may not use its schema; GRANT USAGE"
    if needs_delete(table) and not may.deletes:
        yield "the role that effaced connects as may not delete its rows; GRANT DELETE"
    # Most roles may do everything: then nobody need work out what is needed.
    if may.unwritable and (unwritten := columns_written(data_map, table) & may.unwritable):
        yield f"the role that effaced connects as may not change {_joined(unwritten)}; GRANT UPDATE"
    if may.unreadable and (unread := columns_read(schema, data_map, table) & may.unreadable):
        yield _cannot_read(unread)


def _cannot_read(columns: Iterable[str]) -> str:
    return f"the role that effaced connects as may not read {_joined(columns)}; GRANT SELECT"


def _joined(columns: Iterable[str]) -> str:
    return ", ".join(sorted(columns))
