"""Schemas and data maps for tests that need no database."""

from __future__ import annotations

import tempfile
from pathlib import Path
from textwrap import dedent

from sqlalchemy import types

from effaced.datamap.load.file import load_map
from effaced.datamap.model.data_map import DataMap
from effaced.datamap.schema.tables import ForeignKey, LiveColumn, LiveSchema, LiveTable, Unique

_TYPES: dict[str, types.TypeEngine[object]] = {
    "int": types.Integer(),
    "text": types.Text(),
    "date": types.Date(),
    "json": types.JSON(),
}


def live_column(spec: str) -> LiveColumn:
    """`email`, `id:int` or `referred_by:int?`; a question mark means that it may be NULL."""
    name, _, kind = spec.removesuffix("?").partition(":")
    return LiveColumn(name, _TYPES[kind or "text"], nullable=spec.endswith("?"), generated=False)


def live_table(name: str, columns: str, *, primary: tuple[str, ...] = ("id",)) -> LiveTable:
    found = [live_column(spec) for spec in columns.split()]
    uniques = (Unique(frozenset(primary)),) if primary else ()
    return LiveTable(name, {each.name: each for each in found}, uniques, primary)


def live_schema(*tables: LiveTable, keys: tuple[str, ...] = (), dialect: str = "postgresql") -> LiveSchema:
    """`keys` as `orders.customer_id -> customers.id`, with ` cascade` where the database acts itself."""
    return LiveSchema(dialect, {each.name: each for each in tables}, tuple(_foreign_key(key) for key in keys))


def _foreign_key(spec: str) -> ForeignKey:
    pointer, _, target, *acts = spec.split()
    (table, own), (to, other) = pointer.split("."), target.split(".")
    return ForeignKey(table, to, ((own, other),), acts == ["cascade"])


def read_map(text: str) -> DataMap:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "datamap.yaml"
        path.write_text("version: 1\n" + dedent(text))
        return load_map(path)
