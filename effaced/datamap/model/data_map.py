"""The data map as objects: what happens to each column, how each table reaches the person."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

from effaced.datamap.model.rules import ColumnRule as ColumnRule
from effaced.datamap.model.rules import DatePart as DatePart
from effaced.datamap.model.rules import JsonPath as JsonPath
from effaced.datamap.model.rules import Strategy as Strategy
from effaced.datamap.model.rules import Surrogate as Surrogate
from effaced.datamap.model.rules import canonical_column

# effaced's own tables live beside the company's and are no part of any map.
OWN_PREFIX = "effaced_"


class Action(StrEnum):
    """What happens to the rows of a table."""

    DELETED = "deleted"
    ANONYMISED = "anonymised"
    PSEUDONYMISED = "pseudonymised"
    """Changed, but some cells hold a keyed hash: they are still personal data."""
    RETAINED = "retained"
    DETACHED = "detached"
    """Rows of somebody else: they stay, and stop mentioning the person."""


class Retained(NamedTuple):
    """A retained column, the legal basis, and until when: a date, `column + 10 years`, or None if unknown."""

    column: str
    basis: str
    until: str | None


Literal = str | int | bool | None
"""What a link's condition can compare a column with."""


@dataclass(frozen=True)
class Link:
    """How rows of a table belong to a person: each column in `on` equals that of a row of `to` that does.

    `back`, written `from` in the map, turns it round: the other row points at this one, which is the person's
    only while no row of somebody else points at it too.
    """

    to: str
    on: tuple[tuple[str, str], ...]
    back: bool = False
    where: tuple[tuple[str, tuple[Literal, ...]], ...] = ()
    """Only rows whose column holds one of these."""
    as_text: bool = False
    """Whether the two sides are of different types and are compared as texts."""
    line: int = field(default=0, compare=False)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(own for own, _ in self.on)

    @cached_property
    def targets(self) -> tuple[str, ...]:
        return tuple(other for _, other in self.on)


@dataclass(frozen=True, slots=True)
class Mention:
    """Rows that are not the person's but point at them: the row stays, and these cells change."""

    link: Link
    columns: Mapping[str, ColumnRule]

    def clears(self, columns: Iterable[str]) -> bool:
        """Whether one of these columns becomes NULL."""
        return any(name in self.columns and self.columns[name].written is Surrogate.NULL for name in columns)


@dataclass(frozen=True)
class TableRule:
    """What the map says about one table with personal data."""

    name: str
    columns: Mapping[str, ColumnRule]
    links: tuple[Link, ...] = ()
    mentions: tuple[Mention, ...] = ()
    owned: bool = True
    """Whether rows of it are a person's; else they only mention people, and all of them stay."""
    line: int = field(default=0, compare=False)

    @cached_property
    def action(self) -> Action:
        """A row is deleted unless one of its columns is retained or anonymised."""
        if not self.owned:
            return Action.RETAINED
        if not any(rule.keeps_row for rule in self.columns.values()):
            return Action.DELETED
        if any(rule.pseudonymises for rule in self.changed.values()):
            return Action.PSEUDONYMISED
        return Action.ANONYMISED if self.changed else Action.RETAINED

    @cached_property
    def stays(self) -> bool:
        return self.action is not Action.DELETED

    @cached_property
    def changed(self) -> dict[str, ColumnRule]:
        """The columns that are written to when the row stays."""
        return {name: rule for name, rule in self.columns.items() if self.owned and rule.changes}

    @property
    def retained(self) -> tuple[Retained, ...]:
        return tuple(
            Retained(name, rule.basis or "", str(rule.until) if rule.until else None)
            for name, rule in sorted(self.columns.items())
            if self.owned and rule.strategy is Strategy.RETAIN
        )

    def leading_to(self, tables: Collection[str]) -> TableRule:
        """The rule with only the links and mentions that lead to these tables."""
        return replace(
            self,
            links=tuple(link for link in self.links if link.to in tables),
            mentions=tuple(mention for mention in self.mentions if mention.link.to in tables),
            owned=self.name in tables,
        )

    def loses(self, column: str) -> bool:
        """Whether this column's value is gone from the person's rows after an erasure."""
        return not self.stays or column in self.changed

    def clears(self, column: str) -> bool:
        """Whether the row stays and this cell becomes NULL."""
        rule = self.columns.get(column)
        return self.owned and self.stays and rule is not None and rule.written is Surrogate.NULL


