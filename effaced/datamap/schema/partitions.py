"""What holds for single partitions of a PostgreSQL table, and for where its rows have a place at all."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import Connection, text

from effaced.datamap.schema.catalog import NAME_OF_C

# Under the name of the whole table, whatever its partitions are called and wherever they are.
_PARTS = "FROM pg_class c CROSS JOIN LATERAL pg_partition_tree(c.oid) AS p"
_OF_WHOLES = "WHERE c.relkind = 'p' AND NOT c.relispartition AND p.relid <> c.oid"

# Where there is a default partition on every level, any row has a place. Alone, one takes everything.
_TAKES = "coalesce(pg_get_partition_constraintdef(p.relid), 'true')"

_PLACES = f"""
SELECT {NAME_OF_C}, string_agg('(' || {_TAKES} || ')', ' OR ')
{_PARTS} {_OF_WHOLES} AND p.isleaf
  AND EXISTS (SELECT FROM pg_partition_tree(c.oid) AS above
              JOIN pg_partitioned_table ON partrelid = above.relid WHERE partstrat <> 'h' AND partdefid = 0)
GROUP BY c.oid, c.relname, c.relnamespace
"""  # noqa: S608

_CHECKS = f"""
SELECT {NAME_OF_C}, conname, format('NOT (%s) OR (%s)', {_TAKES}, pg_get_expr(conbin, conrelid))
{_PARTS} JOIN pg_constraint ON conrelid = p.relid
{_OF_WHOLES} AND contype = 'c' AND coninhcount = 0
ORDER BY 1, 2
"""

_FILLED = f"""
SELECT {NAME_OF_C}, a.attname
{_PARTS} JOIN pg_attribute a ON a.attrelid = p.relid
{_OF_WHOLES} AND a.attnotnull AND a.attnum > 0
GROUP BY c.oid, c.relname, c.relnamespace, a.attname
"""

# Before PostgreSQL 15 NULLs always repeat.
_UNIQUES = f"""
SELECT {NAME_OF_C}, coalesce((to_jsonb(pg_index) ->> 'indnullsnotdistinct')::boolean, false),
  substring(pg_get_indexdef(indexrelid) FROM '\\(.*')
{_PARTS} JOIN pg_index ON indrelid = p.relid
{_OF_WHOLES} AND indisunique
  AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = indexrelid)
ORDER BY 1, 3
"""  # noqa: S608
_PLACE = "of its partitions"


@dataclass
class PartitionRules:
    """What the partitions of one table demand of its rows, beyond what the table itself demands."""

    checks: list[tuple[str, str]] = field(default_factory=list)
    """Name and SQL: some partition takes the row, and whichever does is content with it."""
    not_null: set[str] = field(default_factory=set)
    """Columns that may not be NULL in some partition."""
    uniques: list[tuple[str, bool]] = field(default_factory=list)
    """What is indexed, as SQL, and whether NULLs repeat."""


def partition_rules(connection: Connection) -> dict[str, PartitionRules]:
    """By the partitioned tables' names in the map; tables whose partitions demand nothing are left out."""
    found: dict[str, PartitionRules] = {}
    for name, sql in connection.execute(text(_PLACES)):
        found.setdefault(name, PartitionRules()).checks.append((_PLACE, sql))
    for name, check, sql in connection.execute(text(_CHECKS)):
        found.setdefault(name, PartitionRules()).checks.append((check, sql))
    for name, column in connection.execute(text(_FILLED)):
        found.setdefault(name, PartitionRules()).not_null.add(column)
    for name, same, sql in connection.execute(text(_UNIQUES)):
        found.setdefault(name, PartitionRules()).uniques.append((sql, not same))
    return found
