"""The table of what columns can hold."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from effaced.datamap.vocabulary.concepts import BY_WORD, CONCEPTS, Concept


def test_each_concept_has_a_word_of_its_own() -> None:
    assert [word for word, times in Counter(each.word for each in CONCEPTS).items() if times > 1] == []
    assert list(BY_WORD) == [each.word for each in CONCEPTS]


def test_a_sure_phrase_means_one_concept_only() -> None:
    phrases = Counter(phrase for each in CONCEPTS for phrase in each.sure_phrases)

    assert [phrase for phrase, times in phrases.items() if times > 1] == []


@pytest.mark.parametrize("concept", CONCEPTS, ids=lambda each: each.word)
def test_phrases_are_plain_words_with_single_blanks(concept: Concept) -> None:
    assert [each for each in concept.phrases if not re.fullmatch("[a-z0-9]+( [a-z0-9]+)*", each)] == []


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("email", "an e-mail address"),
        ("ip", "an IP address"),
        ("phone", "a phone number"),
        ("health", "health"),
    ],
)
def test_a_label_is_said_with_its_article(word: str, expected: str) -> None:
    assert BY_WORD[word].with_article == expected
