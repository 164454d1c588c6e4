"""What changed cells hold: the SQL that writes a surrogate, and the SQL that recognises it.

Every surrogate can be told from a person's data, so that erasing twice writes nothing twice. What SQLite
can't do in SQL is in `sqlite_functions.py`, and registered on its connection.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    LargeBinary,
    String,
    Text,
    and_,
    between,
    bindparam,
    case,
    cast,
    extract,
    func,
    literal,
    literal_column,
    null,
    types,
)
from sqlalchemy.dialects.postgresql import ARRAY

from effaced.datamap.compile.corrections import UnsuitableValue, convert_value
from effaced.datamap.compile.parameters import HASH_INNER, HASH_LABEL, HASH_OUTER
from effaced.datamap.model.data_map import ColumnRule, DatePart, Strategy, Surrogate
from effaced.datamap.schema.tables import LiveColumn
from effaced.datamap.surrogates.documents import LeafRules
from effaced.datamap.surrogates.json_sql import any_path_still_personal, with_paths_replaced
from effaced.datamap.surrogates.scrub_sql import as_searchable_text, contains_identifiers, scrubbed
from effaced.datamap.surrogates.shapes import (
    HASHED,
    PREFIX,
    RANDOM_TEXTS,
    UUID_PREFIX,
    RandomText,
    is_text_surrogate,
    number_range,
)

Cell = ColumnElement[Any]
# As a text: an empty document of either kind, or a JSON null.
_FOR_ALL_CELLS = (Surrogate.NULL, Surrogate.TRUNCATED_DATE)
"""What these write is right whether the cell was personal or not."""
_EMPTY_JSON = r"^\s*(\{\s*\}|\[\s*\]|null)\s*$"


def surrogate(
    cell: Cell, rule: ColumnRule, dialect: str, personal: ColumnElement[bool]
) -> ColumnElement[Any]:
    """The cell's new value; `personal` is the result of `still_personal` for it."""
    value = replacement(cell, rule, dialect)
    if rule.written in _FOR_ALL_CELLS or (rule.strategy is Strategy.JSON and dialect == "sqlite"):
        return value
    return case((personal, value), else_=cell)


def replacement(cell: Cell, rule: ColumnRule, dialect: str) -> ColumnElement[Any]:
    """What is written over a value that is still personal."""
    if rule.strategy is Strategy.JSON:
        return with_paths_replaced(cell, rule, dialect, _RULES)
    if rule.strategy is Strategy.SCRUB:
        return scrubbed(cell, rule, dialect)
    match rule.written:
        case Surrogate.NULL | None:
            return null()
        case Surrogate.TRUNCATED_DATE:
            return _truncated(cell, rule.to or DatePart.YEAR, dialect)
        case Surrogate.FIXED_TEXT:
            text = literal(rule.text or "", String())
            return cast(text, cell.type) if _is_enum(cell) else text
        case Surrogate.FIXED:
            return _fixed(cell, rule, dialect)
        case Surrogate.RANDOM_UNIQUE | Surrogate.RANDOM_EMAIL:
            return _random(cell, RANDOM_TEXTS[rule.written], dialect)
        case Surrogate.RANDOM_NUMBER:
            return _random_number(cell, dialect)
        case Surrogate.RANDOM_UUID:
            return _random_uuid(cell, dialect)
        case Surrogate.EMPTY:
            return _empty(cell, dialect)
        case Surrogate.KEYED_HASH:
            return _hashed(cell, dialect)


def still_personal(cell: Cell, rule: ColumnRule, dialect: str) -> ColumnElement[bool]:
    """Whether the cell holds something that its surrogate has not replaced yet."""
    if rule.strategy is Strategy.JSON:
        return any_path_still_personal(cell, rule, dialect, _RULES)
    if rule.strategy is Strategy.SCRUB:
        return contains_identifiers(cell, rule, dialect)
    there = cell.is_not(None)
    match rule.written:
        case Surrogate.NULL | None:
            return there
        case Surrogate.TRUNCATED_DATE:
            return cell.is_distinct_from(_truncated(cell, rule.to or DatePart.YEAR, dialect))
        case Surrogate.FIXED_TEXT:
            return and_(there, cast(cell, Text) != literal(_unpadded(cell, rule.text or ""), String()))
        case Surrogate.FIXED:
            return and_(there, cell != _fixed(cell, rule, dialect))
        case Surrogate.RANDOM_UNIQUE | Surrogate.RANDOM_EMAIL:
            return and_(there, ~_is_random(cell, RANDOM_TEXTS[rule.written], dialect))
        case Surrogate.RANDOM_NUMBER:
            low, high = number_range(cell.type) or (0, 0)
            return and_(there, ~between(cell, literal(low), literal(high)))
        case Surrogate.RANDOM_UUID:
            return and_(there, ~_is_uuid(cell, dialect))
        case Surrogate.EMPTY:
            return and_(there, _is_not_empty(cell, dialect))
        case Surrogate.KEYED_HASH:
            return and_(there, ~as_searchable_text(cell, dialect).regexp_match(rf"^{HASHED.pattern}\Z"))


