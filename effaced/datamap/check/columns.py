"""Can each surrogate be written into its column? Only columns of rows that stay are checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Enum, String

from effaced.datamap.compile.corrections import CORRECTABLE, UnsuitableValue
from effaced.datamap.load.reader import did_you_mean, one_of
from effaced.datamap.model.data_map import ColumnRule, DataMap, Strategy, Surrogate, TableRule
from effaced.datamap.schema.tables import LiveColumn, LiveSchema, LiveTable
from effaced.datamap.surrogates.expressions import fixed_value
from effaced.datamap.surrogates.scrub_pattern import ERASED
from effaced.datamap.surrogates.shapes import HASH_LENGTH, RANDOM_TEXTS, number_range

_DATES = ("date", "date and time")
_EMPTIES = ("text", "json", "binary", "array", "tsvector", "hstore")
_LOOKED_FOR = ("text", "number", "uuid")
_FILLED = "derived is for columns that the database makes from others; this one is filled by somebody"
_UUID_DIGITS = 32
_ENOUGH = 2**28
"""As many numbers make it unlikely that two people get the same."""
_INSTEAD = {
    "text": Surrogate.RANDOM_UNIQUE,
    "number": Surrogate.RANDOM_NUMBER,
    "uuid": Surrogate.RANDOM_UUID,
}


def column_problems(schema: LiveSchema, data_map: DataMap) -> Iterator[tuple[int, str]]:
    for name, table in data_map.tables.items():
        live = schema.tables.get(name)
        yield from _undecided(table)
        for column, rule in table.columns.items():
            filled = live is not None and column in live.columns and not live.columns[column].computed
            if rule.strategy is Strategy.DERIVED and filled:
                yield rule.line, f"{name}.{column}: {_FILLED}"
    for live, written in written_columns(schema, data_map):
        for column, rule in written.items():
            for each in rule.leaf_rules:
                for message in _unknown_names(schema, data_map, each):
                    yield each.line, f"{live.name}.{column}: {message}"
        yield from writing_problems(live, written, schema.dialect)


def writing_problems(
    live: LiveTable, written: Mapping[str, ColumnRule], dialect: str
) -> Iterator[tuple[int, str]]:
    """Why these surrogates can't be written into rows of the table."""
    for column, rule in written.items():
        if column in live.columns:
            for message in _misfits(live.columns[column], rule, dialect):
                yield rule.line, f"{live.name}.{column}: {message}"
    yield from _collisions(live, written)


def written_columns(
    schema: LiveSchema, data_map: DataMap
) -> Iterator[tuple[LiveTable, Mapping[str, ColumnRule]]]:
    """What is written into rows that stay: the person's own, and other people's that mention them."""
    for name, table in data_map.tables.items():
        if (live := schema.tables.get(name)) is not None:
            if table.stays:
                yield live, table.changed
            for mention in table.mentions:
                yield live, mention.columns


def _undecided(table: TableRule) -> Iterator[tuple[int, str]]:
    """One problem per reason for a review, however many columns share it."""
    waiting: dict[str | None, list[str]] = {}
    for column, rule in table.columns.items():
        if rule.strategy is Strategy.REVIEW:
            waiting.setdefault(rule.reason, []).append(column)
    for reason, columns in waiting.items():
        names = ", ".join(f"{table.name}.{column}" for column in columns)
        them = "it" if len(columns) == 1 else "them"
        message = f"{names}: nobody has decided yet what happens to {them} (review: {reason})"
        yield table.columns[columns[0]].line, message


def _unknown_names(schema: LiveSchema, data_map: DataMap, rule: ColumnRule) -> Iterator[str]:
    """Names to scrub that are neither an identifier nor a column of the subject table that fits a text."""
    subject = schema.tables.get(data_map.subject)
    if rule.strategy is not Strategy.SCRUB or subject is None:
        return
    kinds = {each.kind: each.column for each in data_map.identifiers}
    if not rule.names and not kinds:
        yield "scrub: all means all identifiers, but the map has none; name columns of the subject table"
    for name in rule.names or tuple(kinds):
        column = subject.columns.get(kinds.get(name, name))
        if column is None and name not in kinds:
            near = did_you_mean(name, [*kinds, *subject.columns])
            yield f"scrub: '{name}' is neither an identifier nor a column of {subject.name}{near}"
        elif column is not None and column.family not in _LOOKED_FOR:
            yield f"scrub: '{name}' is {_kind(column)} and can't be looked for in a text"


def _misfits(column: LiveColumn, rule: ColumnRule, dialect: str) -> Iterator[str]:
    """Why the rule can't be applied to this column."""
    if column.generated:
        yield (
            "the database generates this column, so nothing can be written to it"
            + ("; derived says so" if column.computed else "")
        )
        return
    if rule.strategy is Strategy.JSON:
        if column.family not in ("json", "text"):
            yield f"json needs a column of JSON, or of text that holds it; this one is {_kind(column)}"
    elif rule.strategy is Strategy.SCRUB:
        yield from _scrub_misfits(column)
    else:
        yield from _surrogate_misfits(column, rule, dialect)


