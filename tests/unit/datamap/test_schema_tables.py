"""Live tables: which columns can be compared, and what picks out one row."""

from __future__ import annotations

import pytest
from live_tables import live_schema, live_table
from sqlalchemy import types

from effaced.datamap.schema.read import columns_in_sql
from effaced.datamap.schema.tables import LiveColumn, LiveTable, Unique


@pytest.mark.parametrize(
    ("kind", "family"),
    [
        (types.String(10), "text"),
        (types.BigInteger(), "number"),
        (types.Numeric(5, 2), "number"),
        (types.Boolean(), "true or false"),
        (types.DateTime(), "date and time"),
        (types.Date(), "date"),
        (types.Uuid(), "uuid"),
        (types.Enum("a", "b", name="grade"), "enum grade"),
        (types.Interval(), "interval"),
        (types.NullType(), None),
    ],
)
def test_columns_of_one_family_can_be_compared(kind: types.TypeEngine[object], family: str | None) -> None:
    assert LiveColumn("cell", kind, nullable=True, generated=False).family == family


@pytest.mark.parametrize(
    ("columns", "expected"),
    [({"id"}, True), ({"id", "name"}, True), ({"name"}, False), ({"a"}, False), ({"a", "b"}, True)],
)
def test_columns_pick_out_one_row_if_a_whole_unique_lies_within_them(
    columns: set[str], expected: bool
) -> None:
    uniques = (
        Unique(frozenset({"id"})),
        Unique(frozenset({"a", "b"})),
        Unique(frozenset({"name"}), whole=False),
    )

    assert LiveTable("people", {}, uniques).determines(columns) is expected


def test_foreign_keys_are_found_from_both_ends() -> None:
    schema = live_schema(
        live_table("people", "id:int"),
        live_table("orders", "id:int person:int"),
        keys=("orders.person -> people.id",),
    )

    assert schema.keys_of("orders") == schema.keys_to("people") == list(schema.foreign_keys)
    assert schema.keys_of("people") == schema.keys_to("orders") == []
    assert str(schema.foreign_keys[0]) == "orders(person) -> people(id)"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("length(name) > 3", {"name"}),
        ("NAME <> ''", {"name"}),
        ("first_name IS NULL", set()),
        ('"a ""b""" = 1', {'a "b"'}),
        ("name || age", {"name", "age"}),
    ],
)
def test_an_expression_s_columns_are_found_as_whole_words(sql: str, expected: set[str]) -> None:
    assert columns_in_sql(sql, ["name", "age", 'a "b"']) == expected