_RULES = LeafRules(replacement, still_personal)


def is_surrogate(value: str, rule: ColumnRule) -> bool:
    """Whether a text read from this column is a surrogate, no longer the person's own."""
    match rule.written:
        case Surrogate.FIXED_TEXT:
            return value == rule.text
        case Surrogate.FIXED:
            return value == rule.value
        case Surrogate.RANDOM_NUMBER:
            return value.startswith("-")  # nobody is known by a number below zero
        case _:
            return is_text_surrogate(value, rule.written)


def _is_enum(cell: Cell) -> bool:
    return isinstance(cell.type, types.Enum)


def _length(cell: Cell) -> int | None:
    return cell.type.length if isinstance(cell.type, String) else None


def _unpadded(cell: Cell, text: str) -> str:
    """The text as PostgreSQL returns it: blanks at the end of `char(n)` don't count."""
    return text.rstrip(" ") if isinstance(cell.type, types.CHAR) else text


# --- fixed values, and none -----------------------------------------------------------------------------


def fixed_value(kind: types.TypeEngine[Any], value: str, dialect: str) -> Any:
    """The map's value for a column of this type. Raises UnsuitableValue."""
    column = LiveColumn("", kind, nullable=False, generated=False)
    plain: str | bool = value
    if column.family == "true or false":
        plain = {"true": True, "false": False}.get(value.lower(), value)
    fitting = convert_value(column, plain, dialect)
    if dialect == "sqlite" and isinstance(fitting, Decimal):
        return int(fitting) if fitting == fitting.to_integral_value() else float(fitting)
    return fitting


def _fixed(cell: Cell, rule: ColumnRule, dialect: str) -> ColumnElement[Any]:
    try:
        value = fixed_value(cell.type, rule.value or "", dialect)
    except UnsuitableValue:  # reported by `check`
        return null()
    if dialect == "sqlite":
        return literal(value) if isinstance(value, int | float) else literal(value, cell.type)
    return cast(literal(value, None if _is_enum(cell) else cell.type), cell.type)


def _empty(cell: Cell, dialect: str) -> ColumnElement[Any]:
    kind = cell.type
    if isinstance(kind, types.JSON):
        array = as_searchable_text(cell, dialect).regexp_match(r"^\s*\[")
        text: ColumnElement[Any] = case((array, literal_column("'[]'")), else_=literal_column("'{}'"))
        return text if dialect == "sqlite" else cast(text, kind)
    if isinstance(kind, LargeBinary):
        return literal_column("x''") if dialect == "sqlite" else cast(literal_column("''"), kind)
    if isinstance(kind, ARRAY):
        return cast(literal_column("'{}'"), kind)
    return literal_column("''") if isinstance(kind, String) else cast(literal_column("''"), kind)


def _is_not_empty(cell: Cell, dialect: str) -> ColumnElement[bool]:
    if isinstance(cell.type, types.JSON):
        return ~as_searchable_text(cell, dialect).regexp_match(_EMPTY_JSON)
    if isinstance(cell.type, LargeBinary):
        return func.length(cell) > 0
    if isinstance(cell.type, ARRAY):
        return func.cardinality(cell) > 0
    return cast(cell, Text) != literal_column("''")


# --- random values ---------------------------------------------------------------------------------------


def _random(cell: Cell, form: RandomText, dialect: str) -> ColumnElement[str]:
    return _random_text(form.digits(_length(cell)), form.suffix, dialect)


