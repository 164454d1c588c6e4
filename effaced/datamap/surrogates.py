"""What anonymised cells hold: the SQL that writes a surrogate and the SQL that knows it again.

Every surrogate can tell its own work from a person's data, so that erasing twice writes nothing twice.
"""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Column, ColumnElement, String, Text, and_, case, cast, func, literal, null, types

from effaced.datamap.model import ColumnRule, DatePart, Surrogate

PREFIX = "erased-"
_DIGITS = 32
_FEWEST_DIGITS = 16
_RANDOM = re.compile(f"{PREFIX}[0-9a-f]{{{_FEWEST_DIGITS},{_DIGITS}}}")
SHORTEST = len(PREFIX) + _FEWEST_DIGITS
"""What a column must hold for its random values to be unlikely enough to meet."""


def surrogate(column: Column[Any], rule: ColumnRule, dialect: str) -> ColumnElement[Any]:
    """What the cell becomes."""
    match rule.written:
        case Surrogate.FIXED_TEXT:
            text = literal(rule.text or "", String())
            return _unless_null(column, cast(text, column.type) if _is_enum(column) else text)
        case Surrogate.RANDOM_UNIQUE:
            return _unless_null(column, _random(_digits(column), dialect))
        case Surrogate.TRUNCATED_DATE:
            return _truncated(column, rule.to or DatePart.YEAR, dialect)
        case _:
            return null()


def still_personal(column: Column[Any], rule: ColumnRule, dialect: str) -> ColumnElement[bool]:
    """Whether the cell holds something that its surrogate has not replaced yet."""
    match rule.written:
        case Surrogate.FIXED_TEXT:
            return and_(column.is_not(None), cast(column, Text) != literal(rule.text or "", String()))
        case Surrogate.RANDOM_UNIQUE:
            return and_(column.is_not(None), ~_is_random(column, dialect))
        case Surrogate.TRUNCATED_DATE:
            return column.is_distinct_from(_truncated(column, rule.to or DatePart.YEAR, dialect))
        case _:
            return column.is_not(None)


def is_surrogate(value: str, rule: ColumnRule) -> bool:
    """Whether a text read from this column is no longer the person's own."""
    if rule.written is Surrogate.FIXED_TEXT:
        return value == rule.text
    return rule.written is Surrogate.RANDOM_UNIQUE and _RANDOM.fullmatch(value) is not None


def _unless_null(column: Column[Any], value: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((column.is_(None), null()), else_=value)


def _is_enum(column: Column[Any]) -> bool:
    return isinstance(column.type, types.Enum)


def _digits(column: Column[Any]) -> int:
    length = getattr(column.type, "length", None)
    return _DIGITS if length is None else min(_DIGITS, length - len(PREFIX))


def _random(digits: int, dialect: str) -> ColumnElement[str]:
    if dialect == "sqlite":
        hexadecimal = func.lower(func.hex(func.randomblob(_DIGITS // 2)))
    else:
        hexadecimal = func.replace(cast(func.gen_random_uuid(), Text), "-", "")
    return literal(PREFIX, String()).concat(func.substr(hexadecimal, 1, digits, type_=String()))


def _is_random(column: Column[Any], dialect: str) -> ColumnElement[bool]:
    # The whole form, not just the prefix: whoever calls himself `erased-bob` is to be erased too.
    digits = _digits(column)
    if dialect == "sqlite":
        return column.op("GLOB", is_comparison=True)(literal(PREFIX + "[0-9a-f]" * digits, String()))
    return cast(column, Text).regexp_match(f"^{PREFIX}[0-9a-f]{{{digits}}}$")


def _truncated(column: Column[Any], to: DatePart, dialect: str) -> ColumnElement[Any]:
    timed = isinstance(column.type, types.DateTime)
    if dialect == "sqlite":
        # What SQLite can't read as a date becomes NULL: better a hole than a birthday that stays.
        first = "%Y-01-01" if to is DatePart.YEAR else "%Y-%m-01"
        return func.strftime(first + (" 00:00:00" if timed else ""), column)
    if timed and getattr(column.type, "timezone", False):
        return func.date_trunc(to.value, column, "UTC")
    return cast(func.date_trunc(to.value, cast(column, types.DateTime())), column.type)
