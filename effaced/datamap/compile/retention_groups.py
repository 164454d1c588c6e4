"""What the map says about the end of retentions: which columns end, when, and how rows are found then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from effaced.datamap.compile.order import is_direct
from effaced.datamap.model.data_map import ColumnRule, DataMap, Strategy, TableRule

WHEN_ENDED = " (when its retention has ended)"


def after_retention(table: TableRule) -> TableRule:
    """What the map says about the table once everything in it that ends has ended."""
    columns = {name: rule.then or rule for name, rule in table.columns.items()}
    return replace(table, columns=columns)


def map_after_retention(data_map: DataMap) -> DataMap:
    """`after_retention` for every table."""
    return replace(data_map, tables={name: after_retention(each) for name, each in data_map.tables.items()})


def ending_columns(table: TableRule) -> dict[str, ColumnRule]:
    """The retained columns that have an end."""
    return {name: rule for name, rule in table.columns.items() if table.owned and rule.until is not None}


def ends_at_once(table: TableRule) -> bool:
    """Whether all that is retained in a row ends on the same day."""
    return len({rule.until for rule in table.columns.values() if rule.strategy is Strategy.RETAIN}) == 1


def is_findable(data_map: DataMap, name: str) -> bool:
    """Whether the rows that stay still lead to the person after an erasure."""
    return next(columns_cutting_off(data_map, name), None) is None


def columns_cutting_off(data_map: DataMap, name: str) -> Iterator[str]:
    """The columns whose change makes rows of the table unfindable, as `table.column`."""
    table = data_map.tables[name]
    if name == data_map.subject:
        yield from (f"{name}.{column}" for column in data_map.key if table.loses(column))
    for link in table.links:
        needed = (*link.columns, *(column for column, _ in link.where))
        yield from (f"{name}.{column}" for column in needed if table.loses(column))
        # Rows that hold the subject's key are found without a look at the subject.
        if is_direct(data_map, link):
            continue
        parent = data_map.tables[link.to]
        yield from (f"{link.to}.{column}" for column in link.targets if parent.loses(column))
        if link.to not in (name, data_map.subject):
            yield from columns_cutting_off(data_map, link.to)
