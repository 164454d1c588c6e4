"""Masks: the shape of a value, never the value."""

from __future__ import annotations

import re
from datetime import date
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effaced.datamap.run.masks import mask


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ("Ada Okafor", "A•••• O••••"),
        ("ada@example.org", "a••••@e••••.org"),
        ("ada.okafor+news@mail.example.co.uk", "a••••.o••••+n••••@m••••.e••••.••••.uk"),
        ("+49 30 1234567", "+•• •• •••••••"),
        ("DE89 3704 0044", "•••••• •••• ••••"),
        ("Kim", "••••"),
        ("male", "••••"),
        ("", ""),
        (None, "–"),
        (True, "••••"),
        (4711, "••••"),
        (date(1990, 5, 17), "••••-••-••"),
        (UUID(int=7), "••••••••-••••-••••-••••-••••••••••••"),
        (b"\x89PNG", "(binary)"),
        ({"name": "Ada"}, "(document)"),
        (["Ada"], "(list)"),
        ("Jürgen Müller-Lüdenscheidt", "J•••• M••••-L••••"),
        ("愛子", "••••"),
    ],
)
def test_what_is_left_of_a_value(value: object, masked: str) -> None:
    assert mask(value) == masked


def test_how_long_a_word_is_is_not_told() -> None:
    assert mask("Christopher Li-Xiaoming") == mask("Carla Lu-Xavier")


def test_a_long_text_is_cut() -> None:
    assert len(mask("words " * 1000)) < 60


@given(st.text(max_size=60))
def test_no_digit_and_no_two_letters_in_a_row_are_left(text: str) -> None:
    ending = found[1] if (found := re.search(r"@.*(\.[^\W\d_]{2,6})$", text)) else ""
    masked = mask(text)[: len(mask(text)) - len(ending)]
    assert not re.search(r"\d|[^\W\d_]{2}", masked)


@given(st.text(min_size=1, alphabet=st.characters(categories=["L", "N"]), max_size=60))
def test_a_word_is_never_shown_whole(text: str) -> None:
    assert mask(text) != text
