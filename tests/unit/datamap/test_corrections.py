"""Corrected values: what each kind of column takes, and what is refused without being repeated."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from live_tables import live_schema, live_table, read_map
from sqlalchemy import types

from effaced.core.errors import Refused
from effaced.datamap.compile.corrections import UnsuitableValue, changes_for, convert_value
from effaced.datamap.schema.tables import LiveColumn
from effaced.model import Correction, CorrectionValue


def column(kind: types.TypeEngine[object], *, nullable: bool = False) -> LiveColumn:
    return LiveColumn("cell", kind, nullable=nullable, generated=False)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (types.Text(), "Ada", "Ada"),
        (types.Integer(), "7", 7),
        (types.Integer(), 7.0, 7),
        (types.Numeric(5, 2), "123.450", Decimal("123.450")),
        (types.Boolean(), True, True),
        (types.Date(), "1990-04-01", date(1990, 4, 1)),
        (types.Enum("open", "closed"), "open", "open"),
    ],
)
def test_a_value_is_converted_to_the_column_s_type(
    kind: types.TypeEngine[object], value: CorrectionValue, expected: object
) -> None:
    assert convert_value(column(kind), value, "postgresql") == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (types.Text(), 7),
        (types.Text(), "a\0b"),
        (types.String(3), "four"),
        (types.Integer(), "seven"),
        (types.Integer(), 1.5),
        (types.Integer(), 2**31),
        (types.Integer(), True),
        (types.Float(), "1e999"),
        (types.Numeric(5, 2), "1234"),
        (types.Numeric(5, 2), "1.234"),
        (types.Boolean(), "yes"),
        (types.Date(), "1990-4-1"),
        (types.Enum("open", "closed"), "lost"),
        (types.Text(), None),
    ],
)
def test_an_unsuitable_value_is_refused(kind: types.TypeEngine[object], value: CorrectionValue) -> None:
    with pytest.raises(UnsuitableValue) as refused:
        convert_value(column(kind), value, "postgresql")

    assert repr(value) not in str(refused.value) or value is None


def test_null_goes_into_a_column_that_may_be_null() -> None:
    assert convert_value(column(types.Text(), nullable=True), None, "postgresql") is None


MAP = read_map(
    """
    subject: {table: people, key: id}
    tables:
      people: {columns: {id: delete, email: delete, age: delete}}
      letters: {link: {to: people, on: {person: id}}, columns: {person: delete, email: delete}}
    rectify: {email: [people.email, letters.email], age: people.age}
    """
)
SCHEMA = live_schema(
    live_table("people", "id:int email age:int"), live_table("letters", "person:int email", primary=())
)


def test_a_category_is_written_into_all_its_columns() -> None:
    changes = changes_for(SCHEMA, MAP, [Correction("email", "new@example.com")])

    assert [(each.table, each.column) for each in changes] == [("people", "email"), ("letters", "email")]


def test_every_problem_is_named_at_once_and_no_value_is_repeated() -> None:
    corrections = [
        Correction("age", "ninety"),
        Correction("ada@example.com", "x"),
        Correction("people.email", 7),
    ]

    with pytest.raises(Refused) as refused:
        changes_for(SCHEMA, MAP, corrections)

    assert [(each.where, each.message) for each in refused.value.problems] == [
        ("corrections.age", "must be a number"),
        ("corrections.(unprintable)", "can't be corrected; the data map allows age, email"),
        ("corrections.people.email", "must be a text"),
    ]


def test_a_column_is_not_corrected_twice() -> None:
    with pytest.raises(Refused) as refused:
        changes_for(SCHEMA, MAP, [Correction("email", "a"), Correction("people.email", "b")])

    assert [each.where for each in refused.value.problems] == ["corrections.people.email"]
