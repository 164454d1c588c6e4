"""What is unique, and what only looks like it: beyond what SQLAlchemy reads."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, text

from effaced.datamap.schema.catalog import NAME_OF_C, Collations

InvalidUniques = set[tuple[str, frozenset[str]]]
"""Columns of a table that no valid index keeps apart as they are compared."""


def postgres_invalid_uniques(connection: Connection) -> InvalidUniques:
    """Unique indexes that do not guarantee uniqueness: invalid ones, and those with another collation.

    An index can be invalid because it could not be built or is not on every partition. One of another
    collation may tell texts apart that its column takes for the same.
    """
    query = text(
        f"SELECT {NAME_OF_C}, ARRAY_AGG(attname::text), indisvalid AND bool_and("  # noqa: S608
        "   collisdeterministic IS NOT FALSE OR attcollation = indcollation[place - 1])"
        " FROM pg_index JOIN pg_class c ON c.oid = indrelid"
        " CROSS JOIN LATERAL unnest(indkey) WITH ORDINALITY AS k(number, place)"
        " JOIN pg_attribute ON attrelid = c.oid AND attnum = number"
        " LEFT JOIN pg_collation col ON col.oid = attcollation"
        " WHERE indisunique AND indpred IS NULL AND indexprs IS NULL AND place <= indnkeyatts"
        " AND indrelid >= 16384 GROUP BY c.oid, c.relname, c.relnamespace, indexrelid, indisvalid"
    )
    return _only_invalid((name, columns, valid) for name, columns, valid in connection.execute(query))


def sqlite_invalid_uniques(connection: Connection, collations: Collations) -> InvalidUniques:
    """Unique indexes with another collation than their column: `(name COLLATE BINARY)`."""
    query = text(
        "SELECT m.name, l.name, x.name, x.coll FROM sqlite_master m JOIN pragma_index_list(m.name) l"
        " JOIN pragma_index_xinfo(l.name) x"
        " WHERE m.type = 'table' AND l.\"unique\" AND NOT l.partial AND x.key"
    )
    indexes: dict[tuple[str, str], list[tuple[str | None, str]]] = {}
    for table, index, column, collation in connection.execute(query):
        indexes.setdefault((table, index), []).append((column, collation))
    return _only_invalid(
        (
            table,
            [column or "" for column, _ in indexed],
            all(
                collations.get((table, column or ""), collation) == collation for column, collation in indexed
            ),
        )
        for (table, _), indexed in indexes.items()
    )


def _only_invalid(indexes: Iterable[tuple[str, list[str], bool]]) -> InvalidUniques:
    """Sets of columns over which there is an invalid unique index and no valid one."""
    found: dict[tuple[str, frozenset[str]], bool] = {}
    for table, columns, valid in indexes:
        place = table, frozenset(columns)
        found[place] = found.get(place, False) or valid
    return {place for place, valid in found.items() if not valid}


def exclusion_constraints(connection: Connection) -> list[tuple[str, str]]:
    """PostgreSQL's exclusion constraints: the table, and the SQL of what may not coincide."""
    query = text(
        f"SELECT {NAME_OF_C}, pg_get_constraintdef(con.oid) FROM pg_constraint con"  # noqa: S608
        " JOIN pg_class c ON c.oid = conrelid WHERE contype = 'x' AND conparentid = 0 ORDER BY conname"
    )
    return [(table, sql.partition(" WHERE ")[0]) for table, sql in connection.execute(query)]
