"""The subject's key: as the one text in a request, and as the values the database compares."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, String, bindparam, cast, types

from effaced.core.errors import NotFound
from effaced.datamap.schema.tables import LiveColumn

KEY_FAMILIES = ("text", "number", "uuid")
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,37}")
_PART = re.compile(r"(?:[^|\\]|\\.)*", re.DOTALL)
_BITS: dict[type[Any], int] = {types.SmallInteger: 15, types.BigInteger: 63}


class _Padded(types.UserDefinedType[str]):
    """PostgreSQL's `char` of any length: compared with a varchar, as the key's own column is, blanks at the
    end of either are nothing. With a length, a longer id would be cut and be somebody else's."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "bpchar"


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """The key columns of the subject table, in the order of the map."""

    columns: tuple[LiveColumn, ...]
    dialect: str

    def parameter(self, column: str) -> ColumnElement[Any]:
        """The bind parameter for this part of the key."""
        index = next(i for i, each in enumerate(self.columns) if each.name == column)
        kind = self.columns[index].type
        if self.dialect == "postgresql" and isinstance(kind, types.CHAR):
            return cast(bindparam(_name(index), type_=String()), _Padded())
        # SQLite keeps what it likes in a column of unknown type and compares text with it as it should.
        loose = self.dialect == "sqlite" and not isinstance(kind, (types.Integer, types.String))
        return bindparam(_name(index), type_=String() if loose else kind)

    def values(self, subject_id: str) -> dict[str, Any] | None:
        """The statement parameters for this id; None if no row can have such a key."""
        parts = split_id(subject_id) if len(self.columns) > 1 else [subject_id]
        if parts is None or len(parts) != len(self.columns):
            return None
        values = {}
        for index, (column, part) in enumerate(zip(self.columns, parts, strict=True)):
            value = self._value(column, part)
            if value is None:
                return None
            values[_name(index)] = value
        return values

    def require(self, subject_id: str) -> dict[str, Any]:
        """`values`, or NotFound if no row can have this id."""
        values = self.values(subject_id)
        if values is None:
            form = "|".join(f"{column.name} ({column.family})" for column in self.columns)
            raise NotFound(f"Invalid subject id; the data map declares it as {form}.")
        return values

    def _value(self, column: LiveColumn, part: str) -> str | int | UUID | None:
        if "\0" in part or not _encodable(part):
            return None
        if column.family == "uuid":
            return _uuid(part)
        if column.family == "number" and (self.dialect != "sqlite" or isinstance(column.type, types.Integer)):
            return _whole_number(part, self._bits(column))
        return part

    def _bits(self, column: LiveColumn) -> int | None:
        if not isinstance(column.type, types.Integer):
            return None
        if self.dialect == "sqlite":
            return 63
        return next((bits for kind, bits in _BITS.items() if isinstance(column.type, kind)), 31)


def join_id(values: Iterable[Any]) -> str:
    """One text for a key: its parts with `|` between them, `\\|` and `\\\\` standing for themselves.

    A key of one part is just that part, with nothing escaped.
    """
    parts = [cell_as_text(value) or "" for value in values]
    if len(parts) == 1:
        return parts[0]
    return "|".join(part.replace("\\", "\\\\").replace("|", "\\|") for part in parts)


def split_id(subject_id: str) -> list[str] | None:
    """The parts of a composite key; None if a lone backslash ends it."""
    parts, at = [], 0
    while True:
        part = _PART.match(subject_id, at)
        assert part is not None
        parts.append(re.sub(r"\\(.)", r"\1", part.group(), flags=re.DOTALL))
        if part.end() == len(subject_id):
            return parts
        if subject_id[part.end()] != "|":
            return None
        at = part.end() + 1


def cell_as_text(value: Any) -> str | None:
    """A cell as the text that other systems know; decimals without needless zeros."""
    if value is None:
        return None
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return str(int(value))
    return str(value)


def _name(index: int) -> str:
    # Must not be the name of any company's column, or SQLAlchemy takes it for a value to set.
    return f"effaced_subject_key_{index}"


def _whole_number(part: str, bits: int | None) -> int | None:
    """The number if it is written in its usual form: `007` is not the key 7."""
    if not _WHOLE_NUMBER.fullmatch(part):
        return None
    number = int(part)
    return number if bits is None or -(2**bits) <= number < 2**bits else None


def _uuid(part: str) -> UUID | None:
    try:
        value = UUID(part)
    except ValueError:
        return None
    return value if str(value) == part.lower() else None


def _encodable(part: str) -> bool:
    try:
        part.encode()
    except UnicodeEncodeError:
        return False
    return True
