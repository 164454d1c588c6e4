"""One spelling per identifier, so that two spellings of one person have the same keyed hash."""

from __future__ import annotations

import pytest

from effaced.requests.identifiers import LONGEST, is_placeholder, normalise


@pytest.mark.parametrize(
    ("kind", "value", "spelling"),
    [
        ("email", " Anna.Meier@People.Example ", "anna.meier@people.example"),
        ("email", "ａｎｎａ@people.example", "anna@people.example"),
        ("name", "Straße", "strasse"),
        ("phone", "+49 (0)30 / 12-34.56", "+49030123456"),
        ("customer_no", "A-17 (b)", "a-17 (b)"),
    ],
)
def test_case_unicode_form_and_separators_make_no_difference(kind: str, value: str, spelling: str) -> None:
    assert normalise(kind, value) == spelling


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert normalise("name", "Jose\u0301") == normalise("name", "Jos\u00e9")


def test_what_is_too_long_to_be_an_identifier_keeps_its_unicode_form() -> None:
    long = "e\u0301" * LONGEST
    assert normalise("name", long) == long


@pytest.mark.parametrize("value", ["", "  ", "-", "N/A", " unknown ", "null", "0", "???"])
def test_a_placeholder_says_nothing_about_who_has_it(value: str) -> None:
    assert is_placeholder(value)


@pytest.mark.parametrize("value", ["1", "anna", "00", "Ø"])
def test_anything_else_does(value: str) -> None:
    assert not is_placeholder(value)
