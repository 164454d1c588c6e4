"""Can a retention end? Its end must be known, its rows findable, and its `then` executable."""

from __future__ import annotations

from collections.abc import Iterator

from effaced.datamap.check.columns import writing_problems
from effaced.datamap.check.links import link_problems
from effaced.datamap.check.pointers import pointer_problems
from effaced.datamap.compile.order import find_order, own_columns
from effaced.datamap.compile.retention_groups import (
    WHEN_ENDED,
    after_retention,
    columns_cutting_off,
    ending_columns,
    ends_at_once,
    map_after_retention,
)
from effaced.datamap.load.reader import did_you_mean
from effaced.datamap.model.data_map import DataMap, TableRule
from effaced.datamap.schema.tables import LiveSchema

Finding = tuple[int, str]
_DATES = ("date", "date and time")
# Most often lines without a date of their own, under rows that end by theirs.
_APART = " (when its retention has ended; give both tables an 'until', or neither)"


def retention_problems(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    tables = [table for table in data_map.tables.values() if ending_columns(table)]
    for table in tables:
        yield from _unknown_ends(schema, table)
        yield from _not_findable(data_map, table)
        yield from _ends_too_early(data_map, table)
    if tables:
        yield from _problems_after_retention(schema, data_map)


def _unknown_ends(schema: LiveSchema, table: TableRule) -> Iterator[Finding]:
    live = schema.tables.get(table.name)
    for name, rule in ending_columns(table).items():
        column = rule.until.column if rule.until else ""
        if live is None or not column:
            continue
        where = f"{table.name}.{name}.retain.until"
        if column not in live.columns:
            near = did_you_mean(column, live.columns)
            yield rule.line, f"{where}: {table.name} has no column '{column}'{near}"
        elif live.columns[column].family not in _DATES:
            yield rule.line, f"{where}: '{column}' must be a column of dates or moments"
        elif column in table.changed:
            yield rule.line, f"{where}: the erasure changes '{column}', so the end would be lost; keep it"


def _not_findable(data_map: DataMap, table: TableRule) -> Iterator[Finding]:
    if not all(link.to in data_map.tables for link in table.links):
        return
    for column in columns_cutting_off(data_map, table.name):
        for name, rule in ending_columns(table).items():
            yield (
                rule.line,
                f"{table.name}.{name}: its retention ends, but the erasure changes {column}, by which the"
                " rows are found again; keep that column, or leave 'until' out",
            )


def _ends_too_early(data_map: DataMap, table: TableRule) -> Iterator[Finding]:
    """Cells that may go while others are kept that are counted from them or found by them."""
    if ends_at_once(table) and not after_retention(table).stays:
        return
    needed = _columns_to_find_linked_rows(data_map, table.name)
    if not ends_at_once(table):
        needed |= _columns_to_find_and_end_row(data_map, table)
    for name, rule in ending_columns(table).items():
        if name in needed:
            yield (
                rule.line,
                f"{table.name}.{name}: its retention may end while other cells are kept that are found or"
                " counted by it; give the whole row one 'until', or declare the column not_personal",
            )


def _columns_to_find_linked_rows(data_map: DataMap, name: str) -> set[str]:
    """The columns of the table that rows which stay in other tables are linked to."""
    staying = [table for table in data_map.tables.values() if table.stays]
    links = (link for table in staying for link in table.links if link.to == name)
    return {column for link in links for column in link.targets}


def _columns_to_find_and_end_row(data_map: DataMap, table: TableRule) -> set[str]:
    """The columns that tell whose a row is, and those that its retentions are counted from."""
    counted = {
        rule.until.column for rule in ending_columns(table).values() if rule.until and rule.until.column
    }
    return counted | own_columns(data_map, table.name)


def _problems_after_retention(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    """Problems that the map has only once every retention has ended."""
    after = map_after_retention(data_map)
    for problems, when in ((link_problems, _APART), (pointer_problems, WHEN_ENDED)):
        known = set(problems(schema, data_map))
        for line, message in problems(schema, after):
            if (line, message) not in known:
                yield line, message + when
    for name, table in data_map.tables.items():
        live = schema.tables.get(name)
        if (
            live is None
            or not ending_columns(table)
            or (ends_at_once(table) and not after.tables[name].stays)
        ):
            continue
        known = set(writing_problems(live, table.changed, schema.dialect))
        for line, message in writing_problems(live, after.tables[name].changed, schema.dialect):
            if (line, message) not in known:
                yield line, message + WHEN_ENDED


def retention_order_problems(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    """For a map without other problems: rows whose retention ends must still be found by then."""
    if not any(ending_columns(table) for table in data_map.tables.values()):
        return
    after = map_after_retention(data_map)
    order = find_order(schema, after)
    for name in (*order.cycle, *order.captured):
        table = data_map.tables[name]
        if ending_columns(table) and not after.tables[name].stays:
            yield (
                table.line,
                f"{name}: when its retention has ended, the rows that lead to its own have to go before them,"
                " so that nobody could find them; leave 'until' out, or let it end by anonymise",
            )
