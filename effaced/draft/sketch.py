"""The draft while it is being made: ways between tables, what stays, what each column becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from effaced.datamap.schema.tables import LiveSchema


class Way(StrEnum):
    """What a pointer means for the rows that have it."""

    OWNS = "owns"
    """The row is the person's to whom it points."""
    MENTIONS = "mentions"
    """The row is somebody else's and only names the one it points at."""
    FROM = "from"
    """What is pointed at is the person's (an address), unless others point at it too."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A pointer from rows of `table` to rows of `to`, and what makes us think so."""

    table: str
    to: str
    on: tuple[tuple[str, str], ...]
    reason: str
    foreign_key: bool = False
    where: Mapping[str, str | int] | None = field(default=None, hash=False)
    as_text: bool = False
    doubt: str = ""
    """Why a person has to look at it; empty if the guess is sure."""
    also: tuple[str, ...] = ()
    """Other tables that it may as well point at."""
    caveat: str = ""
    """What a person has to see to, sure as it is."""
    by_email: bool = False
    """Whether it goes by an e-mail address, which is personal itself."""
    only_names: bool = False
    """Whether the row is surely somebody else's."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(own for own, _ in self.on)


@dataclass(frozen=True, slots=True)
class Person:
    """A table with one row per person."""

    table: str
    kind: str
    key: tuple[str, ...]
    staff: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Rule:
    """What the draft says about one column, as YAML, and why. `doubt` makes a `review:` of it."""

    yaml: str
    reason: str
    doubt: str = ""


@dataclass(slots=True)
class Sketch:
    """All that has been guessed so far."""

    schema: LiveSchema
    people: list[Person]
    others: list[str] = field(default_factory=list)
    """Tables that might hold people, in words."""
    pointers: list[Edge] = field(default_factory=list)
    """Every pointer that was found, wherever it leads."""
    links: dict[str, list[Edge]] = field(default_factory=dict)
    """Per table, the pointers that make its rows a person's."""
    sources: dict[str, list[Edge]] = field(default_factory=dict)
    """Per table, the pointers of a person's rows into it (`from`)."""
    mentions: dict[str, list[Edge]] = field(default_factory=dict)
    stays: dict[str, str] = field(default_factory=dict)
    """Tables whose rows stay, and why."""
    records: dict[str, str] = field(default_factory=dict)
    """Tables that a law may want to be kept, and which kind of law."""

    @property
    def personal(self) -> set[str]:
        return {person.table for person in self.people} | self.links.keys() | self.sources.keys()

    def person(self, table: str) -> Person | None:
        return next((each for each in self.people if each.table == table), None)

    def is_self(self, table: str) -> bool:
        """Whether a row is a person, or has a person's key for its own: students who are persons."""
        unique = self.schema.tables[table].determines
        return self.person(table) is not None or any(
            self.person(edge.to) is not None and not edge.where and unique(edge.columns)
            for edge in self.links.get(table, ())
        )

    def nullable(self, edge: Edge) -> bool:
        columns = self.schema.tables[edge.table].columns
        return any(columns[name].nullable for name in edge.columns)
