"""Which characters count as the same when a text is searched for a name."""

from __future__ import annotations

import re

import pytest

from effaced.datamap.surrogates.folding import characters_for, fold, is_unspaced, word_letters


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ADA", "ada"),
        ("Zoë", "Zoe\u0308"),
        ("Straße", "STRASSE"),
        ("ﬁn", "fin"),
        ("Ａda", "Ada"),
        ("٣", "3"),
        ("İnci", "inci"),
        ("ılgaz", "Ilgaz"),
    ],
)
def test_spellings_of_the_same_text_fold_alike(one: str, other: str) -> None:
    assert fold(one) == fold(other)


def test_other_letters_stay_apart() -> None:
    assert fold("Zoe") != fold("Zoë") != fold("Zoé")


@pytest.mark.parametrize(("folded", "letter"), [("a", "A"), ("ss", "ß"), ("fi", "ﬁ"), ("3", "٣")])
def test_every_character_that_folds_to_a_text_is_known(folded: str, letter: str) -> None:
    assert letter in characters_for(folded)
    assert fold(letter) == folded


@pytest.mark.parametrize(
    ("letter", "expected"),
    [("a", True), ("я", True), ("7", True), ("_", True), (" ", False), ("-", False), ("東", False)],
)
def test_word_letters_are_those_of_scripts_with_blanks_between_words(letter: str, expected: bool) -> None:
    assert bool(re.fullmatch(f"[{word_letters()}]", letter)) is expected


@pytest.mark.parametrize(("letter", "expected"), [("東", True), ("か", True), ("ก", True), ("a", False)])
def test_scripts_without_blanks_are_known(letter: str, expected: bool) -> None:
    assert is_unspaced(letter) is expected
