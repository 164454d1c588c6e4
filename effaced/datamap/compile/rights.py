"""The rights that a role needs on the company's tables to erase and correct by a map."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from effaced.datamap.compile.locks import locked_tables
from effaced.datamap.compile.order import own_columns, pointers
from effaced.datamap.compile.retention_groups import after_retention
from effaced.datamap.model.data_map import DataMap, Strategy, TableRule
from effaced.datamap.schema import access as catalog_access
from effaced.datamap.schema.tables import LiveSchema


def grant_statements(
    connection: Connection, schema: LiveSchema, data_map: DataMap, role: str
) -> Iterator[str]:
    """The GRANTs that this map needs on PostgreSQL, and no more: nothing is ever inserted.

    Of tables in the map every column may be read; of tables that are not personal only what points at rows
    which several people may share.
    """
    quote = connection.dialect.identifier_preparer.quote
    places = catalog_access.table_places(connection)
    locked = locked_by_anybody(data_map)
    grants: list[str] = []
    used: set[str] = set()

    def grant(right: str, name: str, columns: set[str] | None = None) -> None:
        place = places[name]
        used.add(place.schema)
        listed = f" ({', '.join(quote(each) for each in sorted(columns))})" if columns else ""
        grants.append(f"GRANT {right}{listed} ON TABLE {place.full_name} TO {role}")

    for name, table in data_map.tables.items():
        if name not in places or name not in schema.tables:
            continue  # `effaced datamap check` tells of it
        grant("SELECT", name)
        changed = columns_written(data_map, table)
        if not changed and name in locked:
            changed = _any_column(schema, name)
        if changed:
            grant("UPDATE", name, changed)
        if needs_delete(table):
            grant("DELETE", name)
    for name in data_map.not_personal:
        if name in places and (columns := columns_pointing_at_shared_rows(schema, data_map, name)):
            grant("SELECT", name, columns)
    yield from (f"GRANT USAGE ON SCHEMA {each} TO {role}" for each in sorted(used))
    yield from grants


def locked_by_anybody(data_map: DataMap) -> set[str]:
    """The tables whose rows are locked for any of the map's kinds of people."""
    return {name for each in data_map.people for name in locked_tables(data_map.for_people(each.name))}


def _any_column(schema: LiveSchema, name: str) -> set[str]:
    """A column for GRANT UPDATE: PostgreSQL lets a role lock rows if it may change one of them."""
    table = schema.tables[name]
    return {next(iter(table.primary or table.columns))}


def needs_delete(table: TableRule) -> bool:
    """Whether rows of the table are deleted, at once or when a retention ends."""
    return not table.stays or not after_retention(table).stays


def columns_written(data_map: DataMap, table: TableRule) -> set[str]:
    """The columns that erasures, ends of retentions and corrections write to."""
    columns = {name for each in (table, after_retention(table)) if each.stays for name in each.changed}
    columns |= {name for mention in table.mentions for name in mention.columns}
    return columns | {
        column for rule in data_map.rectify.values() for name, column in rule.columns if name == table.name
    }


def columns_read(schema: LiveSchema, data_map: DataMap, table: TableRule) -> set[str]:
    """The columns that statements read: to find rows, to see what is in them, and to find others by them."""
    columns = {name for name, rule in table.columns.items() if rule.strategy is not Strategy.NOT_PERSONAL}
    # What a retention is counted from need not be personal itself.
    columns |= {rule.until.column for rule in table.columns.values() if rule.until and rule.until.column}
    columns |= {*own_columns(data_map, table.name), *schema.tables[table.name].primary}
    columns |= _columns_that_name_people(data_map, table.name) | _columns_linked_to(data_map, table.name)
    return columns | columns_pointing_at_shared_rows(schema, data_map, table.name)


def _columns_that_name_people(data_map: DataMap, table: str) -> set[str]:
    """A subject table's key, identifiers and references; none for other tables."""
    people = [each for each in data_map.people if each.table == table]
    return {
        column
        for each in people
        for columns in (
            each.key,
            [rule.column for rule in each.identifiers],
            *(rule.columns for rule in each.refs),
        )
        for column in columns
    }


def _columns_linked_to(data_map: DataMap, table: str) -> set[str]:
    """What links and mentions of any table compare their own columns with."""
    return {
        column
        for other in data_map.tables.values()
        for link in (*other.links, *(mention.link for mention in other.mentions))
        if link.to == table
        for column in link.targets
    }


def columns_pointing_at_shared_rows(schema: LiveSchema, data_map: DataMap, table: str) -> set[str]:
    """Columns that may point at rows which several people share."""
    shared = (each.name for each in data_map.tables.values() if any(link.back for link in each.links))
    return {
        pointer
        for name in shared
        if name in schema.tables
        for child, pairs, _ in pointers(schema, data_map, name)
        if child == table
        for pointer, _ in pairs
    }
