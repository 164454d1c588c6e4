"""The first rows of each table, to look at the shape of values. None of them leaves this process.

Bounded: a LIMIT without a condition reads no further than it says, long texts are cut, and on PostgreSQL a
statement that takes too long is given up. What can't be read counts as not sampled.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Connection,
    TableClause,
    Text,
    cast,
    func,
    select,
    text,
    tuple_,
    type_coerce,
    types,
)
from sqlalchemy.exc import DBAPIError

from effaced.datamap.schema.tables import LiveSchema

ROWS = 200
_TIMEOUT_MS = 2_000
_TEXT, _DOCUMENT = 400, 20_000
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]{2,}")
_PHONE = re.compile(r"(?=(?:\D*\d){7,15}\D*$)[+0(][\d\s()/.\-]{6,}")
_IBAN = re.compile(r"[A-Z]{2}\d{2}[A-Z0-9 ]{11,30}")
_MADE_UP = re.compile(r"[A-Za-z0-9_\-]{16,64}")
_ALIKE = 0.8
# What stands for nobody where NULL is not used.
_NOTHING = (None, 0, "", "0")


@dataclass(frozen=True, slots=True)
class Share:
    """How many of the different values that were sampled are there in the other table."""

    found: int
    of: int

    @property
    def part(self) -> float:
        return self.found / self.of if self.of else 0.0

    def __str__(self) -> str:
        return f"{self.found} of {self.of} sampled values found there"


class Samples:
    """Rows are read once per table, when first asked for. With `rows` 0, nothing is read at all."""

    def __init__(self, connection: Connection, schema: LiveSchema, rows: int = ROWS) -> None:
        self._connection = connection
        self._schema = schema
        self._limit = rows
        self._rows: dict[str, list[Mapping[str, Any]]] = {}
        self.unread: set[str] = set()
        """Tables that could not be read: no permission, or it took too long."""
        if rows and connection.dialect.name == "postgresql":
            connection.execute(text(f"SET LOCAL statement_timeout = {_TIMEOUT_MS}"))

    @property
    def looking(self) -> bool:
        return self._limit > 0

    def rows(self, table: str) -> list[Mapping[str, Any]]:
        if table not in self._rows:
            self._rows[table] = self._read(table) if self._limit else []
        return self._rows[table]

    def values(self, table: str, column: str) -> list[Any]:
        """What is there and not NULL."""
        return [row[column] for row in self.rows(table) if row.get(column) is not None]

    def share(
        self,
        table: str,
        to: str,
        on: Sequence[tuple[str, str]],
        *,
        where: Mapping[str, Any] | None = None,
    ) -> Share | None:
        """How well these columns lead to the other table; None if there is nothing to go by."""
        wanted = set()
        for row in self.rows(table):
            cells = tuple(row.get(own) for own, _ in on)
            if not any(cell in _NOTHING for cell in cells) and all(
                row.get(name) == value for name, value in (where or {}).items()
            ):
                wanted.add(cells)
        if not wanted:
            return None
        target = self._schema.table(to)
        families = [self._schema.tables[to].columns[other].family for _, other in on]
        fitting = [known for cells in wanted if (known := _as_families(cells, families)) is not None]
        columns = [type_coerce(target.c[other], types.NullType()) for _, other in on]
        query = select(func.count()).select_from(target)
        if len(columns) == 1:
            query = query.where(columns[0].in_([cells[0] for cells in fitting]))
        else:
            query = query.where(tuple_(*columns).in_(fitting))
        answer = self._ask(query) if fitting else [(0,)]
        return Share(min(int(answer[0][0]), len(wanted)), len(wanted)) if answer else None

    def _read(self, name: str) -> list[Mapping[str, Any]]:
        table = self._schema.table(name)
        names = [
            name for name, column in self._schema.tables[name].columns.items() if column.family != "binary"
        ]
        cells = [self._cell(table, name, column) for column in names]
        found = self._ask(select(*cells).limit(self._limit)) if cells else []
        if found is None:
            self.unread.add(name)
        return [dict(zip(names, row, strict=True)) for row in found or ()]

    def _cell(self, table: TableClause, name: str, column: str) -> Any:
        family = self._schema.tables[name].columns[column].family
        cell = table.c[column]
        if family == "json":
            return func.substr(cast(cell, Text), 1, _DOCUMENT).label(None)
        if family == "text":
            return func.substr(type_coerce(cell, Text()), 1, _TEXT).label(None)
        if family in ("number", "uuid", "true or false"):
            # As the driver gives it: SQLite keeps texts in columns of numbers, and nothing here minds.
            return type_coerce(cell, types.NullType()).label(None)
        if family is not None and family.startswith("enum"):
            return cast(cell, Text).label(None)
        return func.substr(cast(cell, Text), 1, _TEXT).label(None)

    def _ask(self, query: Any) -> list[Any] | None:
        """The answer; None if there is none to be had."""
        try:
            with self._connection.begin_nested():
                return list(self._connection.execute(query))
        except (DBAPIError, ValueError):
            return None


def _as_families(cells: Iterable[Any], families: Iterable[str | None]) -> tuple[Any, ...] | None:
    """The values as the other table's types have them; None if one can't be."""
    known: list[Any] = []
    for cell, family in zip(cells, families, strict=True):
        try:
            if family == "number" and isinstance(cell, str):
                known.append(int(cell))
            elif family == "uuid" and isinstance(cell, str):
                known.append(UUID(cell))
            else:
                known.append(str(cell) if family == "text" else cell)
        except ValueError:
            return None
    return tuple(known)


def shape(values: Sequence[Any]) -> str | None:
    """The concept that most of these texts have the form of, if any."""
    texts = [value.strip() for value in values if isinstance(value, str) and value.strip()]
    if not texts:
        return None
    for word, fits in (
        ("email", _EMAIL.fullmatch),
        ("ip", _is_ip),
        ("bank", _IBAN.fullmatch),
        ("phone", _PHONE.fullmatch),
    ):
        if sum(1 for each in texts if fits(each)) >= _ALIKE * len(texts):
            return word
    return None


def form(value: str) -> str:
    """What a code looks like: A-7001 is a-9999."""
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", value))


def mentions_email(values: Sequence[Any]) -> bool:
    """Whether an e-mail address stands somewhere in these texts."""
    return any(isinstance(value, str) and _EMAIL.search(value) for value in values)


def is_random(values: Sequence[Any]) -> bool:
    """Whether these are ids that a machine made up: UUIDs, cuids, hashes."""
    texts = [value for value in values if isinstance(value, str)]
    return bool(texts) and all(_MADE_UP.fullmatch(each) and re.search(r"\d", each) for each in texts)


def is_prose(values: Sequence[Any]) -> bool:
    """Whether these read like sentences somebody typed."""
    texts = [value for value in values if isinstance(value, str)]
    return bool(texts) and sum(1 for each in texts if each.count(" ") >= 4) * 3 >= len(texts)


def is_code(values: Sequence[Any]) -> bool:
    """Whether a few values repeat all the time, as those of a list to choose from do."""
    return len(values) >= 10 and len(set(map(str, values))) * 4 <= len(values)


def documents(values: Sequence[Any]) -> list[Any]:
    """The JSON documents among these texts; one that was cut is none."""
    found = []
    for value in values:
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            try:
                found.append(json.loads(value))
            except ValueError:
                continue
    return found


def _is_ip(value: str) -> bool:
    try:
        ipaddress.ip_address(value.partition("/")[0])
    except ValueError:
        return False
    return True
