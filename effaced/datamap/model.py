"""The data map as objects: what happens to each column, how each table reaches the person."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

# effaced's own tables live beside the company's and are no part of any map.
OWN_PREFIX = "effaced_"


class Strategy(StrEnum):
    """What happens to a column of the person's rows."""

    DELETE = "delete"
    ANONYMISE = "anonymise"
    RETAIN = "retain"
    NOT_PERSONAL = "not_personal"


class Surrogate(StrEnum):
    """What an anonymised cell holds afterwards. A cell that is NULL stays NULL."""

    NULL = "null"
    FIXED_TEXT = "fixed_text"
    RANDOM_UNIQUE = "random_unique"
    TRUNCATED_DATE = "truncated_date"


class DatePart(StrEnum):
    """What is left of a truncated date."""

    YEAR = "year"
    MONTH = "month"


class Action(StrEnum):
    """What happens to the rows of a table."""

    DELETED = "deleted"
    ANONYMISED = "anonymised"
    RETAINED = "retained"


class Retained(NamedTuple):
    """A column that stays, the reason, and the last day of it (ISO date) if one is known."""

    column: str
    basis: str
    until: str | None


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """What the map says about one column."""

    strategy: Strategy
    surrogate: Surrogate | None = None
    text: str | None = None
    to: DatePart | None = None
    basis: str | None = None
    until: date | None = None
    line: int = field(default=0, compare=False)

    @property
    def keeps_row(self) -> bool:
        return self.strategy in (Strategy.ANONYMISE, Strategy.RETAIN)

    @property
    def changes(self) -> bool:
        """Whether a cell in a row that stays is written to."""
        return self.strategy in (Strategy.DELETE, Strategy.ANONYMISE)

    @property
    def written(self) -> Surrogate | None:
        """What is written into a cell of a row that stays; `delete` writes NULL there."""
        return Surrogate.NULL if self.strategy is Strategy.DELETE else self.surrogate


@dataclass(frozen=True, slots=True)
class Link:
    """A row is the person's if, for every pair, its column equals the column of a row of `to` that is."""

    to: str
    on: tuple[tuple[str, str], ...]
    line: int = field(default=0, compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(own for own, _ in self.on)

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(other for _, other in self.on)


@dataclass(frozen=True, slots=True)
class TableRule:
    """What the map says about one table with personal data."""

    name: str
    columns: Mapping[str, ColumnRule]
    links: tuple[Link, ...] = ()
    line: int = field(default=0, compare=False)

    @property
    def action(self) -> Action:
        """A row goes when nothing in it is retained or anonymised; else it stays."""
        if not any(rule.keeps_row for rule in self.columns.values()):
            return Action.DELETED
        return Action.ANONYMISED if self.changed else Action.RETAINED

    @property
    def stays(self) -> bool:
        return self.action is not Action.DELETED

    @property
    def changed(self) -> dict[str, ColumnRule]:
        """The columns that are written to when the row stays."""
        return {name: rule for name, rule in self.columns.items() if rule.changes}

    @property
    def retained(self) -> tuple[Retained, ...]:
        return tuple(
            Retained(name, rule.basis or "", rule.until.isoformat() if rule.until else None)
            for name, rule in sorted(self.columns.items())
            if rule.strategy is Strategy.RETAIN
        )

    def loses(self, column: str) -> bool:
        """Whether the person's rows no longer have this column's value afterwards."""
        return not self.stays or column in self.changed

    def nulls(self, column: str) -> bool:
        """Whether the row stays and this cell becomes NULL."""
        rule = self.columns.get(column)
        return self.stays and rule is not None and rule.written is Surrogate.NULL


@dataclass(frozen=True, slots=True)
class IdentifierRule:
    """A column of the subject table by which people are found, e.g. kind `email`."""

    kind: str
    column: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class RefRule:
    """How an external system knows the person: literals and columns of the subject table in turn."""

    kind: str
    parts: tuple[tuple[str, str | None], ...]
    line: int = field(default=0, compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for _, column in self.parts if column is not None))

    def fill(self, values: Mapping[str, str | None]) -> str | None:
        """The reference, or None if any column of it is empty: half a reference names somebody else."""
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


@dataclass(frozen=True)
class DataMap:
    """A whole map. `hash` depends on what it says, not on comments, order or layout."""

    path: str
    subject: str
    key: tuple[str, ...]
    identifiers: tuple[IdentifierRule, ...]
    refs: tuple[RefRule, ...]
    tables: Mapping[str, TableRule]
    not_personal: Mapping[str, int]
    rectify: Mapping[str, RectifyRule] = field(default_factory=dict)
    subject_line: int = field(default=0, compare=False)
    tables_line: int = field(default=0, compare=False)

    @cached_property
    def hash(self) -> str:
        canonical = json.dumps(_canonical(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def where(self, line: int) -> str:
        return f"{self.path}:{line}"

    def paths(self, table: str) -> Iterator[tuple[str, ...]]:
        """Every way from a table to the subject table; none if its links only run in circles."""
        yield from self._paths((table,))

    def _paths(self, so_far: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if so_far[-1] == self.subject:
            yield so_far
            return
        rule = self.tables.get(so_far[-1])
        for link in rule.links if rule else ():
            if link.to not in so_far:
                yield from self._paths((*so_far, link.to))


def _canonical(data_map: DataMap) -> dict[str, Any]:
    return {
        "version": 1,
        "subject": [data_map.subject, *data_map.key],
        "identifiers": {rule.kind: rule.column for rule in data_map.identifiers},
        "refs": {rule.kind: rule.parts for rule in data_map.refs},
        "tables": {
            name: {
                "columns": {column: _canonical_column(rule) for column, rule in table.columns.items()},
                "links": sorted([link.to, *sorted(link.on)] for link in table.links),
            }
            for name, table in data_map.tables.items()
        },
        "not_personal": sorted(data_map.not_personal),
        # Left out where there is none, so that a map from before corrections keeps its hash.
        **(
            {"rectify": {name: sorted(rule.columns) for name, rule in data_map.rectify.items()}}
            if data_map.rectify
            else {}
        ),
    }


def _canonical_column(rule: ColumnRule) -> list[str | None]:
    until = rule.until.isoformat() if rule.until else None
    return [rule.strategy, rule.surrogate, rule.text, rule.to, rule.basis, until]
