"""Foreign keys within a table by which SQLite itself acts while a statement is still running."""

from __future__ import annotations

from effaced.datamap.model.data_map import DataMap
from effaced.datamap.schema.tables import LiveSchema


def self_references_to_clear(schema: LiveSchema, data_map: DataMap) -> dict[str, set[str]]:
    """By table, the pointers between its own rows that are set to NULL before the rows are deleted.

    PostgreSQL checks its foreign keys when a statement has ended. SQLite acts with each row: it stops at the
    first that another points at, or deletes that one too, uncounted.
    """
    found: dict[str, set[str]] = {}
    for key in schema.foreign_keys if schema.dialect == "sqlite" else ():
        rule = data_map.tables.get(key.table)
        if key.acts and key.table == key.to and rule is not None and not rule.stays:
            columns = schema.tables[key.table].columns
            found.setdefault(key.table, set()).update(
                [name for name in key.columns if columns[name].nullable][:1]
            )
    return found
