"""Which names of tables and columns sound like people, for the notes of `effaced datamap check`.

Of the words that the draft knows, only those that hardly ever mean anything else: a draft is looked through
once, but notes that are wrong too often are read by nobody.
"""

from __future__ import annotations

from functools import cache

from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.concepts import CONCEPTS
from effaced.datamap.vocabulary.names import names_person, singular, split_and_expand, split_name


def column_sounds_like(name: str) -> str | None:
    """What personal data a column of this name most likely holds; None if the name does not tell."""
    found = split_and_expand(name)
    while len(found) > 1 and found[-1] in words.HARMLESS:
        found = found[:-1]
    for phrase, label in _phrases():
        if found[-len(phrase) :] == phrase:
            return label
    return "a person's name" if len(found) > 1 and found[-1] == "name" and names_person(name) else None


def table_sounds_like(name: str) -> str | None:
    """The word for people that the table's name ends in, if it does."""
    found = split_name(name.rpartition(".")[2])
    known = {*words.PEOPLE, *words.STAFF}
    return found[-1] if found and {found[-1], singular(found[-1])} & known else None


@cache
def _phrases() -> tuple[tuple[tuple[str, ...], str], ...]:
    return tuple(
        (split_name(phrase), concept.with_article) for concept in CONCEPTS for phrase in concept.sure_phrases
    )
