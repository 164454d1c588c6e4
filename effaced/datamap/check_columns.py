"""Can each surrogate be written into its column? Only rows that stay are asked: the others go anyway."""

from __future__ import annotations

from collections.abc import Iterator

from effaced.datamap.model import ColumnRule, DataMap, Strategy, Surrogate, TableRule
from effaced.datamap.reader import one_of
from effaced.datamap.schema import LiveColumn, LiveSchema, LiveTable
from effaced.datamap.surrogates import SHORTEST

_DATES = ("date", "date and time")


def column_problems(schema: LiveSchema, data_map: DataMap) -> Iterator[tuple[int, str]]:
    for name, table in data_map.tables.items():
        live = schema.tables.get(name)
        if live is None or not table.stays:
            continue
        for column, rule in table.changed.items():
            if column in live.columns:
                for message in _misfits(live.columns[column], rule):
                    yield rule.line, f"{name}.{column}: {message}"
        yield from _collisions(live, table)


def _misfits(column: LiveColumn, rule: ColumnRule) -> Iterator[str]:
    if column.generated:
        yield "the database generates this column, so nothing can be written to it"
        return
    match rule.written:
        case Surrogate.NULL if not column.nullable:
            how = "delete" if rule.strategy is Strategy.DELETE else "anonymise: null"
            yield f"{how} makes it NULL because the row stays, but the column is NOT NULL"
        case Surrogate.FIXED_TEXT:
            yield from _fixed_text_misfits(column, rule.text or "")
        case Surrogate.RANDOM_UNIQUE if column.family != "text":
            yield f"random_unique needs a text column; this one is {_kind(column)}"
        case Surrogate.RANDOM_UNIQUE if column.length is not None and column.length < SHORTEST:
            yield f"random_unique needs {SHORTEST} characters; the column holds {column.length}"
        case Surrogate.TRUNCATED_DATE if column.family not in _DATES:
            yield f"truncated_date needs a column of dates; this one is {_kind(column)}"
        case _:
            pass


def _fixed_text_misfits(column: LiveColumn, text: str) -> Iterator[str]:
    if column.words:
        if text not in column.words:
            yield f"fixed_text must be one of the column's own words: {one_of(column.words)}"
    elif column.family != "text":
        yield f"fixed_text needs a text column; this one is {_kind(column)}"
    elif column.length is not None and len(text) > column.length:
        yield f"fixed_text has {len(text)} characters; the column holds {column.length}"


def _collisions(live: LiveTable, table: TableRule) -> Iterator[tuple[int, str]]:
    """Two erased rows must not come to hold the same where the database wants them different."""
    for unique in live.uniques:
        written = {column: rule for column, rule in table.changed.items() if column in unique.columns}
        harmless = {Surrogate.RANDOM_UNIQUE} | ({Surrogate.NULL} if unique.nulls_repeat else set())
        if any(rule.written in harmless for rule in written.values()):
            continue
        for column, rule in written.items():
            others = sorted(unique.columns - {column})
            together = f" together with {', '.join(others)}" if others else ""
            yield (
                rule.line,
                f"{table.name}.{column}: the column is UNIQUE{together}, and {rule.written} can repeat;"
                " use random_unique",
            )


def _kind(column: LiveColumn) -> str:
    return column.family or "of an unknown type"
