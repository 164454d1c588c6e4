"""What the role may not read or change on PostgreSQL, and what the database does instead of a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, text

from effaced.datamap.schema.catalog import NAME_OF_C

# Policies that hide nothing: a permissive one that is simply true, and none that takes away again.
_SEES_ALL = """(
  SELECT bool_and(polpermissive) AND bool_or(pg_get_expr(polqual, polrelid) = 'true'
      AND coalesce(pg_get_expr(polwithcheck, polrelid), 'true') = 'true')
  FROM pg_policy WHERE polrelid = c.oid AND polcmd IN ('*', {command})
    AND EXISTS (SELECT FROM unnest(polroles) role
                WHERE CASE role WHEN 0 THEN true ELSE pg_has_role(role, 'USAGE') END))"""

_TABLES = "FROM pg_class c WHERE relkind IN ('r', 'p') AND NOT relispartition"
_TABLES += " AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"


def _without(right: str) -> str:
    """An array of the table's columns on which the role lacks this privilege."""
    return f"""CASE WHEN has_table_privilege(c.oid, '{right}') THEN '{{}}' ELSE ARRAY(
    SELECT attname::text FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
      AND NOT has_column_privilege(c.oid, attnum, '{right}')) END"""  # noqa: S608


_ACCESS = f"""
SELECT {NAME_OF_C}, has_schema_privilege(relnamespace, 'USAGE'), has_table_privilege(c.oid, 'DELETE'),
  {_without("SELECT")}, {_without("UPDATE")},
  row_security_active(c.oid) AND NOT coalesce(
    {" AND ".join(_SEES_ALL.format(command=command) for command in ("'r'", "'w'", "'d'"))}, false)
{_TABLES}
"""

_OBSTACLES = f"""
WITH published AS MATERIALIZED (
  SELECT pubname::text AS name, coalesce(pg_partition_root(listed), listed) AS oid
  FROM pg_publication JOIN pg_publication_tables USING (pubname),
    to_regclass(format('%I.%I', schemaname, tablename)) AS listed
  WHERE pubupdate OR pubdelete)
SELECT * FROM (SELECT {NAME_OF_C},
  ARRAY(SELECT rulename::text FROM pg_rewrite
        WHERE ev_class = c.oid AND ev_type IN ('2', '4') AND ev_enabled <> 'D' ORDER BY 1) AS rules,
  ARRAY(SELECT DISTINCT name FROM published WHERE published.oid = c.oid
        AND (relreplident = 'n' OR relreplident = 'd'
             AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary))
        ORDER BY 1) AS pubs
{_TABLES}) AS found WHERE rules <> '{{}}' OR pubs <> '{{}}'
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Access:
    """What the connection's role may do in one table."""

    in_schema: bool
    deletes: bool
    unreadable: frozenset[str]
    unwritable: frozenset[str]
    hidden: bool
    """Whether row-level security may keep rows from it."""


@dataclass(frozen=True, slots=True)
class Obstacles:
    """What makes PostgreSQL ignore, change or refuse a DELETE or UPDATE on a table."""

    rules: tuple[str, ...]
    """What the database does in place of, or besides, a DELETE or UPDATE."""
    publications: tuple[str, ...]
    """Those for which PostgreSQL refuses every change, since the table's rows have no identity."""


def read_access(connection: Connection) -> dict[str, Access]:
    """What the role may do in each table, by the tables' names in the map."""
    return {
        name: Access(usable, deletes, frozenset(unread), frozenset(unwritten), hidden)
        for name, usable, deletes, unread, unwritten, hidden in connection.execute(text(_ACCESS))
    }


def read_obstacles(connection: Connection) -> dict[str, Obstacles]:
    """The tables that have any, by their names in the map."""
    return {
        name: Obstacles(tuple(rules), tuple(publications))
        for name, rules, publications in connection.execute(text(_OBSTACLES))
    }


class Place(NamedTuple):
    """A table's schema and its schema-qualified name, both quoted."""

    schema: str
    full_name: str


def table_places(connection: Connection) -> dict[str, Place]:
    """Where each table is, by its name in the map."""
    query = text(
        f"SELECT {NAME_OF_C}, quote_ident(nspname), format('%I.%I', nspname, relname)"
        f" {_TABLES.replace('pg_class c', 'pg_class c JOIN pg_namespace n ON n.oid = relnamespace')}"
    )
    return {name: Place(schema, full_name) for name, schema, full_name in connection.execute(query)}


def unknown_schemas(connection: Connection, schemas: Sequence[str]) -> list[str]:
    """Those of the schemas that the database does not have."""
    known = set(connection.scalars(text("SELECT nspname::text FROM pg_namespace")))
    return [name for name in schemas if name not in known]


def shadowed_tables(connection: Connection) -> list[tuple[str, str]]:
    """Schema and name of tables hidden by another of the same name earlier on the search path."""
    query = text(
        "SELECT nspname::text, relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
        " WHERE relkind IN ('r', 'p') AND NOT relispartition AND NOT pg_table_is_visible(c.oid)"
        " AND nspname = ANY (current_schemas(false)) ORDER BY 1, 2"
    )
    return [(schema, table) for schema, table in connection.execute(query)]


def ambiguous_names(connection: Connection, schemas: Sequence[str]) -> list[str]:
    """Names that would mean two tables in the map: one in sight, and one of a named schema."""
    query = text(
        "SELECT c.relname::text FROM pg_class c JOIN pg_class o JOIN pg_namespace n ON n.oid = o.relnamespace"
        " ON c.relname = n.nspname || '.' || o.relname"
        " WHERE pg_table_is_visible(c.oid) AND c.relkind IN ('r', 'p') AND o.relkind IN ('r', 'p')"
        " AND n.nspname = ANY (:schemas) ORDER BY 1"
    )
    return list(connection.scalars(query, {"schemas": list(schemas)}))
