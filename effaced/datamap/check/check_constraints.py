"""Do the surrogates satisfy the database's CHECK constraints? The database is asked to evaluate them.

This covers what an erasure writes, and what the end of a retention will write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, String, cast, literal, literal_column, null, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import JSON, Date, DateTime, LargeBinary

from effaced.datamap.check.columns import written_columns
from effaced.datamap.compile.corrections import UnsuitableValue
from effaced.datamap.compile.retention_groups import WHEN_ENDED, after_retention, ending_columns, ends_at_once
from effaced.datamap.model.data_map import ColumnRule, DataMap, Strategy, Surrogate
from effaced.datamap.model.last_day import Until
from effaced.datamap.schema.tables import Check, LiveColumn, LiveSchema, LiveTable
from effaced.datamap.surrogates.expressions import fixed_value
from effaced.datamap.surrogates.shapes import PREFIX, RANDOM_TEXTS, UUID_PREFIX, number_range

Finding = tuple[int, str]
_TEXT_JSON_SINCE = 16
_UNKNOWN = object()
_EMPTY = {"json": "{}", "array": "{}", "binary": b""}


@dataclass(frozen=True, slots=True)
class _WrittenRows:
    """What is written into rows of a table, and which of these columns are to be tested."""

    table: LiveTable
    rules: Mapping[str, ColumnRule]
    tried: Mapping[str, Until | None]
    """With the end of its retention, if it is written then; the others are as the erasure has left them."""
    row_goes: bool = False
    """Whether a row goes when all of these retentions have ended."""

    @property
    def suffix(self) -> str:
        return WHEN_ENDED if any(self.tried.values()) else ""

    def rules_of(self, check: Check) -> dict[str, ColumnRule]:
        """The rules for the CHECK's columns, those to be tested first; none if the row is gone by then."""
        tried = [name for name in self.tried if name in check.columns]
        gone = self.row_goes and {self.tried[name] for name in tried} == set(self.tried.values())
        others = [name for name in self.rules if name in check.columns and name not in tried]
        return {name: self.rules[name] for name in (*tried, *others)} if tried and not gone else {}


@dataclass(frozen=True, slots=True)
class _Case:
    """A CHECK whose columns all have a known value afterwards."""

    table: LiveTable
    rules: dict[str, ColumnRule]
    check: Check
    values: dict[str, Any]
    suffix: str

    def query(self, dialect: str) -> ColumnElement[Any]:
        """A SELECT of the CHECK's value for these cells."""
        cells = [
            _literal(self.table.columns[name], value, dialect).label(name)
            for name, value in sorted(self.values.items())
        ]
        # Under the table's own name, by which the CHECK may speak of its columns.
        row = select(*cells).subquery(self.table.name)
        return select(literal_column(f"({self.check.sql})")).select_from(row).scalar_subquery()


def check_constraint_problems(
    connection: Connection, schema: LiveSchema, data_map: DataMap
) -> Iterator[Finding]:
    """Surrogates that a CHECK or a domain refuses, now or when a retention ends. Changes nothing."""
    dialect = schema.dialect
    cases = [each for each in _cases(schema, data_map) if isinstance(each, _Case)]
    for each, answer in zip(
        cases, _evaluate_all(connection, [case.query(dialect) for case in cases]), strict=True
    ):
        # A CHECK that comes out as NULL is satisfied.
        if answer is not None and answer is not _UNKNOWN and not answer:
            yield _refused(each)
    if dialect == "postgresql":
        yield from _domain_problems(connection, schema, data_map)
        yield from _json_on_old_server(connection, schema, data_map)


