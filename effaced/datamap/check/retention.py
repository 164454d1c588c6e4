"""Can a retention end? Its last day must be known, its rows found again, and its `then` carried out."""

from __future__ import annotations

from collections.abc import Iterator

from effaced.datamap.check.columns import writing_problems
from effaced.datamap.check.links import link_problems
from effaced.datamap.check.pointers import pointer_problems
from effaced.datamap.compile.order import find_order
from effaced.datamap.compile.retention_groups import (
    WHEN_ENDED,
    after_retention,
    cuts,
    ending,
    ends_at_once,
    map_after,
)
from effaced.datamap.load.reader import closest
from effaced.datamap.model.data_map import DataMap, TableRule
from effaced.datamap.schema.tables import LiveSchema

Finding = tuple[int, str]
_DATES = ("date", "date and time")
# Most often lines without a date of their own, under rows that end by theirs.
_APART = " (when its retention has ended; give both tables an 'until', or neither)"


def retention_problems(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    tables = [table for table in data_map.tables.values() if ending(table)]
    for table in tables:
        yield from _unknown_ends(schema, table)
        yield from _cut_off(data_map, table)
        yield from _hinges(data_map, table)
    if tables:
        yield from _afterwards(schema, data_map)


def _unknown_ends(schema: LiveSchema, table: TableRule) -> Iterator[Finding]:
    live = schema.tables.get(table.name)
    for name, rule in ending(table).items():
        column = rule.until.column if rule.until else ""
        if live is None or not column:
            continue
        where = f"{table.name}.{name}.retain.until"
        if column not in live.columns:
            near = closest(column, live.columns)
            yield rule.line, f"{where}: {table.name} has no column '{column}'{near}"
        elif live.columns[column].family not in _DATES:
            yield rule.line, f"{where}: '{column}' must be a column of dates or moments"
        elif column in table.changed:
            yield rule.line, f"{where}: the erasure changes '{column}', so the end would be lost; keep it"


def _cut_off(data_map: DataMap, table: TableRule) -> Iterator[Finding]:
    if not all(link.to in data_map.tables for link in table.links):
        return
    for column in cuts(data_map, table.name):
        for name, rule in ending(table).items():
            yield (
                rule.line,
                f"{table.name}.{name}: its retention ends, but the erasure changes {column}, by which the"
                " rows are found again; keep that column, or leave 'until' out",
            )


def _hinges(data_map: DataMap, table: TableRule) -> Iterator[Finding]:
    """What other ends are counted from and rows are found by must not go before all of it does."""
    after = after_retention(table)
    if ends_at_once(table) and not after.stays:
        return
    own = {rule.until.column for rule in ending(table).values() if rule.until and rule.until.column}
    own |= {column for link in table.links for column in link.columns}
    own |= {column for link in table.links for column, _ in link.where}
    own |= set(data_map.key) if table.name == data_map.subject else set()
    found_by = {
        column
        for child in data_map.tables.values()
        for link in child.links
        if link.to == table.name and child.stays
        for column in link.targets
    }
    for name, rule in ending(table).items():
        if (name in own and not ends_at_once(table)) or name in found_by:
            yield (
                rule.line,
                f"{table.name}.{name}: its retention may end while other cells are kept that are found or"
                " counted by it; give the whole row one 'until', or declare the column not_personal",
            )


def _afterwards(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    """Whatever stands against the map stands against it with every `then` in force, too."""
    after = map_after(data_map)
    for problems, when in ((link_problems, _APART), (pointer_problems, WHEN_ENDED)):
        known = set(problems(schema, data_map))
        for line, message in problems(schema, after):
            if (line, message) not in known:
                yield line, message + when
    for name, table in data_map.tables.items():
        live = schema.tables.get(name)
        if live is None or not ending(table) or (ends_at_once(table) and not after.tables[name].stays):
            continue
        known = set(writing_problems(live, table.changed, schema.dialect))
        for line, message in writing_problems(live, after.tables[name].changed, schema.dialect):
            if (line, message) not in known:
                yield line, message + WHEN_ENDED


def retention_order_problems(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    """For a map that has no other problem: can the rows go one after the other, and still be found?"""
    if not any(ending(table) for table in data_map.tables.values()):
        return
    after = map_after(data_map)
    order = find_order(schema, after)
    for name in (*order.circle, *order.captured):
        table = data_map.tables[name]
        if ending(table) and not after.tables[name].stays:
            yield (
                table.line,
                f"{name}: when its retention has ended, the rows that lead to its own have to go before them,"
                " so that nobody could find them; leave 'until' out, or let it end by anonymise",
            )
