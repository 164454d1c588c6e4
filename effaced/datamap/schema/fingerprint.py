"""Is the schema still the one that a plan was made for? Exact, and cheap enough to be checked every time.

A fingerprint is read before the schema is, and compared in the transaction that erases, after its last
change: by then every table of the plan is locked against a change of its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, TextClause, text
from sqlalchemy.orm import Session

from effaced.core.db.pipeline import PendingResult, Pipeline
from effaced.core.errors import Conflict
from effaced.datamap.model.data_map import OWN_PREFIX, DataMap

# A catalog row that was changed is another row in another place: `ctid` and `xmin` together name one version
# of it. The sum has no order, and 64 bits for every row.
_VERSION = "hashtidextended({0}.ctid, CAST(CAST({0}.xmin AS text) AS bigint))"


def _sum_of_versions(rows: str, alias: str, and_also: str = "0") -> str:
    """SQL for one number that changes when any of these catalog rows does."""
    version = _VERSION.format(alias)
    return f"(SELECT CAST(sum({version} # {and_also}) AS text) FROM {rows})"  # noqa: S608


# What a plan goes by and what would go wrong quietly: which tables there are and which of them a plain name
# finds, the columns of those in the map, keys and constraints, rules, inheritance, row-level security.
_POSTGRES = f"""
WITH seen AS MATERIALIZED (
  SELECT c.oid, c.relname, c.ctid AS place, CAST(CAST(c.xmin AS text) AS bigint) AS version,
    CAST(pg_table_is_visible(c.oid) AS int)
      + CASE WHEN c.relrowsecurity AND row_security_active(c.oid) THEN 2 ELSE 0 END AS state
  FROM pg_catalog.pg_class c
  WHERE c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't'
    AND left(c.relname, {len(OWN_PREFIX)}) <> '{OWN_PREFIX}'
    AND c.relnamespace IN (
      SELECT n.oid FROM pg_catalog.pg_namespace n
      WHERE n.nspname = ANY (current_schemas(false)) OR n.nspname = ANY (<schemas>)))
SELECT CAST(current_user AS text), CAST(current_schemas(false) AS text),
  (SELECT CAST(sum(hashtidextended(place, version) # state) AS text) FROM seen),
  {
    _sum_of_versions(
        "pg_catalog.pg_attribute a JOIN seen ON a.attrelid = seen.oid "
        "WHERE a.attnum > 0 AND seen.relname = ANY (<tables>)",
        "a",
    )
},
  {
    _sum_of_versions(
        "pg_catalog.pg_index i JOIN seen ON i.indrelid = seen.oid WHERE seen.relname = ANY (<tables>)",
        "i",
    )
},
  {
    _sum_of_versions(
        "pg_catalog.pg_constraint k WHERE k.conrelid IN (SELECT oid FROM seen) "
        "OR k.confrelid IN (SELECT oid FROM seen)",
        "k",
    )
},
  {_sum_of_versions("pg_catalog.pg_inherits h JOIN seen ON h.inhparent = seen.oid", "h")},
  {_sum_of_versions("pg_catalog.pg_rewrite r JOIN seen ON r.ev_class = seen.oid", "r")},
  {
    _sum_of_versions(
        "pg_catalog.pg_policy p JOIN seen ON p.polrelid = seen.oid",
        "p",
        "CASE WHEN EXISTS (SELECT FROM unnest(p.polroles) AS role WHERE CASE role WHEN 0 THEN true "
        "ELSE pg_has_role(role, 'USAGE') END) THEN 1 ELSE 0 END",
    )
}
"""  # noqa: S608

# Its text is the schema. `PRAGMA schema_version` is not enough: a rollback takes it back, and the next change
# has the same number.
_SQLITE = f"""
SELECT group_concat(quote(part) || quote(type) || quote(name) || quote(tbl_name) || quote(sql)) FROM (
  SELECT 'main' AS part, type, name, tbl_name, sql FROM sqlite_master
  WHERE substr(tbl_name, 1, {len(OWN_PREFIX)}) <> '{OWN_PREFIX}'
  UNION ALL SELECT 'temp', type, name, tbl_name, sql FROM sqlite_temp_master
  ORDER BY 1, 2, 3)
"""  # noqa: S608


class SchemaChanged(Conflict):
    """The transaction sees another schema than the plan was made for: roll back, plan again, retry."""

    def __init__(self) -> None:
        super().__init__(
            "The schema of the database has changed since the plan was made; roll back and try again."
        )


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The schema as it was when a plan was made, as far as the plan depends on it."""

    query: TextClause = field(repr=False)
    """Without parameters, so that PostgreSQL keeps its plan: planning takes longer than running it."""
    rows: Sequence[tuple[Any, ...]] = field(repr=False)

    def ask(self, batch: Pipeline) -> PendingResult:
        """Query the fingerprint after the batch's other statements; `require` takes the result."""
        return batch.run(self.query)

    def require(self, answer: PendingResult) -> None:
        """Raises SchemaChanged if the schema is another one."""
        if answer.rows != self.rows:
            raise SchemaChanged


def read_fingerprint(connection: Connection, data_map: DataMap) -> Fingerprint:
    """Read it before the schema: a change in between is then detected by the next comparison."""
    query = _postgres_query(data_map) if connection.dialect.name == "postgresql" else text(_SQLITE)
    return Fingerprint(query, [tuple(row) for row in connection.execute(query)])


def _postgres_query(data_map: DataMap) -> TextClause:
    schemas = list(data_map.schemas)
    bare = {name.removeprefix(f"{schema}.") for name in data_map.tables for schema in schemas}
    tables = _as_array(sorted({*data_map.tables, *bare}))
    return text(_POSTGRES.replace("<schemas>", _as_array(schemas)).replace("<tables>", tables))


def _as_array(names: Sequence[str]) -> str:
    """The names as SQL. A backslash keeps a colon from being taken for a parameter."""
    quoted = ", ".join("'" + name.replace("'", "''").replace(":", "\\:") + "'" for name in names)
    return f"CAST(ARRAY[{quoted}] AS text[])"


def require_schema(session: Session, fingerprint: Fingerprint | None) -> None:
    """Raises SchemaChanged if the schema has changed. A plan without a fingerprint fits any schema."""
    if fingerprint is None:
        return
    with Pipeline(session) as batch:
        answer = fingerprint.ask(batch)
    fingerprint.require(answer)
