"""Subject ids: from the text of a request to the values of a key, and back."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import BigInteger, Integer, Numeric, SmallInteger, String, Uuid

from effaced.core.errors import NotFound
from effaced.datamap.compile.key import KeyColumns, join_id, split_id
from effaced.datamap.schema.tables import LiveColumn


def key(*kinds, dialect="postgresql"):
    columns = [LiveColumn(f"c{i}", kind, nullable=False, generated=False) for i, kind in enumerate(kinds)]
    return KeyColumns(tuple(columns), dialect)


def value(kind, text, dialect="postgresql"):
    values = key(kind, dialect=dialect).values(text)
    return None if values is None else values["effaced_subject_key_0"]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (Integer(), "7", 7),
        (Integer(), "-7", -7),
        (Integer(), "0", 0),
        (Integer(), "2147483647", 2**31 - 1),
        (BigInteger(), "2147483648", 2**31),
        (Numeric(20, 0), "99999999999999999999", 99999999999999999999),
        (String(), " 7 ", " 7 "),
        (String(), "a|b\\", "a|b\\"),
        (Uuid(), "0000000A-0000-0000-0000-000000000000", UUID(int=10 << 96)),
    ],
)
def test_an_id_becomes_a_value_of_the_keys_type(kind, text, expected):
    assert value(kind, text) == expected


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Integer(), ""),
        (Integer(), "x"),
        (Integer(), "007"),
        (Integer(), "+7"),
        (Integer(), "-0"),
        (Integer(), "1_000"),
        (Integer(), "٧"),
        (Integer(), "7\n"),
        (Integer(), "2147483648"),
        (SmallInteger(), "32768"),
        (BigInteger(), "9223372036854775808"),
        (String(), "a\0b"),
        (String(), "\ud800"),
        (Uuid(), "x"),
        (Uuid(), "{0000000a-0000-0000-0000-000000000000}"),
    ],
)
def test_an_id_that_the_key_cannot_hold_is_no_value(kind, text):
    assert value(kind, text) is None


def test_sqlite_integers_have_64_bits():
    assert value(Integer(), "2147483648", dialect="sqlite") == 2147483648
    assert value(Integer(), "9223372036854775808", dialect="sqlite") is None


@pytest.mark.parametrize("text", ["1", "1|2|3", "x|2", "1|2\\"])
def test_a_composite_id_needs_all_its_parts(text):
    assert key(Integer(), String()).values(text) is None


def test_an_impossible_id_is_not_found_and_the_form_is_named_but_not_the_id():
    with pytest.raises(NotFound) as caught:
        key(Integer(), String()).require("bob@example.org")
    assert str(caught.value) == "Invalid subject id; the data map declares it as c0 (number)|c1 (text)."


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=2, max_size=4))
def test_composite_ids_survive_the_way_there_and_back(parts):
    assert split_id(join_id(parts)) == parts


def test_numbers_are_spelled_without_needless_zeros():
    assert join_id([Decimal("7.00")]) == "7"
