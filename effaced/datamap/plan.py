"""The plan of an erasure: one statement per table, children before parents. Made once, used for everybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    Select,
    Table,
    Update,
    and_,
    delete,
    func,
    or_,
    select,
    tuple_,
    types,
    update,
)

from effaced.datamap.check import find_problems
from effaced.datamap.key import KeyColumns
from effaced.datamap.model import Action, DataMap, Link, Retained, TableRule
from effaced.datamap.schema import LiveSchema, read_schema
from effaced.datamap.surrogates import still_personal, surrogate
from effaced.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Step:
    """What happens in one table. `affected` counts the rows that `change`, if any, would touch."""

    name: str
    action: Action
    retained: tuple[Retained, ...]
    affected: Select[int]
    change: Delete | Update | None


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """Steps in their order, and what is needed to look at one person."""

    data_map: DataMap
    steps: tuple[Step, ...]
    subject: Table
    key: KeyColumns
    schema: LiveSchema
    counts: Select[*tuple[int, ...]]
    """How many rows each step would change, in one row."""

    def belongs(self, table: str) -> ColumnElement[bool]:
        """Which rows of the table are the person's; the key's values are the statement's parameters."""
        return _Statements(self.schema, self.data_map, self.key).belonging(self.schema.table(table))

    def is_padded(self, column: str) -> bool:
        """Whether the database fills this column of the subject table with blanks that mean nothing."""
        return self.key.dialect == "postgresql" and isinstance(self.subject.c[column].type, types.CHAR)


def plan_erasure(connection: Connection, data_map: DataMap) -> ErasurePlan:
    """Plan for this database. Raises ConfigurationError with every problem if the map does not fit it."""
    schema = read_schema(connection)
    problems = find_problems(schema, data_map)
    if problems:
        count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise ConfigurationError(f"The data map does not fit the database; {count}:", problems=problems)
    columns = schema.tables[data_map.subject].columns
    key = KeyColumns(tuple(columns[name] for name in data_map.key), schema.dialect)
    statements = _Statements(schema, data_map, key)
    steps = tuple(statements.step(data_map.tables[name]) for name in children_first(data_map))
    counts = select(*(step.affected.scalar_subquery() for step in steps))
    return ErasurePlan(data_map, steps, schema.table(data_map.subject), key, schema, counts)


def children_first(data_map: DataMap) -> list[str]:
    """The tables so that each comes before those it links to; the subject table is last."""
    parents_first: dict[str, None] = {}

    def visit(name: str) -> None:
        if name not in parents_first:
            for link in data_map.tables[name].links:
                visit(link.to)
            parents_first[name] = None

    visit(data_map.subject)
    for name in sorted(data_map.tables):
        visit(name)
    return list(reversed(parents_first))


@dataclass(frozen=True, slots=True)
class _Statements:
    schema: LiveSchema
    data_map: DataMap
    key: KeyColumns

    def step(self, rule: TableRule) -> Step:
        table = self.schema.table(rule.name)
        rows = self.belonging(table)
        change: Delete | Update | None = None
        if rule.action is Action.DELETED:
            change = delete(table).where(rows)
        elif rule.action is Action.ANONYMISED:
            dialect = self.schema.dialect
            cells = [(table.c[name], each) for name, each in rule.changed.items()]
            rows = and_(rows, or_(*(still_personal(cell, each, dialect) for cell, each in cells)))
            written = {cell: surrogate(cell, each, dialect) for cell, each in cells}
            change = update(table).where(rows).values(written)
        counted = select(func.count()).select_from(table).where(rows)
        return Step(rule.name, rule.action, rule.retained, counted, change)

    def belonging(self, table: Table) -> ColumnElement[bool]:
        """Which rows of the table are the person's."""
        if table.name == self.data_map.subject:
            return self._equal(table, {name: name for name in self.data_map.key})
        return or_(*(self._linked(table, link) for link in self.data_map.tables[table.name].links))

    def _linked(self, table: Table, link: Link) -> ColumnElement[bool]:
        # Rows that hold the subject's key need no look at the subject: they are found after it is gone, too.
        if link.to == self.data_map.subject and sorted(link.targets) == sorted(self.data_map.key):
            return self._equal(table, dict(link.on))
        parent = self.schema.table(link.to)
        own = [table.c[name] for name in link.columns]
        theirs = select(*(parent.c[name] for name in link.targets)).where(self.belonging(parent))
        # IN, not EXISTS: SQLite can use an index of this table only for IN.
        return own[0].in_(theirs) if len(own) == 1 else tuple_(*own).in_(theirs)

    def _equal(self, table: Table, pairs: Mapping[str, str]) -> ColumnElement[bool]:
        conditions: list[Any] = [table.c[own] == self.key.parameter(part) for own, part in pairs.items()]
        return and_(*conditions)
