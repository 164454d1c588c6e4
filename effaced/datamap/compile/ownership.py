"""Whose row is it? The links of the data map as a condition on the rows of a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    exists,
    false,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import NullType

from effaced.core.errors import Conflict
from effaced.datamap.compile.corrections import convert_value
from effaced.datamap.compile.key import KeyColumns
from effaced.datamap.compile.order import is_direct, own_columns, pointers
from effaced.datamap.model.data_map import DataMap, Link
from effaced.datamap.schema.tables import LiveSchema


@dataclass(frozen=True, slots=True)
class Ownership:
    """Conditions for the rows that are a person's.

    Their parameters are the subject's key and, for captured tables, the keys of the captured rows.
    """

    schema: LiveSchema
    data_map: DataMap
    key: KeyColumns
    captured: frozenset[str] = frozenset()
    subqueries: dict[Any, Select[*tuple[Any, ...]]] = field(default_factory=dict, compare=False, repr=False)
    """What `_theirs` has made: in a deep tree, all below a table ask for the same."""
    conditions: dict[str, ColumnElement[bool]] = field(default_factory=dict, compare=False, repr=False)
    """What `rows` has."""

    def rows(self, table: str) -> ColumnElement[bool]:
        """Which rows of the table are the person's."""
        if table not in self.conditions:
            self.conditions[table] = self._rows(self.schema.table(table), table)
        return self.conditions[table]

    def linked(self, table: str, link: Link) -> ColumnElement[bool]:
        """Which rows of the table have this link to the person, whoever else they may be linked to."""
        return self._linked(self.schema.table(table), table, link, frozenset())

    def points(self, rows: FromClause, table: str, link: Link, at: FromClause) -> ColumnElement[bool]:
        """Whether a row of the table has this link to that very row of the other one."""
        pairs = (_equal(rows.c[own], at.c[other], link.as_text) for own, other in link.on)
        return and_(*self._where(rows, table, link), *pairs)

    def primary_keys(self, table: str) -> Select[*tuple[object, ...]]:
        """The primary keys of the person's rows."""
        rows = self.schema.table(table)
        cells: list[ColumnElement[Any]] = [rows.c[name] for name in self.schema.tables[table].primary]
        if self.schema.dialect == "sqlite":
            # As the driver gives it: a column of numbers may hold texts.
            cells = [type_coerce(cell, NullType()).label(None) for cell in cells]
        return select(*cells).where(self.rows(table))

    def parameter(self, table: str) -> str:
        """The name of the parameter with a captured table's keys."""
        return captured_name(sorted(self.captured).index(table))

    def _rows(
        self, rows: FromClause, table: str, but_through: frozenset[str] = frozenset()
    ) -> ColumnElement[bool]:
        """`rows` for any alias of the table, without links to `but_through`: those are being evaluated."""
        if table in self.captured:
            primary = self.schema.tables[table].primary
            return _in([rows.c[name] for name in primary], self._captured(table))
        if table == self.data_map.subject:
            return and_(*(rows.c[name] == self.key.parameter(name) for name in self.data_map.key))
        links = self.data_map.tables[table].links  # none where the table only mentions people
        within = [link for link in links if link.to == table]
        others = [link for link in links if link.to != table and link.to not in but_through]
        if within:
            return self._below_own_rows(rows, table, within, others, but_through)
        return self._linked_any(rows, table, others, but_through)

    def _below_own_rows(
        self,
        rows: FromClause,
        table: str,
        within: Sequence[Link],
        others: Sequence[Link],
        but_through: frozenset[str],
    ) -> ColumnElement[bool]:
        """Rows linked to the person by other tables, and all rows below them by links within their own."""
        targets = within[0].targets
        root = self._alias(table, targets)
        tree = (
            select(*(root.c[name] for name in targets))
            .where(self._linked_any(root, table, others, but_through))
            .cte(recursive=True, nesting=True)
        )
        for link in within:
            below = self._alias(table, targets)
            pairs = [below.c[own] == tree.c[other] for own, other in link.on]
            tree = tree.union(
                select(*(below.c[name] for name in targets)).where(*pairs, *self._where(below, table, link))
            )
        return _in([rows.c[name] for name in targets], select(*tree.c))

    def _linked_any(
        self, rows: FromClause, table: str, links: Iterable[Link], but_through: frozenset[str]
    ) -> ColumnElement[bool]:
        plain = [self._linked(rows, table, link, but_through) for link in links if not link.back]
        back = [self._linked(rows, table, link, but_through) for link in links if link.back]
        if back:
            plain.append(and_(or_(*back), *self._pointed_at_by_nobody_else(rows, table, but_through)))
        # One alone needs no list around it: a map of many tables has many of these.
        return or_(*plain) if len(plain) > 1 else plain[0] if plain else false()

    def _linked(
        self, rows: FromClause, table: str, link: Link, but_through: frozenset[str]
    ) -> ColumnElement[bool]:
        """Which rows have this link to the person, whoever else may point at them."""
        condition = list(self._where(rows, table, link))
        # Rows that hold the subject's key need no look at the subject: they are found after it is gone, too.
        if is_direct(self.data_map, link):
            pairs = (_equal(rows.c[own], self.key.parameter(part), link.as_text) for own, part in link.on)
            return and_(*condition, *pairs)
        own = [_as_text(rows.c[name]) if link.as_text else rows.c[name] for name in link.columns]
        # IN, not EXISTS: SQLite can use an index of this table only for IN.
        found = _in(own, self._linked_values(link, but_through))
        return and_(*condition, found) if condition else found

    def _linked_values(self, link: Link, but_through: frozenset[str]) -> Select[*tuple[Any, ...]]:
        """The values that the link's columns must have: those of the person's rows at its other end."""
        asked = (link.to, link.targets, link.as_text, but_through)
        if asked not in self.subqueries:
            self.subqueries[asked] = self._make_linked_values(link, but_through)
        return self.subqueries[asked]

    def _make_linked_values(self, link: Link, but_through: frozenset[str]) -> Select[*tuple[Any, ...]]:
        if link.to in self.captured and link.targets == self.schema.tables[link.to].primary:
            known = self._captured(link.to)
            return select(*map(_as_text, known.subquery().c)) if link.as_text else known
        others = self._alias(link.to, link.targets)
        cells = [_as_text(others.c[name]) if link.as_text else others.c[name] for name in link.targets]
        return select(*cells).where(self._rows(others, link.to, but_through))

    def _pointed_at_by_nobody_else(
        self, rows: FromClause, table: str, but_through: frozenset[str]
    ) -> Iterable[ColumnElement[bool]]:
        """Conditions that no row of somebody else points at this one."""
        but_through |= {table}
        for name, pairs, as_text in pointers(self.schema, self.data_map, table):
            others = self._alias(name, [pointer for pointer, _ in pairs])
            points = and_(*(_equal(others.c[pointer], rows.c[own], as_text) for pointer, own in pairs))
            rule = self.data_map.tables.get(name)
            known = rule is not None and rule.owned and name not in but_through
            mine = self._rows(others, name, but_through) if known else false()
            yield ~exists().where(points, mine.is_not(true())).correlate(rows)

    def _alias(self, table: str, columns: Iterable[str]) -> FromClause:
        """The table under an alias, with these columns and those that `_rows` reads."""
        asked = {*columns, *self.schema.tables[table].primary}
        if table in self.data_map.tables:
            links = self.data_map.tables[table].links
            asked |= own_columns(self.data_map, table)
            asked |= {name for link in links if link.to == table for name in link.targets}
            if any(link.back for link in links):
                found = pointers(self.schema, self.data_map, table)
                asked |= {own for _, pairs, _ in found for _, own in pairs}
        return self.schema.alias(table, asked)

    def _where(self, rows: FromClause, table: str, link: Link) -> Iterator[ColumnElement[bool]]:
        for column, values in link.where:
            live = self.schema.tables[table].columns[column]
            fitting = [convert_value(live, value, self.schema.dialect) for value in values]
            cell = rows.c[column]
            yield or_(
                *(cell.is_(None) if each is None else cell == literal(each, cell.type) for each in fitting)
            )

    def _captured(self, table: str) -> Select[*tuple[Any, ...]]:
        live = self.schema.tables[table]
        kinds = [live.columns[name].type for name in live.primary]
        parameter = bindparam(self.parameter(table), type_=Text())
        if self.schema.dialect == "sqlite":
            value = func.json_each(parameter).table_valued("value").c.value
            return select(*(func.json_extract(value, f"$[{index}]") for index in range(len(kinds))))
        value = func.jsonb_array_elements(cast(parameter, JSONB)).table_valued("value").c.value
        return select(*(cast(value.op("->>")(index), kind) for index, kind in enumerate(kinds)))


