"""Notes of `effaced datamap check`: what works, but somebody should look at."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from effaced.core.errors import Problem
from effaced.datamap.check.check_constraints import check_constraint_notes
from effaced.datamap.check.copies import copy_notes
from effaced.datamap.check.personal_names import column_sounds_like, table_sounds_like
from effaced.datamap.model.data_map import DataMap, Link, Strategy, TableRule
from effaced.datamap.model.wording import is_over
from effaced.datamap.schema.tables import LiveSchema

Finding = tuple[int, str]


def find_notes(connection: Connection, schema: LiveSchema, data_map: DataMap) -> list[Problem]:
    """Every note about a map without problems."""
    found = {
        *_doubtful_not_personal(data_map),
        *_tables_of_people(schema, data_map),
        *_slow_links(schema, data_map),
        *_retentions_over(data_map),
        *copy_notes(connection, schema, data_map),
        *(
            note
            for each in data_map.people
            for note in check_constraint_notes(schema, data_map.for_people(each.name))
        ),
    }
    return [Problem(data_map.where(line), message) for line, message in sorted(found)]


def _doubtful_not_personal(data_map: DataMap) -> Iterator[Finding]:
    """Columns declared not_personal whose names suggest personal data."""
    for name, table in data_map.tables.items():
        mentioned = {column for mention in table.mentions for column in mention.columns}
        for column, rule in table.columns.items():
            like = column_sounds_like(column) if rule.strategy is Strategy.NOT_PERSONAL else None
            if like and column not in mentioned:
                yield rule.line, f"{name}.{column} is declared not_personal, but sounds like {like}"


def _tables_of_people(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    for name, line in data_map.not_personal.items():
        if word := table_sounds_like(name):
            yield line, f"{name} is listed as not_personal, but is called after people ({word})"
        live = schema.tables.get(name)
        for column in live.columns if live else ():
            if like := column_sounds_like(column):
                yield line, f"{name} is listed as not_personal, but its column {column} sounds like {like}"


def _slow_links(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    for name, table in data_map.tables.items():
        for what, link in _links(table):
            for message in _slow_link(schema, name, link):
                yield link.line, f"{name}.{what}: {message}"


def _slow_link(schema: LiveSchema, name: str, link: Link) -> Iterator[str]:
    if link.as_text:
        yield "rows are found by comparing texts: see that both sides are written alike, and have an index"
        return
    if not _indexed(schema, name, link.columns, link):
        yield f"no index begins with {' or '.join(link.columns)}, so every erasure reads all of {name}"
    if link.back and not _indexed(schema, link.to, link.targets, link):
        columns = " or ".join(link.targets)
        yield f"no index of {link.to} begins with {columns}, by which others that point here are found"


def _links(table: TableRule) -> Iterator[tuple[str, Link]]:
    yield from (("link", link) for link in table.links)
    yield from (("mentions", mention.link) for mention in table.mentions)


def _indexed(schema: LiveSchema, table: str, columns: tuple[str, ...], link: Link) -> bool:
    """Whether an index finds the rows; a partial index may do for a link with a condition."""
    live = schema.tables[table]
    usable = [index for index in live.indexes if index.columns and (not index.partial or link.where)]
    return any(index.columns[0] in columns for index in usable)


def _retentions_over(data_map: DataMap) -> Iterator[Finding]:
    for name, table in data_map.tables.items():
        for column, rule in table.columns.items():
            if rule.until and is_over(rule.until):
                hint = "`effaced retention due` says whose rows those are"
                yield rule.line, f"The retention of {name}.{column} has ended; {hint}"
