"""Rows to lock before anything is read: others who would change or point at them wait until the end.

Without it, two people who share an address and are erased at the same moment would both leave it to the
other; and a row that somebody is adding at the moment would not be seen, and then be in the way. SQLite has
only one writer anyway.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Select, literal_column, or_, select

from effaced.datamap.compile.ownership import Ownership
from effaced.datamap.model.data_map import Action, DataMap


def locked_tables(data_map: DataMap) -> list[str]:
    """The subject table, and those with shared rows, each after the tables its rows are found through."""
    found, seen = [data_map.subject], {data_map.subject}

    def visit(name: str) -> None:
        if name in seen or name not in data_map.tables:
            return
        seen.add(name)
        links = data_map.tables[name].links
        for link in links:
            visit(link.to)
        if any(link.back for link in links):
            found.append(name)

    for name in sorted(data_map.tables):
        visit(name)
    return [name for name in found if data_map.tables[name].action is not Action.RETAINED]


def lock_statements(belonging: Ownership) -> dict[str, Select[int]]:
    """By table, the statement that locks the person's rows, and those they may share with others."""
    if belonging.schema.dialect != "postgresql":
        return {}
    return {name: _lock(belonging, name) for name in locked_tables(belonging.data_map)}


def _lock(belonging: Ownership, name: str) -> Select[int]:
    table, primary = belonging.schema.table(name), belonging.schema.tables[name].primary
    rows: ColumnElement[bool] = belonging.rows(name)
    if name != belonging.data_map.subject:
        links = belonging.data_map.tables[name].links
        rows = or_(*(belonging.linked(name, link) for link in links if link.back))
    # In the same order for everybody, so that two never wait for each other.
    ordered: Select[int] = (
        select(literal_column("1")).select_from(table).where(rows).order_by(*(table.c[c] for c in primary))
    )
    return ordered.with_for_update()