def _surrogate_misfits(column: LiveColumn, rule: ColumnRule, dialect: str) -> Iterator[str]:
    match rule.written:
        case Surrogate.NULL if not column.nullable:
            how = "delete" if rule.strategy is Strategy.DELETE else "anonymise: null"
            yield f"{how} makes it NULL because the row stays, but the column is NOT NULL"
        case Surrogate.FIXED_TEXT:
            yield from _fixed_text_misfits(column, rule.text or "")
        case Surrogate.FIXED:
            yield from _fixed_misfits(column, rule.value or "", dialect)
        case Surrogate.RANDOM_UNIQUE | Surrogate.RANDOM_EMAIL:
            yield from _needs_text(column, rule.word, RANDOM_TEXTS[rule.written].shortest)
        case Surrogate.KEYED_HASH:
            yield from _needs_text(column, rule.word, HASH_LENGTH)
        case Surrogate.RANDOM_UUID if column.family != "uuid":
            yield from _needs_text(column, rule.word, _UUID_DIGITS)
        case Surrogate.RANDOM_NUMBER if number_range(column.type) is None:
            yield f"random_number needs a column of whole or decimal numbers; this one is {_kind(column)}"
        case Surrogate.TRUNCATED_DATE if column.family not in _DATES:
            yield f"truncated_date needs a column of dates; this one is {_kind(column)}"
        case Surrogate.EMPTY if column.family not in _EMPTIES:
            yield f"empty needs text, JSON, an array or bytes; this one is {_kind(column)}"
        case _:
            pass


def _needs_text(column: LiveColumn, how: str, length: int) -> Iterator[str]:
    if column.family != "text":
        yield f"{how} needs a text column; this one is {_kind(column)}"
    elif column.length is not None and column.length < length:
        yield f"{how} needs {length} characters; the column holds {column.length}"


def _fixed_text_misfits(column: LiveColumn, text: str) -> Iterator[str]:
    if column.enum_values:
        if text not in column.enum_values:
            yield f"fixed_text must be one of the column's own words: {one_of(column.enum_values)}"
    elif column.family != "text":
        yield f"fixed_text needs a text column; this one is {_kind(column)}"
    elif column.length is not None and len(text) > column.length:
        yield f"fixed_text has {len(text)} characters; the column holds {column.length}"


def _fixed_misfits(column: LiveColumn, value: str, dialect: str) -> Iterator[str]:
    if column.family not in CORRECTABLE and not column.enum_values:
        yield f"fixed needs a column of {one_of(CORRECTABLE)}; this one is {_kind(column)}"
        return
    try:
        fixed_value(column.type, value, dialect)
    except UnsuitableValue as unfit:
        yield f"fixed: the value {unfit}"


def _scrub_misfits(column: LiveColumn) -> Iterator[str]:
    kind = column.type.item_type if isinstance(column.type, ARRAY) else column.type
    if not isinstance(kind, String) or isinstance(kind, Enum):
        yield f"scrub needs a column of text, or of arrays of text; this one is {_kind(column)}"
    elif kind.length is not None and kind.length < len(ERASED):
        yield f"scrub needs {len(ERASED)} characters; the column holds {kind.length}"


def _collisions(live: LiveTable, changed: Mapping[str, ColumnRule]) -> Iterator[tuple[int, str]]:
    """Surrogates that could repeat where the database wants unique values."""
    for unique in live.uniques:
        written = {column: rule for column, rule in changed.items() if column in unique.columns}
        # A NULL stays as it is under every surrogate; alone in its index, it is one that was there before.
        never_null = unique.nulls_repeat or len(written) == 1
        if any(
            unique.nulls_repeat
            if rule.written is Surrogate.NULL
            else _differs(live.columns[column], rule) and (never_null or not live.columns[column].nullable)
            for column, rule in written.items()
        ):
            continue
        for column, rule in written.items():
            others = sorted(unique.columns - {column})
            together = f" together with {', '.join(others)}" if others else ""
            instead = _INSTEAD.get(live.columns[column].family or "", Surrogate.NULL)
            advice = f"; use {instead}" if instead is not rule.written else ""
            yield (
                rule.line,
                f"{live.name}.{column}: the column is UNIQUE{together}, and {rule.word} can repeat{advice}",
            )


def _differs(column: LiveColumn, rule: ColumnRule) -> bool:
    """Whether the surrogate hardly ever writes the same value twice."""
    if rule.written is Surrogate.RANDOM_NUMBER:
        low, high = number_range(column.type) or (0, 0)
        return high - low >= _ENOUGH
    return not rule.can_repeat


def _kind(column: LiveColumn) -> str:
    return column.family or "of an unknown type"
