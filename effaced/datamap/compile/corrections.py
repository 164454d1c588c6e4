"""Corrected values: what may be sent for which column, converted to what the database takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import types

from effaced.core.errors import Problem, Refused
from effaced.datamap.model.data_map import DataMap
from effaced.datamap.schema.tables import LiveColumn, LiveSchema
from effaced.model import Correction, CorrectionValue

CORRECTABLE = ("text", "number", "true or false", "uuid", "date", "date and time")
T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,127}")
_BITS: dict[type[Any], int] = {types.SmallInteger: 15, types.BigInteger: 63}


@dataclass(frozen=True, slots=True)
class Change:
    """One column's new value."""

    table: str
    column: str
    value: Any = field(repr=False)


class UnsuitableValue(Exception):
    """A value that the column can't hold. The message says what it must be, and never quotes it."""


def changes_for(schema: LiveSchema, data_map: DataMap, corrections: Sequence[Correction]) -> list[Change]:
    """The columns to write, for corrections keyed by category or by `table.column`.

    Refuses with every problem at once: names that can't be corrected, values that don't fit.
    """
    problems: list[Problem] = []
    changes: dict[tuple[str, str], Change] = {}
    for correction in corrections:
        where = f"corrections.{_printable(correction.column)}"
        columns, message = _columns_to_correct(data_map, correction.column)
        if message:
            problems.append(Problem(where, message, code="not_correctable"))
        for table, column in columns:
            if (table, column) in changes:
                problems.append(
                    Problem(where, "is there twice, by its category and by its column", code="repeated")
                )
                continue
            live = schema.tables[table].columns[column]
            try:
                changes[table, column] = Change(
                    table, column, convert_value(live, correction.value, schema.dialect)
                )
            except UnsuitableValue as unfit:
                problems.append(Problem(where, str(unfit), code="unsuitable_value"))
    if problems:
        unique = list(dict.fromkeys(problems))
        raise Refused("The corrections are invalid.", problems=unique)
    return list(changes.values())


def _printable(name: str) -> str:
    """The name if it may be repeated. What was sent could be anything, even a person's address."""
    return name if _NAME.fullmatch(name) else "(unprintable)"


def _columns_to_correct(data_map: DataMap, name: str) -> tuple[Sequence[tuple[str, str]], str | None]:
    """The columns that a category or a `table.column` means; or why it can't be corrected."""
    if name in data_map.rectify:
        return data_map.rectify[name].columns, None
    for rule in data_map.rectify.values():
        for table, column in rule.columns:
            if f"{table}.{column}" != name:
                continue
            linked = any(
                (each, own) == (table, column) or (link.to, other) == (table, column)
                for each, other_rule in data_map.tables.items()
                for link in other_rule.links
                for own, other in link.on
            )
            if linked:
                return (), f"is a link between tables; correct it by its category, '{rule.category}'"
            return [(table, column)], None
    known = ", ".join(sorted(data_map.rectify)) or "nothing"
    return (), f"can't be corrected; the data map allows {known}"


def convert_value(column: LiveColumn, value: CorrectionValue, dialect: str) -> Any:
    """The value as this column takes it. Raises UnsuitableValue."""
    if value is None:
        if not column.nullable:
            raise UnsuitableValue("must not be null")
        return None
    if column.enum_values:
        if value not in column.enum_values:
            raise UnsuitableValue(f"must be one of {', '.join(column.enum_values)}")
        return value
    match column.family:
        case "number":
            return _number(column, value, dialect)
        case "true or false":
            return value if isinstance(value, bool) else _unsuitable("must be true or false")
        case "uuid":
            return _parse(value, UUID, "must be a UUID")
        case "date":
            return _parse(value, _day, "must be a date such as 1990-04-01")
        case "date and time":
            return _moment(column, value)
        case _:
            return _text(column, value)


def _text(column: LiveColumn, value: CorrectionValue) -> str:
    if not isinstance(value, str):
        raise UnsuitableValue("must be a text")
    if "\0" in value or any(0xD800 <= ord(letter) <= 0xDFFF for letter in value):
        raise UnsuitableValue("holds characters that no text can have")
    if column.length is not None and len(value) > column.length:
        raise UnsuitableValue(f"must have at most {column.length} characters")
    return value


def _number(column: LiveColumn, value: CorrectionValue, dialect: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnsuitableValue("must be a number")
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise UnsuitableValue("must be a number") from None
    if not number.is_finite():
        raise UnsuitableValue("must be a number")
    match column.type:
        case types.Integer():
            return _whole_number(column, number, dialect)
        case types.Float():
            return float(number) if isfinite(float(number)) else _unsuitable("must be a number")
        case _:
            return _decimal(column, number)


def _whole_number(column: LiveColumn, number: Decimal, dialect: str) -> int:
    bits = 63 if dialect == "sqlite" else _bits(column)
    if number != number.to_integral_value() or not -(2**bits) <= number < 2**bits:
        raise UnsuitableValue(f"must be a whole number of at most {bits + 1} bits")
    return int(number)


def _decimal(column: LiveColumn, number: Decimal) -> Decimal:
    precision, scale = getattr(column.type, "precision", None), getattr(column.type, "scale", None)
    if precision is not None and scale is not None:
        too_large = number != 0 and number.adjusted() >= precision - scale
        if too_large or _places(number) > scale:
            raise UnsuitableValue(
                f"must have at most {precision - scale} digits before and {scale} after the point"
            )
    return number


def _places(number: Decimal) -> int:
    """The digits after the decimal point, without zeros at the end."""
    # Counted, not calculated: calculating rounds to 28 digits, and overflows.
    _, digits, exponent = number.as_tuple()
    zeros = next((n for n, digit in enumerate(reversed(digits)) if digit), None)
    return 0 if zeros is None else max(0, -int(exponent) - zeros)


def _bits(column: LiveColumn) -> int:
    return next((bits for kind, bits in _BITS.items() if isinstance(column.type, kind)), 31)


def _moment(column: LiveColumn, value: CorrectionValue) -> datetime:
    message = "must be a date and time such as 2026-03-02T12:00:00Z"
    moment = _parse(value, datetime.fromisoformat, message)
    zoned = bool(getattr(column.type, "timezone", False))
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC) if zoned else moment
    return moment if zoned else moment.astimezone(UTC).replace(tzinfo=None)


def _day(text: str) -> date:
    if len(text) != len("1990-04-01"):
        raise ValueError
    return date.fromisoformat(text)


def _parse(value: CorrectionValue, parse: Callable[[str], T], message: str) -> T:
    if isinstance(value, str):
        try:
            return parse(value)
        except ValueError:
            pass
    raise UnsuitableValue(message)


def _unsuitable(message: str) -> Any:
    raise UnsuitableValue(message)
