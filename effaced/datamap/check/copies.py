"""Copies of a person's data that no statement of the plan reaches, for somebody to look after."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlalchemy import Connection

from effaced.datamap.model.data_map import DataMap, TableRule
from effaced.datamap.schema import copies as catalog_copies
from effaced.datamap.schema.copies import Trigger
from effaced.datamap.schema.read import columns_in_sql
from effaced.datamap.schema.tables import LiveSchema

Finding = tuple[int, str]
# One that only sets cells of its own row, as most do, writes nowhere.
_QUOTED = re.compile(r"'[^']*'")
_WRITES = re.compile(r"\b(insert|update|delete|merge|execute|perform|copy|call)\b", re.IGNORECASE)


def copy_notes(connection: Connection, schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    for trigger in catalog_copies.triggers(connection):
        yield from _trigger(schema, data_map, trigger)
    for view, name in catalog_copies.materialised_views(connection):
        table = data_map.tables.get(name)
        if table is not None and (_deletes_rows(table) or _changes_rows(table)):
            yield (
                table.line,
                f"{name}: the materialised view {view} shows it, and holds what it held until you refresh it",
            )
    for name, kind in catalog_copies.foreign_and_virtual_tables(connection):
        line = data_map.not_personal.get(name, data_map.tables_line)
        if kind == "a foreign table":
            message = "and not looked at; what is in the other database must be erased there, as a system"
        else:
            message = "and may keep what was deleted in tables of its own, until it is rebuilt"
        yield line, f"{name} is {kind} {message}"


def _trigger(schema: LiveSchema, data_map: DataMap, trigger: Trigger) -> Iterator[Finding]:
    table = data_map.tables.get(trigger.table)
    if table is None or (trigger.sql is not None and not _WRITES.search(_QUOTED.sub("", trigger.sql))):
        return
    events = [
        word
        for word, happens in (
            ("deleted", trigger.on_delete and _deletes_rows(table)),
            ("changed", trigger.on_update and _changes_rows(table)),
        )
        if happens
    ]
    if events:
        others = sorted(columns_in_sql(trigger.sql or "", schema.tables) - {trigger.table})
        where = f" to {', '.join(others)}" if others else " elsewhere"
        yield (
            table.line,
            f"{trigger.table}: the trigger {trigger.name} runs when its rows are {' or '.join(events)}, and"
            f" may write{where}; see that nothing of the person is left there",
        )


def _deletes_rows(table: TableRule) -> bool:
    return table.owned and not table.stays


def _changes_rows(table: TableRule) -> bool:
    return bool(table.changed and table.stays) or bool(table.mentions)