def captured_name(number: int) -> str:
    """The parameter for the captured table with this number in alphabetical order."""
    return f"effaced_rows_{number}"


def as_parameter(table: str, rows: Sequence[Sequence[Any]], dialect: str) -> str:
    """Keys of rows as the parameter of a captured table. Conflict if a key can't be expressed."""
    plain = (int, str, float) if dialect == "sqlite" else ()
    if dialect == "sqlite" and not all(isinstance(cell, plain) for row in rows for cell in row):
        # SQLite lets both into a primary key that is not declared otherwise.
        raise Conflict(
            f"A row of table '{table}' that must be looked up first has NULL or bytes in its primary key."
        )
    return json.dumps([[cell if isinstance(cell, plain) else str(cell) for cell in row] for row in rows])


def _in(cells: Sequence[ColumnElement[Any]], found: Select[*tuple[Any, ...]]) -> ColumnElement[bool]:
    return cells[0].in_(found) if len(cells) == 1 else tuple_(*cells).in_(found)


def _equal(one: ColumnElement[Any], other: ColumnElement[Any], as_text: bool) -> ColumnElement[bool]:
    return _as_text(one) == _as_text(other) if as_text else one == other


def _as_text(cell: ColumnElement[Any]) -> ColumnElement[str]:
    return cast(cell, Text)