@dataclass(frozen=True, slots=True)
class IdentifierRule:
    """A column of the subject table by which people are found, e.g. kind `email`."""

    kind: str
    column: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class RefRule:
    """How an external system knows the person: literals and columns of the subject table, concatenated."""

    kind: str
    parts: tuple[tuple[str, str | None], ...]
    line: int = field(default=0, compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for _, column in self.parts if column is not None))

    def fill(self, values: Mapping[str, str | None]) -> str | None:
        """The reference, or None if one of its columns is empty: in part it could name somebody else."""
        text = ""
        for literal, column in self.parts:
            value = values[column] if column is not None else None
            if column is not None and not value:
                return None
            text += literal + (value or "")
        return text


@dataclass(frozen=True, slots=True)
class RectifyRule:
    """A category of data that can be corrected, e.g. `email`, and the columns that hold it."""

    category: str
    columns: tuple[tuple[str, str], ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class SubjectRule:
    """One kind of people: the table with one row per person, its key, their identifiers and references."""

    name: str
    table: str
    key: tuple[str, ...]
    identifiers: tuple[IdentifierRule, ...] = ()
    refs: tuple[RefRule, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class DataMap:
    """A whole map, or the part that concerns one kind of people: see `for_people`.

    `hash` depends on what the whole map says, not on comments, order or layout.
    """

    path: str
    people: tuple[SubjectRule, ...]
    tables: Mapping[str, TableRule]
    not_personal: Mapping[str, int]
    rectify: Mapping[str, RectifyRule] = field(default_factory=dict)
    schemas: tuple[str, ...] = ()
    """The PostgreSQL schemas to look at, the one whose tables need no prefix first; none for the default."""
    tables_line: int = field(default=0, compare=False)
    undecided: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Tables to be decided about, with line and reason: while there is one, the map is refused."""
    whole: DataMap | None = field(default=None, compare=False, repr=False)
    """The map that this is a view of."""

    @property
    def subject(self) -> str:
        return self.people[0].table

    @property
    def key(self) -> tuple[str, ...]:
        return self.people[0].key

    @property
    def identifiers(self) -> tuple[IdentifierRule, ...]:
        return self.people[0].identifiers

    @property
    def refs(self) -> tuple[RefRule, ...]:
        return self.people[0].refs

    @property
    def subject_line(self) -> int:
        return self.people[0].line

    @property
    def ref_kinds(self) -> list[str]:
        """Every kind of reference by which external systems know people of this map."""
        return list(dict.fromkeys(rule.kind for each in self.people for rule in each.refs))

    @property
    def identifier_kinds(self) -> list[str]:
        """Every kind of identifier by which people of this map are found."""
        return list(dict.fromkeys(rule.kind for each in self.people for rule in each.identifiers))

    @cached_property
    def hash(self) -> str:
        canonical = json.dumps(_canonical(self.whole or self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def pseudonymises(self) -> bool:
        """Whether some cells become a keyed hash, so that a key is needed."""
        return any(
            rule.pseudonymises
            for table in self.tables.values()
            for columns in (table.columns, *(mention.columns for mention in table.mentions))
            for rule in columns.values()
        )

    def where(self, line: int) -> str:
        """A line of the map's file, for messages."""
        return f"{self.path}:{line}"

    def for_people(self, name: str) -> DataMap:
        """The part that concerns this kind of people: their tables, and the links and mentions to them."""
        if len(self.people) == 1:
            return self
        rule = next(each for each in self.people if each.name == name)
        own = self._leading_to(rule.table)
        tables = {table: each.leading_to(own) for table, each in self.tables.items()}
        if rule.table in tables:
            tables[rule.table] = replace(tables[rule.table], links=())
        rectify = {
            category: replace(each, columns=columns)
            for category, each in self.rectify.items()
            if (columns := tuple(pair for pair in each.columns if pair[0] in own))
        }
        concerned = {table: each for table, each in tables.items() if each.owned or each.mentions}
        return replace(self, people=(rule,), tables=concerned, rectify=rectify, whole=self)

    @cached_property
    def own_tables(self) -> frozenset[str]:
        """The subject table, and the tables from which links lead to it."""
        return frozenset(self._leading_to(self.subject))

    @cached_property
    def tables_of_others(self) -> frozenset[str]:
        """The tables of the whole map that this part has not."""
        return frozenset(self.whole.tables if self.whole else ()) - set(self.tables)

    def tables_between(self, table: str) -> set[str]:
        """The tables on any path of links from this table to the subject table, both included."""
        tables = self.tables
        return _reachable(
            table,
            lambda name: (
                [link.to for link in tables[name].links] if name in tables and name != self.subject else ()
            ),
        )

    def _leading_to(self, subject: str) -> set[str]:
        linked: dict[str, list[str]] = {}
        for name, table in self.tables.items():
            for link in table.links:
                linked.setdefault(link.to, []).append(name)
        return _reachable(subject, lambda name: linked.get(name, ())) & set(self.tables)


def _reachable(start: str, onward: Callable[[str], Iterable[str]]) -> set[str]:
    """Everything that can be reached from the start, and the start itself."""
    seen, pending = {start}, [start]
    while pending:
        found = set(onward(pending.pop())) - seen
        seen |= found
        pending += found
    return seen


def _canonical(data_map: DataMap) -> dict[str, Any]:
    """What the map says, in a form that does not depend on comments, order or layout."""
    # What older maps could not say is left out where it is not said, so that they keep their hash.
    first, *more = data_map.people
    canonical: dict[str, Any] = {
        "version": 1,
        "subject": [first.table, *first.key],
        "identifiers": {rule.kind: rule.column for rule in first.identifiers},
        "refs": {rule.kind: rule.parts for rule in first.refs},
        "tables": {name: _canonical_table(table) for name, table in data_map.tables.items()},
        "not_personal": sorted(data_map.not_personal),
    }
    if data_map.rectify:
        canonical["rectify"] = {name: sorted(rule.columns) for name, rule in data_map.rectify.items()}
    if data_map.schemas:
        canonical["schemas"] = data_map.schemas
    if more or first.name != first.table:
        canonical["subjects"] = [
            [
                each.name, each.table, each.key,
                {rule.kind: rule.column for rule in each.identifiers},
                {rule.kind: rule.parts for rule in each.refs},
            ]
            for each in data_map.people
        ]  # fmt: skip
    return canonical


def _canonical_table(table: TableRule) -> dict[str, Any]:
    canonical: dict[str, Any] = {
        "columns": {column: canonical_column(rule) for column, rule in table.columns.items()},
        "links": sorted((_canonical_link(link) for link in table.links), key=json.dumps),
    }
    if table.mentions:
        canonical["mentions"] = sorted(
            (
                [
                    _canonical_link(each.link),
                    {column: canonical_column(rule) for column, rule in sorted(each.columns.items())},
                ]
                for each in table.mentions
            ),
            key=json.dumps,
        )
    return canonical


def _canonical_link(link: Link) -> list[Any]:
    canonical: list[Any] = [link.to, *sorted(link.on)]
    if link.back or link.where or link.as_text:
        where = sorted((column, sorted(values, key=repr)) for column, values in link.where)
        canonical.append({"back": link.back, "where": where, "as_text": link.as_text})
    return canonical
