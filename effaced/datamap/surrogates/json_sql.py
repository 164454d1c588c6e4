"""JSON documents by path, in SQL. SQLite has a function for it (`sqlite_functions.py`)."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    LargeBinary,
    String,
    Text,
    and_,
    bindparam,
    case,
    cast,
    false,
    func,
    literal,
    literal_column,
    null,
    true,
    types,
)
from sqlalchemy.dialects.postgresql import JSONB

from effaced.datamap.compile.parameters import HASH_INNER, HASH_LABEL, HASH_OUTER, scrub_name
from effaced.datamap.model.data_map import ColumnRule, Strategy
from effaced.datamap.model.json_paths import as_tree
from effaced.datamap.surrogates.documents import Document, LeafRules

Cell = ColumnElement[Any]


def with_paths_replaced(cell: Cell, rule: ColumnRule, dialect: str, rules: LeafRules) -> ColumnElement[Any]:
    """The document with the value at every path replaced; as a whole if it is no JSON or would be too long.

    On PostgreSQL only for cells of which `any_path_still_personal` is true.
    """
    if dialect == "sqlite":
        return _on_sqlite(cell, rule)
    new = Document(rules, cell).new(as_tree(rule.paths))
    if isinstance(cell.type, JSONB):
        return new
    text = cast(new, Text)
    fitting: Cell = cast(text, cell.type)
    if (length := getattr(cell.type, "length", None)) is not None:
        fitting = case((func.length(text) > length, _nothing(cell)), else_=text)
    return case((_valid(cell), fitting), else_=_nothing(cell))


def any_path_still_personal(
    cell: Cell, rule: ColumnRule, dialect: str, rules: LeafRules
) -> ColumnElement[bool]:
    """Whether a path leads to a value that has not been replaced yet."""
    if dialect == "sqlite":
        return and_(cell.is_not(None), cell.is_distinct_from(_on_sqlite(cell, rule)))
    holds = Document(rules, cell).holds(as_tree(rule.paths))
    if isinstance(cell.type, JSONB):
        return func.coalesce(holds, false())
    return case((cell.is_(None), false()), (~_valid(cell), true()), else_=holds)


def _valid(cell: Cell) -> ColumnElement[bool]:
    # What jsonb can't hold (\u0000), the functions of json can't take apart either.
    return func.pg_input_is_valid(cast(cell, Text), literal_column("'jsonb'"), type_=types.Boolean())


def _nothing(cell: Cell) -> ColumnElement[Any]:
    if getattr(cell, "nullable", True):
        return null()
    return (
        literal_column("'{}'") if isinstance(cell.type, String) else cast(literal_column("'{}'"), cell.type)
    )


def paths_as_json(rule: ColumnRule) -> str:
    """A rule's paths as an argument of the function on SQLite, which caches by it."""
    return json.dumps(
        [
            [path, each.strategy, each.surrogate, each.text, each.value, each.names]
            for path, each in rule.paths
        ]
    )


def _on_sqlite(cell: Cell, rule: ColumnRule) -> ColumnElement[str]:
    parameters: list[BindParameter[Any]] = []
    if rule.pseudonymises:
        parameters += [bindparam(name, type_=LargeBinary()) for name in (HASH_INNER, HASH_OUTER)]
        parameters += [bindparam(HASH_LABEL, type_=String())]
    scrubs = {scrub_name(each) for _, each in rule.paths if each.strategy is Strategy.SCRUB}
    parameters += [bindparam(name, type_=String()) for name in sorted(scrubs)]
    named: list[Any] = [part for each in parameters for part in (literal(each.key, String()), each)]
    nothing = _nothing(cell)
    length = literal(getattr(cell.type, "length", None), types.Integer())
    return func.effaced_json(
        cell, nothing, length, literal(paths_as_json(rule), String()), *named, type_=String()
    )
