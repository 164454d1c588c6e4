"""Removing a person's identifiers from free text, in SQL. The pattern is a parameter; NULL never matches."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ColumnElement,
    String,
    Text,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by

from effaced.datamap.compile.parameters import scrub_name
from effaced.datamap.model.data_map import ColumnRule
from effaced.datamap.surrogates.scrub_pattern import ERASED, PASSES

Cell = ColumnElement[Any]


def scrubbed(cell: Cell, rule: ColumnRule, dialect: str) -> ColumnElement[Any]:
    """The text with `[erased]` for each match; nothing but `[erased]` if it would not fit the column."""
    if dialect == "sqlite":
        return _fitting(func.effaced_scrub(cell, _pattern(rule), type_=String()), cell.type)
    if not isinstance(cell.type, ARRAY):
        return _fitting(_replaced(cell, rule), cell.type)
    items = func.unnest(cell).table_valued("item", with_ordinality="place").render_derived()
    item = _fitting(_replaced(items.c.item, rule), cell.type.item_type)
    texts = select(func.array_agg(aggregate_order_by(item, items.c.place))).scalar_subquery()
    # Taken apart, an array of arrays would come together as a flat one.
    flat = func.array_ndims(cell) == 1
    return case((flat, cast(texts, cell.type)), else_=cast(_replaced(cell, rule), cell.type))


def contains_identifiers(cell: Cell, rule: ColumnRule, dialect: str) -> ColumnElement[bool]:
    """Whether the pattern matches the cell."""
    if dialect == "sqlite":
        return func.effaced_scrub(cell, _pattern(rule), type_=String()) != cell
    if not isinstance(cell.type, ARRAY):
        found = as_searchable_text(cell, dialect).regexp_match(_pattern(rule))
        return func.coalesce(found, literal_column("false"))
    items = func.unnest(cell).table_valued("item").render_derived()
    found = as_searchable_text(items.c.item, dialect).regexp_match(_pattern(rule))
    return exists(select(literal_column("1")).where(found))


def as_searchable_text(cell: Cell, dialect: str) -> ColumnElement[str]:
    """The cell as a text whose letters are compared one by one.

    PostgreSQL has collations in which `A` and `a` are the same, and refuses to search those by a pattern.
    """
    text = cast(cell, Text)
    return text if dialect == "sqlite" else text.collate("C")


def _pattern(rule: ColumnRule) -> ColumnElement[str]:
    return cast(bindparam(scrub_name(rule), type_=String()), Text)


def _replaced(cell: Cell, rule: ColumnRule) -> ColumnElement[str]:
    text: ColumnElement[Any] = as_searchable_text(cell, "postgresql")
    for _ in range(PASSES):
        text = func.regexp_replace(text, _pattern(rule), literal_column(f"'{ERASED}'"), literal_column("'g'"))
    return text


def _fitting(text: ColumnElement[Any], kind: Any) -> ColumnElement[Any]:
    length = kind.length if isinstance(kind, String) else None
    if length is None:
        return text
    return case((func.length(text) > length, literal_column(f"'{ERASED}'")), else_=text)
