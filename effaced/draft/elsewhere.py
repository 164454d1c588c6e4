"""The PostgreSQL schemas that have tables and are not looked at."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, text

from effaced.core.errors import ConfigurationError

_SCHEMAS = text(
    "SELECT n.nspname, count(c.oid), n.nspname = ANY (current_schemas(false)) FROM pg_namespace n"
    " LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
    " WHERE n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' GROUP BY 1 ORDER BY 1"
)


def find_elsewhere(connection: Connection, schemas: Sequence[str]) -> list[str]:
    """What else there is to name with --schema; refuses a name that the database does not have."""
    if connection.dialect.name == "sqlite":
        if schemas:
            raise ConfigurationError("--schema: SQLite has no schemas; leave it out.")
        return []
    known = {name: (tables, in_sight) for name, tables, in_sight in connection.execute(_SCHEMAS)}
    for name in schemas:
        if name not in known:
            raise ConfigurationError(f"--schema: the database has no schema '{name}'.")
    return [
        name for name, (tables, in_sight) in known.items() if tables and not in_sight and name not in schemas
    ]
