"""Where a database keeps, or makes, more copies of a row than its tables show."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlalchemy import Connection, text

from effaced.datamap.schema.catalog import NAME_OF_C


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger that runs when rows of a table are deleted or changed."""

    table: str
    name: str
    on_delete: bool
    on_update: bool
    sql: str | None
    """What it does, if that can be read."""


# The bits of tgtype: 2 before, 8 DELETE, 16 UPDATE. A partition's own is the whole table's.
_TRIGGERS = f"""
SELECT {NAME_OF_C}, tgname, (tgtype & 8) > 0, (tgtype & 16) > 0,
  CASE WHEN lanname IN ('plpgsql', 'sql') THEN prosrc END
FROM pg_trigger JOIN pg_class c ON c.oid = coalesce(pg_partition_root(tgrelid), tgrelid)
JOIN pg_proc f ON f.oid = tgfoid JOIN pg_language l ON l.oid = prolang
WHERE NOT tgisinternal AND tgparentid = 0 AND tgenabled <> 'D' AND tgtype & 24 > 0
ORDER BY 1, 2
"""  # noqa: S608

_MATERIALISED = f"""
WITH RECURSIVE seen AS (
  SELECT m.oid AS shown, m.oid AS by FROM pg_class m WHERE relkind = 'm'
  UNION
  SELECT shown, d.refobjid FROM seen JOIN pg_rewrite r ON r.ev_class = seen.by
  JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> r.ev_class)
SELECT DISTINCT shown::regclass::text, {NAME_OF_C}
FROM seen JOIN pg_class whole ON whole.oid = seen.by
JOIN pg_class c ON c.oid = coalesce(pg_partition_root(whole.oid), whole.oid)
WHERE c.relkind IN ('r', 'p') ORDER BY 1, 2
"""  # noqa: S608


def triggers(connection: Connection) -> list[Trigger]:
    """The triggers that run on DELETE or UPDATE."""
    if connection.dialect.name == "sqlite":
        query = "SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY 1, 2"
        return [
            _parse_sqlite_trigger(table, name, sql) for table, name, sql in connection.execute(text(query))
        ]
    return [Trigger(*row) for row in connection.execute(text(_TRIGGERS))]


def _parse_sqlite_trigger(table: str, name: str, sql: str) -> Trigger:
    head, _, body = (re.sub(r"\bBEGIN\b", "\0", sql, count=1, flags=re.IGNORECASE)).partition("\0")
    deletes, updates = (re.search(rf"\b{event}\b", head, re.IGNORECASE) for event in ("DELETE", "UPDATE"))
    return Trigger(table, name, bool(deletes), bool(updates), body)


def materialised_views(connection: Connection) -> list[tuple[str, str]]:
    """Each materialised view with each table whose rows it shows, directly or through other views."""
    if connection.dialect.name == "sqlite":
        return []
    return [(view, table) for view, table in connection.execute(text(_MATERIALISED))]


def foreign_and_virtual_tables(connection: Connection) -> list[tuple[str, str]]:
    """Tables whose rows are stored elsewhere or in a way of their own, each with its kind."""
    if connection.dialect.name == "sqlite":
        query = (
            "SELECT name, 'a virtual table' FROM sqlite_master"
            " WHERE sql LIKE 'CREATE VIRTUAL TABLE%' ORDER BY 1"
        )
    else:
        query = (
            f"SELECT {NAME_OF_C}, 'a foreign table' FROM pg_class c"  # noqa: S608
            " WHERE relkind = 'f' AND NOT relispartition ORDER BY 1"
        )
    return [(name, kind) for name, kind in connection.execute(text(query))]
