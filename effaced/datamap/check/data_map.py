"""Does the data map fit the live database? Every problem at once, each with its line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlalchemy import Connection

from effaced.core.errors import Problem
from effaced.core.gc_pause import gc_paused
from effaced.datamap.check.access import obstacle_problems, role_problems
from effaced.datamap.check.check_constraints import check_constraint_problems
from effaced.datamap.check.columns import column_problems
from effaced.datamap.check.depth import depth_problems
from effaced.datamap.check.links import inheritance_problems, link_problems, reach_problems
from effaced.datamap.check.pointers import order_problems, pointer_problems
from effaced.datamap.check.rectify import rectify_problems
from effaced.datamap.check.retention import retention_order_problems, retention_problems
from effaced.datamap.compile.key import KEY_FAMILIES
from effaced.datamap.compile.order import Order, find_order
from effaced.datamap.load.reader import did_you_mean, one_of
from effaced.datamap.model.data_map import DataMap
from effaced.datamap.schema.read import read_schema
from effaced.datamap.schema.tables import LiveSchema, LiveTable

Finding = tuple[int, str]
_NO_TEXT = ("json", "binary", "array")


@dataclass(frozen=True, slots=True)
class Checked:
    """The problems; if there are none, each kind of people's part of the map with its order of statements."""

    problems: list[Problem]
    orders: list[tuple[DataMap, Order]] = field(default_factory=list)
    only_rights: bool = False
    """Whether nothing stands against it but what the connection's role may not see or do."""


def check_map(connection: Connection, data_map: DataMap) -> list[Problem]:
    """Everything that prevents erasing by this map in this database; an empty list if nothing does."""
    return find_problems(connection, read_schema(connection, data_map.schemas), data_map)


def find_problems(connection: Connection, schema: LiveSchema, data_map: DataMap) -> list[Problem]:
    """`check_map` for a schema that has been read."""
    return check(connection, schema, data_map).problems


@gc_paused()
def check(connection: Connection, schema: LiveSchema, data_map: DataMap) -> Checked:
    """Find every problem and, if there is none, the order of statements for each kind of people."""
    views = [data_map.for_people(each.name) for each in data_map.people]
    found = {
        *_undeclared(schema, data_map),
        *_missing(schema, data_map),
        *reach_problems(data_map, views),
        *inheritance_problems(schema, data_map),
        *obstacle_problems(connection, schema, data_map),
    }
    of_role = {*role_problems(connection, schema, data_map)}
    found |= of_role
    for view in views:
        found |= {
            *_subject(schema, view),
            *column_problems(schema, view),
            *check_constraint_problems(connection, schema, view),
            *link_problems(schema, view),
            *pointer_problems(schema, view),
            *rectify_problems(schema, view),
            *retention_problems(schema, view),
        }
    # An order can be looked for only when everything that binds it is known to be there.
    orders = [] if found else [(view, find_order(schema, view)) for view in views]
    for view, order in orders:
        found |= {*order_problems(schema, view, order), *retention_order_problems(schema, view)}
        found |= {*depth_problems(connection, schema, view)}
    problems = [Problem(data_map.where(line), message) for line, message in sorted(found)]
    return Checked(problems, orders if not found else [], only_rights=bool(found) and found == of_role)


def find_gaps(schema: LiveSchema, data_map: DataMap) -> list[Problem]:
    """Tables and columns that only the map or only the database has."""
    found = {*_undeclared(schema, data_map), *_missing(schema, data_map)}
    return [Problem(data_map.where(line), message) for line, message in sorted(found)]


def _undeclared(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    """Tables and columns that the map does not declare."""
    for name, live in schema.tables.items():
        rule = data_map.tables.get(name)
        if name in data_map.undecided:
            line, reason = data_map.undecided[name]
            yield line, f"{name}: to be decided: {reason}"
        elif rule is None and name not in data_map.not_personal:
            pointing = [str(key) for key in schema.keys_of(name) if key.to in data_map.tables]
            hint = f"; its foreign key {pointing[0]} suggests a link" if pointing else ""
            yield (
                data_map.tables_line,
                f"{name}: the table is not declared; put it under tables or not_personal{hint}",
            )
        for column in live.columns if rule else ():
            if rule and column not in rule.columns:
                yield rule.line, f"{name}.{column}: the column is not declared"


def _missing(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    """Tables and columns that the database does not have."""
    if schema.dialect == "sqlite" and data_map.schemas:
        yield data_map.subject_line, "schemas: SQLite has none; leave it out"
    declared = {name: rule.line for name, rule in data_map.tables.items()} | dict(data_map.not_personal)
    declared |= {name: line for name, (line, _) in data_map.undecided.items()}
    strangers = [name for name in schema.tables if name not in declared]
    for name, line in declared.items():
        if name not in schema.tables:
            yield line, f"{name}: the database has no such table{did_you_mean(name, strangers)}"
    for name, table in data_map.tables.items():
        live = schema.tables[name].columns if name in schema.tables else table.columns
        for column, rule in table.columns.items():
            if column not in live:
                near = did_you_mean(column, set(live) - set(table.columns))
                yield rule.line, f"{name}.{column}: the table has no such column{near}"


def _subject(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    live = schema.tables.get(data_map.subject)
    if live is None:
        return
    for name in data_map.key:
        for message in _key_misfits(live, name):
            yield data_map.subject_line, f"subject.key: {message}"
    named = [(f"identifiers.{rule.kind}", rule.column, rule.line) for rule in data_map.identifiers]
    named += [(f"refs.{rule.kind}", column, rule.line) for rule in data_map.refs for column in rule.columns]
    for what, name, line in named:
        for message in _text_misfits(live, name):
            yield line, f"{what}: {message}"
    if all(column in live.columns for column in data_map.key) and not live.determines(data_map.key):
        columns = ", ".join(data_map.key)
        yield (
            data_map.subject_line,
            f"subject.key: {live.name}({columns}) must be unique, or it may name several people",
        )


def _key_misfits(live: LiveTable, name: str) -> Iterator[str]:
    """Why a column can't be part of the subject's key."""
    column = live.columns.get(name)
    if column is None:
        yield _no_column(live, name)
    elif column.family not in KEY_FAMILIES:
        yield f"{live.name}.{name} must be {one_of(KEY_FAMILIES)}, not {column.family}"
    elif column.fractional:
        yield f"{live.name}.{name} must be a whole number, but its type allows fractions"


def _text_misfits(live: LiveTable, name: str) -> Iterator[str]:
    """Why a column can't be an identifier or part of a reference, which are texts."""
    column = live.columns.get(name)
    if column is None:
        yield _no_column(live, name)
    elif column.family in _NO_TEXT:
        yield f"{live.name}.{name} is {column.family} and can't be read as a text"


def _no_column(live: LiveTable, name: str) -> str:
    return f"{live.name} has no column '{name}'{did_you_mean(name, live.columns)}"