@cache
def _random_text(count: int, suffix: str, dialect: str) -> ColumnElement[str]:
    if dialect == "sqlite":
        hexadecimal = func.lower(func.hex(func.randomblob(16)))
    else:
        hexadecimal = func.replace(cast(func.gen_random_uuid(), Text), "-", "")
    digits = func.substr(hexadecimal, 1, count, type_=String())
    return literal(PREFIX, String()).concat(digits).concat(literal(suffix, String()))


def _is_random(cell: Cell, form: RandomText, dialect: str) -> ColumnElement[bool]:
    # The whole form, not just the prefix: whoever calls himself `erased-bob` is to be erased too.
    digits = form.digits(_length(cell))
    if dialect == "sqlite":
        whole = PREFIX + "[0-9a-f]" * digits + form.suffix
        return cell.op("GLOB", is_comparison=True)(literal(whole, String()))
    ending = form.suffix.replace(".", r"\.")
    return as_searchable_text(cell, dialect).regexp_match(f"^{PREFIX}[0-9a-f]{{{digits}}}{ending}$")


def _random_number(cell: Cell, dialect: str) -> ColumnElement[Any]:
    low, high = number_range(cell.type) or (0, 0)
    count = high - low + 1
    if dialect == "sqlite":
        return literal_column(f"({low} + abs(random() % {count}))")
    return cast(literal_column(f"({low} + CAST(floor(random() * {count}) AS bigint))"), cell.type)


def _has_dashes(cell: Cell) -> bool:
    length = _length(cell)
    return length is None or length >= 36


def _random_uuid(cell: Cell, dialect: str) -> ColumnElement[Any]:
    if dialect == "sqlite":
        rest = " || ".join(
            f"'{start}' || substr(lower(hex(randomblob(8))), 1, {digits})"
            for start, digits in (("-", 4), ("-4", 3), ("-a", 3), ("-", 12))
        )
        text: ColumnElement[Any] = literal_column(f"('{UUID_PREFIX}' || {rest})", String())
    else:
        text = literal(UUID_PREFIX, String()).concat(func.substr(cast(func.gen_random_uuid(), Text), 9))
    if isinstance(cell.type, types.Uuid):
        return cast(text, cell.type)
    return text if _has_dashes(cell) else func.replace(text, "-", "")


def _is_uuid(cell: Cell, dialect: str) -> ColumnElement[bool]:
    dash = "-" if _has_dashes(cell) else ""
    rest = dash.join(("", "[0-9a-f]{4}", "[0-9a-f]{4}", "[0-9a-f]{4}", "[0-9a-f]{12}"))
    return as_searchable_text(cell, dialect).regexp_match(rf"^{UUID_PREFIX}{rest}\Z")


# --- values derived from the cell ------------------------------------------------------------------------


def _truncated(cell: Cell, to: DatePart, dialect: str) -> ColumnElement[Any]:
    timed = isinstance(cell.type, types.DateTime)
    if dialect == "sqlite":
        # What SQLite can't read as a date becomes NULL: better a hole than a birthday that stays.
        first = "%Y-01-01" if to is DatePart.YEAR else "%Y-%m-01"
        return func.strftime(first + (" 00:00:00" if timed else ""), cell)
    if timed and getattr(cell.type, "timezone", False):
        return func.date_trunc(to.value, cell, "UTC")
    if timed:
        return func.date_trunc(to.value, cell)
    # As a moment, a date thousands of years ahead could not be written.
    year, month = (cast(extract(each, cell), types.Integer()) for each in ("year", "month"))
    first_day = func.make_date(year, month if to is DatePart.MONTH else 1, 1)
    return case((func.isfinite(cell), first_day), else_=cell)


def _hashed(cell: Cell, dialect: str) -> ColumnElement[str]:
    """HMAC-SHA256, spelled out: PostgreSQL has the hash without an extension, but no HMAC."""
    inner, outer = (bindparam(name, type_=LargeBinary()) for name in (HASH_INNER, HASH_OUTER))
    label = cast(bindparam(HASH_LABEL, type_=String()), Text)
    if dialect == "sqlite":
        return func.effaced_hash(cell, inner, outer, label, type_=String())
    within = func.sha256(cast(inner, LargeBinary).concat(func.convert_to(cast(cell, Text), "UTF8")))
    digest = func.sha256(cast(outer, LargeBinary).concat(within))
    return label.concat(func.encode(digest, "hex", type_=String()))
