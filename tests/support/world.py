"""A generated world: tables that point at each other, and what a data map says of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from world_content import Column, Rule

SCHEMA = "crm"
"""Where some tables are on PostgreSQL."""
Row = dict[str, Any]


@dataclass
class Pointer:
    """Columns of `table` that hold values of columns of `to`."""

    table: int
    to: int
    pairs: list[tuple[str, str]]
    foreign_key: str | None = None
    """None, or what follows REFERENCES."""
    as_text: bool = False

    @property
    def columns(self) -> list[str]:
        return [own for own, _ in self.pairs]


@dataclass
class Link:
    pointer: Pointer
    back: bool = False
    where: dict[str, Any] | None = None


@dataclass
class Mention:
    pointer: Pointer
    columns: dict[str, Rule]
    where: dict[str, Any] | None = None


@dataclass
class Table:
    name: str
    key: list[str]
    columns: dict[str, Column]
    stays: bool = False
    schema: str | None = None
    partitioned: bool = False
    viewed: bool = False
    owned: bool = True
    declared: bool = True
    """Else it is listed as not_personal."""
    links: list[Link] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    uniques: list[list[str]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name

    def loses(self, column: str) -> bool:
        return self.owned and self.declared and (not self.stays or self.columns[column].changes)


@dataclass(repr=False)
class World:
    dialect: str
    tables: list[Table]
    subjects: list[int]
    subject_key: list[str]
    pointers: list[Pointer] = field(default_factory=list)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """For hypothesis, which would print every field: the test notes the SQL and the map instead."""
        printer.text("World(...)")

    def of(self, table: int) -> list[Pointer]:
        return [each for each in self.pointers if each.table == table]

    def key_of_subject(self, subject: int) -> list[str]:
        return self.subject_key if subject == 0 else self.tables[subject].key
