"""The live database as the data map sees it: tables, columns, what is unique, who points at whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnClause, FromClause, TableClause, types
from sqlalchemy.dialects.postgresql import DOMAIN

_FAMILIES: tuple[tuple[type[types.TypeEngine[Any]], str], ...] = (
    (types.String, "text"),
    (types.Boolean, "true or false"),
    (types.Integer, "number"),
    (types.Numeric, "number"),
    (types.Float, "number"),
    (types.Uuid, "uuid"),
    (types.DateTime, "date and time"),
    (types.Date, "date"),
    (types.JSON, "json"),
    (types.LargeBinary, "binary"),
)


@dataclass(frozen=True, slots=True)
class LiveColumn:
    """One column. `generated` ones can't be written to."""

    name: str
    type: types.TypeEngine[Any]
    nullable: bool
    generated: bool
    collation: str | None = None
    """By which texts in it are the same; None if it holds none, or has none."""
    computed: bool = False
    """Whether the database makes it from other columns."""
    domain: DOMAIN | None = None
    """The PostgreSQL domain that the column is of; `type` is what that stands for."""

    @property
    def family(self) -> str | None:
        """Columns of one family can be compared; None if the type is unknown."""
        if isinstance(self.type, types.Enum):
            return f"enum {self.type.name}"
        known = next((name for kind, name in _FAMILIES if isinstance(self.type, kind)), None)
        unknown = isinstance(self.type, types.NullType)
        return known or (None if unknown else type(self.type).__name__.lower())

    @property
    def length(self) -> int | None:
        return self.type.length if isinstance(self.type, types.String) else None

    @property
    def fractional(self) -> bool:
        """Whether the type holds digits after the decimal point."""
        return isinstance(self.type, types.Float) or (
            isinstance(self.type, types.Numeric) and bool(self.type.scale)
        )

    @property
    def enum_values(self) -> tuple[str, ...]:
        """The values an enum allows."""
        return tuple(self.type.enums) if isinstance(self.type, types.Enum) else ()


@dataclass(frozen=True, slots=True)
class Unique:
    """Columns whose values may not repeat. `whole`: for all rows, with no condition or expression."""

    columns: frozenset[str]
    whole: bool = True
    nulls_repeat: bool = True


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Rows of `table` point at rows of `to`."""

    table: str
    to: str
    on: tuple[tuple[str, str], ...]
    acts: bool
    """Whether the database itself would act (cascade, set null) or refuse at once (restrict)."""
    name: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(own for own, _ in self.on)

    def __str__(self) -> str:
        targets = ", ".join(other for _, other in self.on)
        return f"{self.table}({', '.join(self.columns)}) -> {self.to}({targets})"


@dataclass(frozen=True, slots=True)
class Check:
    """A CHECK constraint, and the columns that it speaks of."""

    name: str
    sql: str
    columns: frozenset[str]


@dataclass(frozen=True, slots=True)
class LiveIndex:
    """An index over columns in their order, up to the first expression. `partial`: not over all rows."""

    columns: tuple[str, ...]
    partial: bool = False


@dataclass(frozen=True, slots=True)
class LiveTable:
    """One table."""

    name: str
    columns: Mapping[str, LiveColumn]
    uniques: tuple[Unique, ...]
    primary: tuple[str, ...] = ()
    schema: str | None = None
    """Where it is, if not in sight: its name is then `schema.table`."""
    checks: tuple[Check, ...] = ()
    indexes: tuple[LiveIndex, ...] = ()
    """By what rows are found without reading all of them."""

    def determines(self, columns: Iterable[str]) -> bool:
        """Whether these columns pick out at most one row."""
        given = set(columns)
        return any(unique.whole and unique.columns <= given for unique in self.uniques)


class LiveCell(ColumnClause[Any]):
    """A column for building statements. SQLAlchemy's own `Column` takes ten times as long to make."""

    inherit_cache = True
    nullable = True

    @classmethod
    def of(cls, column: LiveColumn) -> LiveCell:
        cell = cls(column.name, column.type)
        cell.nullable = column.nullable
        return cell


@dataclass(frozen=True)
class LiveSchema:
    """The company's tables on the search path and in the named schemas, excluding effaced's own."""

    dialect: str
    tables: Mapping[str, LiveTable]
    foreign_keys: tuple[ForeignKey, ...]
    keys_from_outside: tuple[ForeignKey, ...] = ()
    """Foreign keys from tables of other schemas, which no map can declare."""
    inheriting: Mapping[str, list[str]] = field(default_factory=dict)
    """PostgreSQL tables that others inherit from, and which those are."""
    clauses: dict[str, TableClause] = field(default_factory=dict, repr=False, compare=False)

    def table(self, name: str) -> TableClause:
        """The table for building statements. SQLAlchemy quotes whatever the names hold."""
        if name not in self.clauses:
            self.clauses[name] = self._make(name, self.tables[name].columns)
        return self.clauses[name]

    def alias(self, name: str, columns: Iterable[str]) -> FromClause:
        """The table under an alias, with these columns only: aliasing all of them is expensive."""
        return self._make(name, dict.fromkeys(columns)).alias()

    def _make(self, name: str, columns: Iterable[str]) -> TableClause:
        live = self.tables[name]
        own = name.removeprefix(f"{live.schema}.") if live.schema else name
        return TableClause(own, *(LiveCell.of(live.columns[each]) for each in columns), schema=live.schema)

    def keys_of(self, table: str) -> list[ForeignKey]:
        """The foreign keys by which rows of the table point at others."""
        return self._keys_of.get(table, [])

    def keys_to(self, table: str) -> list[ForeignKey]:
        """The foreign keys by which other rows point at rows of the table."""
        return self._keys_to.get(table, [])

    @cached_property
    def _keys_of(self) -> dict[str, list[ForeignKey]]:
        return _group_keys(self.foreign_keys, lambda key: key.table)

    @cached_property
    def _keys_to(self) -> dict[str, list[ForeignKey]]:
        return _group_keys(self.foreign_keys, lambda key: key.to)


def _group_keys(keys: Iterable[ForeignKey], end: Callable[[ForeignKey], str]) -> dict[str, list[ForeignKey]]:
    found: dict[str, list[ForeignKey]] = {}
    for key in keys:
        found.setdefault(end(key), []).append(key)
    return found