def check_constraint_notes(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    """CHECKs of which nobody can say yet: they depend on what else is in the row."""
    yield from (each for each in _cases(schema, data_map) if not isinstance(each, _Case))


def _cases(schema: LiveSchema, data_map: DataMap) -> Iterator[_Case | Finding]:
    """A case for each CHECK that can be evaluated, a note for each that can't."""
    for written in _written_rows(schema, data_map):
        live = written.table
        for check in live.checks:
            rules = written.rules_of(check)
            values = {name: _sample(live.columns[name], rule, schema.dialect) for name, rule in rules.items()}
            if rules and check.columns <= set(rules) and _UNKNOWN not in values.values():
                yield _Case(live, rules, check, values, written.suffix)
            elif rules:
                name, rule = next(iter(rules.items()))
                yield (
                    rule.line,
                    f"{live.name}.{name}: whether {rule.word} satisfies the CHECK {_name(check)} depends on"
                    f" what else the row holds; the database decides at that moment{written.suffix}",
                )


def _written_rows(schema: LiveSchema, data_map: DataMap) -> Iterator[_WrittenRows]:
    by_erasure = (
        _WrittenRows(live, rules, dict.fromkeys(rules)) for live, rules in written_columns(schema, data_map)
    )
    # A map that names columns which are not there has other problems.
    for each in (*by_erasure, *_written_after_retention(schema, data_map)):
        if set(each.rules) <= set(each.table.columns):
            yield each


def _written_after_retention(schema: LiveSchema, data_map: DataMap) -> Iterator[_WrittenRows]:
    """What the `then` of each retention writes."""
    for name, table in data_map.tables.items():
        live, after, ends = schema.tables.get(name), after_retention(table), ending_columns(table)
        # A row whose cells all end on one day goes as it is.
        if live is not None and ends and (after.stays or not ends_at_once(table)):
            tried = {column: rule.until for column, rule in ends.items()}
            yield _WrittenRows(live, after.changed, tried, row_goes=not after.stays)


def _refused(case: _Case) -> Finding:
    name, rule = next(iter(case.rules.items()))
    others = [f"{other} ({each.word})" for other, each in case.rules.items() if other != name]
    together = f" together with {', '.join(others)}" if others else ""
    what = f"{case.table.name}.{name}: {rule.word}{together} does not satisfy the CHECK {_name(case.check)}"
    return rule.line, what + case.suffix


def _name(check: Check) -> str:
    return check.name or f"({check.sql})"


def _sample(column: LiveColumn, rule: ColumnRule, dialect: str) -> Any:
    """What the cell would hold, or a value like it; _UNKNOWN if that depends on the row."""
    match rule.written:
        case Surrogate.NULL:
            return None
        case Surrogate.FIXED_TEXT:
            return rule.text
        case Surrogate.FIXED:
            try:
                return fixed_value(column.type, rule.value or "", dialect)
            except UnsuitableValue:
                return _UNKNOWN
        case Surrogate.RANDOM_UNIQUE | Surrogate.RANDOM_EMAIL:
            form = RANDOM_TEXTS[rule.written]
            return PREFIX + "0" * form.digits(column.length) + form.suffix
        case Surrogate.RANDOM_NUMBER:
            low, _ = number_range(column.type) or (0, 0)
            return low
        case Surrogate.RANDOM_UUID:
            return _sample_uuid(column)
        case Surrogate.EMPTY:
            return _EMPTY.get(column.family or "", "")
        case Surrogate.KEYED_HASH:
            return f"hashed-k1-{'0' * 64}"
        case _:
            return _UNKNOWN


def _sample_uuid(column: LiveColumn) -> str:
    text = f"{UUID_PREFIX}-0000-4000-a000-000000000000"
    return text if column.length is None or column.length >= len(text) else text.replace("-", "")


def _literal(column: LiveColumn, value: Any, dialect: str) -> ColumnElement[Any]:
    if dialect == "sqlite":
        dated = isinstance(column.type, Date | DateTime) and not isinstance(value, str)
        return null() if value is None else literal(value, column.type) if dated else literal(value)
    if value is None:
        return cast(null(), column.type)
    if isinstance(column.type, JSON | LargeBinary):
        return cast(literal_column("''" if value == b"" else "'{}'"), column.type)
    return cast(literal(str(value), String()), column.type)


def _evaluate_all(connection: Connection, questions: Sequence[ColumnElement[Any]]) -> list[Any]:
    """All in one SELECT; one by one if the database can't evaluate one of them."""
    if not questions:
        return []
    answers, _ = _evaluate(connection, questions)
    if answers is not None:
        return answers
    if len(questions) == 1:
        return [_UNKNOWN]
    return [each for question in questions for each in _evaluate_all(connection, [question])]


def _evaluate(
    connection: Connection, questions: Sequence[ColumnElement[Any]]
) -> tuple[list[Any] | None, DBAPIError | None]:
    """The values, or the database's error; in a savepoint that is rolled back."""
    point = connection.begin_nested()
    try:
        return list(connection.execute(select(*(each.label(None) for each in questions))).one()), None
    except DBAPIError as error:
        return None, error
    finally:
        point.rollback()


def _domain_problems(connection: Connection, schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    for written in _written_rows(schema, data_map):
        live = written.table
        for name in written.tried:
            rule, column = written.rules[name], live.columns[name]
            value = _sample(column, rule, schema.dialect) if column.domain is not None else _UNKNOWN
            if column.domain is None or value is _UNKNOWN:
                continue
            question = cast(_literal(column, value, schema.dialect), column.domain)
            answers, error = _evaluate(connection, [question])
            state = getattr(error.orig, "sqlstate", None) if error else None
            if answers is None and state == "23514":
                broken = getattr(getattr(error.orig if error else None, "diag", None), "constraint_name", "")
                yield (
                    rule.line,
                    f"{live.name}.{name}: {rule.word} does not satisfy the CHECK {broken} of the domain"
                    f" {column.domain.name}{written.suffix}",
                )


def _json_on_old_server(connection: Connection, schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    version = getattr(connection.dialect, "server_version_info", None) or (0,)
    if version[0] >= _TEXT_JSON_SINCE:
        return
    for written in _written_rows(schema, data_map):
        live = written.table
        for name in written.tried:
            rule = written.rules[name]
            kind = type(live.columns[name].type).__name__.lower()
            if rule.strategy is Strategy.JSON and kind != "jsonb":
                yield (
                    rule.line,
                    f"{live.name}.{name}: json in a column of {kind} needs PostgreSQL {_TEXT_JSON_SINCE} or"
                    f" later; in one of jsonb it does not{written.suffix}",
                )
