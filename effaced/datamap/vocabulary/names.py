"""What the name of a table or a column says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from unicodedata import combining, normalize

from effaced.datamap.schema.tables import LiveColumn, LiveTable
from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.abbreviations import SHORT
from effaced.datamap.vocabulary.concepts import BY_WORD, CONCEPTS, Concept

_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")
_LETTERS = str.maketrans(
    {
        "ä": "ae",
        "ö": "oe",
        "ü": "ue",
        "Ä": "Ae",
        "Ö": "Oe",
        "Ü": "Ue",
        "ß": "ss",
        "ł": "l",
        "Ł": "L",
        "ø": "o",
    }
)
_NUMBERED = ("code", "no", "nr", "num", "number")
_VOWELS = re.compile(r"(?<=.)[aeiou]")

# In names of dates they say when, in names of texts where or to whom.
_ALSO_PLACES = {("to",), ("from",), ("von",), ("bis",), ("am",), ("on",), ("start",), ("end",), ("data",)}


@cache
def split_name(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case and plain letters: customerId, customer_id -> customer, id."""
    plain = normalize("NFKD", normalize("NFC", name).translate(_LETTERS))
    plain = "".join(letter for letter in plain if not combining(letter))
    return tuple(word.lower() for part in re.split(r"[_\W]+", plain) for word in _PIECE.findall(part))


@cache
def split_and_expand(name: str) -> tuple[str, ...]:
    """The words of a name with abbreviations spelled out: cust_nm -> customer, name."""
    return tuple(_expand_word(word) for word in split_name(name))


@cache
def _expand_word(word: str) -> str:
    if word in _vocabulary():
        return word
    return SHORT.get(word) or _without_vowels().get(word, word)


@cache
def _vocabulary() -> frozenset[str]:
    known = {word for _, phrase in _phrases() for word in phrase}
    return frozenset(known | {*words.POINTER_ENDINGS, *words.PEOPLE, *words.STAFF})


@cache
def _without_vowels() -> dict[str, str]:
    """Words by what is left of them without vowels: cntct -> contact, hldr -> holder."""
    tables = [*words.PEOPLE, *words.STAFF, *words.PERHAPS_PEOPLE, *words.ORGANISATIONS, *words.FINANCIAL]
    known = [*sorted(_vocabulary()), *tables, *words.OWNING_ROLES]
    short = {_VOWELS.sub("", word): word for word in reversed(known) if len(word) > 4}
    return {cut: word for cut, word in short.items() if len(cut) > 3 and cut != word}


@cache
def singular(word: str) -> str:
    if word in ("people", "persons"):
        return "person"
    if word in (
        "status",
        "address",
        "diagnosis",
        "staff",
        "business",
        "news",
        "series",
        "analysis",
        "access",
    ):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if re.search(r"(ss|sh|ch|x|us|sis)es$", word):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


@cache
def table_words(name: str) -> tuple[str, ...]:
    """The words of a table's name that matter, in singular; without its schema, tbl_ and the like."""
    found = [singular(word) for word in split_and_expand(name.rpartition(".")[2])]
    while len(found) > 1 and found[0] in words.TABLE_PREFIXES:
        found.pop(0)
    while len(found) > 1 and found[-1] in words.TABLE_SUFFIXES:
        if found[-1] in words.PERHAPS_PEOPLE and found[-2] not in _singulars((*words.PEOPLE, *words.STAFF)):
            break  # a customer's profile is a customer; the profile of an app called shop is no shop
        found.pop()
    return tuple(found)


def head_word(name: str) -> str:
    """The word that says what a row of the table is: `order` of tbl_customer_orders."""
    return table_words(name)[-1] if table_words(name) else ""


def is_one_of(name: str, known: list[str]) -> bool:
    """Whether a table's name ends in one of these words or pairs of words."""
    found = table_words(name)
    pair = "_".join([singular(word) for word in split_name(name)][-2:])
    return bool(found) and (
        found[-1] in _singulars(tuple(known)) or pair in known or _is_compound_of(found[-1], known)
    )


@cache
def _singulars(known: tuple[str, ...]) -> frozenset[str]:
    return frozenset(known) | {singular(word) for word in known}


def _is_compound_of(word: str, known: list[str]) -> bool:
    """Whether a German compound ends in one of these words: Sammelrechnung is a Rechnung."""
    if word in words.CONTACTS or word in words.STRANGERS:
        return False  # an Ehepartner is no Partner
    return any(word.endswith(each) and len(word) > len(each) + 2 for each in known if len(each) > 5)


@dataclass(frozen=True, slots=True)
class Pointer:
    """What the name of a column that may point somewhere says: the words for where, and how it ends."""

    stem: tuple[str, ...]
    ending: str


@cache
def pointer(column: str) -> Pointer | None:
    """`billing_customer_id` -> (billing, customer) id; `created_by` -> (created) by; else None."""
    found = split_name(column)
    if not found:
        return None
    if len(found) == 1:
        for ending in words.POINTER_ENDINGS:
            stem = found[0].removesuffix(ending)
            if (
                stem != found[0]
                and len(stem) > 3
                and (stem in _people_words() or singular(stem) in _people_words())
            ):
                return Pointer((singular(stem),), ending)
        return Pointer(found, "") if found[0] in _people_words() else None
    if found[-1] in ("by", "to"):
        return Pointer(found[:-1], found[-1])
    for ending, known, rest in (
        (split_and_expand(column)[-1], words.POINTER_ENDINGS, slice(None, -1)),
        (found[0], words.POINTER_BEGINNINGS, slice(1, None)),
    ):
        if ending in known:
            return Pointer(tuple(singular(word) for word in split_and_expand(column)[rest]), ending)
    # post_author: somebody, if the column holds no text.
    return Pointer(found, "") if found[-1] in _people_words() else None


@cache
def _people_words() -> frozenset[str]:
    """Words for people that a column pointing at them may be named after."""
    roles = ("author", "owner", "sender", "assignee", "whodunnit")
    relations = ("blocker", "blocked", "follower", "followee")
    return _singulars((*words.PEOPLE, *words.STAFF, *roles, *relations, *words.RECEIVING_ROLES))


@cache
def concept_of(column: str, family: str | None, table: str = "") -> Concept | None:
    """What a column of that name and type most likely holds; None if the name does not tell.

    The name of the table in front of it says nothing about it: comment_approved in comments.
    """
    table_name = table_words(table)
    named = split_and_expand(column)
    if table_name and len(named) > 1 and singular(named[0]) == table_name[-1] and not _is_phrase(named):
        named = named[1:]
    core = _without_harmless(named)
    return (
        _concept_before_number(core, family)
        or _first_concept((core, tuple(map(singular, core)), named), family, table_name)
        # Not by the name of the table: `user` in a table of users may be anything.
        or (
            BY_WORD["full_name"]
            if family == "text" and named and singular(named[-1]) in _people_words()
            else None
        )
    )


def _without_harmless(name: tuple[str, ...]) -> tuple[str, ...]:
    """The name without words at its end that change nothing, as in email_lower."""
    while len(name) > 1 and name[-1] in words.HARMLESS:
        name = name[:-1]
    return name


def _concept_before_number(name: tuple[str, ...], family: str | None) -> Concept | None:
    """What the words before `code` or `no` say about a person: sex_code, mobile_no."""
    if len(name) < 2 or name[-1] not in _NUMBERED or _is_phrase(name):
        return None
    concept = _best_concept(name[:-1], family)
    return concept if concept and concept.personal and concept.word != "free_text" else None


def _first_concept(
    names: Sequence[tuple[str, ...]], family: str | None, table_name: tuple[str, ...]
) -> Concept | None:
    """The first concept that one of these ways to write a column's name stands for."""
    for name in dict.fromkeys(names):
        if concept := _best_concept(name, family):
            of_table = _concept_with_table(table_name, names[0], family) if concept.word == "number" else None
            return of_table or concept
    return None


def _concept_with_table(
    table_name: tuple[str, ...], name: tuple[str, ...], family: str | None
) -> Concept | None:
    """The reg_no of a vehicle is its plate, that of a pharmacist is not."""
    if not table_name or len(name) < 2 or name[-1] not in _NUMBERED:
        return None
    concept = _best_concept((table_name[-1], *name[:-1]), family)
    return concept if concept and concept.personal else None


def concept_in(table: LiveTable, column: LiveColumn) -> Concept | None:
    """`concept_of` for a live column."""
    return concept_of(column.name, column.family, table.name)


def _best_concept(name: tuple[str, ...], family: str | None) -> Concept | None:
    """The concept of the longest phrase that matches, preferring those at the end of the name."""
    best: tuple[int, int] = (0, 0)
    answer: Concept | None = None
    for place, concept, phrase in _matching_phrases(name):
        if concept.families is not None and family is not None and family not in concept.families:
            continue
        if family == "text" and concept.word == "moment" and phrase in _ALSO_PLACES:
            continue
        if place == 1 and concept.word == "phone" and name[-1] == "id":
            # The cell that a call went through.
            continue
        if (place, len("".join(phrase))) > best:
            best, answer = (place, len("".join(phrase))), concept
    return answer


def _matching_phrases(name: tuple[str, ...]) -> Iterator[tuple[int, Concept, tuple[str, ...]]]:
    """Phrases in the name, each with its weight: 2 at the end of the name, 1 at its beginning.

    The last words count most (e-mail status is a status), in Romance languages the first.
    """
    if not name:
        return
    by_last, by_first, joined = _index()
    for concept, phrase in by_last.get(name[-1], ()):
        if name[-len(phrase) :] == phrase:
            yield 2, concept, phrase
    # nachname and NachName, gebdat and GebDat
    written = dict.fromkeys((name[-1], "".join(name)))
    heads = [head for head in words.COMPOUND_HEADS if name[-1].endswith(head)]
    for word in (*written, *heads):
        for concept, phrase in joined.get(word, ()):
            yield 2, concept, phrase
    for concept, phrase in by_first.get(name[0], ()):
        if name[: len(phrase)] == phrase and (concept.personal or concept.word == "moment"):
            yield 1, concept, phrase


_Phrases = dict[str, list[tuple[Concept, tuple[str, ...]]]]


@cache
def _index() -> tuple[_Phrases, _Phrases, _Phrases]:
    """All phrases by their last word, by their first word, and by their words joined into one."""
    last: _Phrases = {}
    first: _Phrases = {}
    joined: _Phrases = {}
    for concept, phrase in _phrases():
        last.setdefault(phrase[-1], []).append((concept, phrase))
        first.setdefault(phrase[0], []).append((concept, phrase))
        joined.setdefault("".join(phrase), []).append((concept, phrase))
    return last, first, joined


def _is_phrase(name: tuple[str, ...]) -> bool:
    return name in _known_phrases()


@cache
def _known_phrases() -> frozenset[tuple[str, ...]]:
    return frozenset(phrase for _, phrase in _phrases())


@cache
def _phrases() -> tuple[tuple[Concept, tuple[str, ...]], ...]:
    return tuple((concept, split_name(phrase)) for concept in CONCEPTS for phrase in concept.phrases)


def system_of(column: str) -> str | None:
    """The kind of external reference a column holds: stripe_customer_id -> stripe_customer."""
    found = split_name(column)
    if len(found) < 2 or not any(word in words.SYSTEMS for word in found):
        return None
    if found[-1] in words.POINTER_ENDINGS:
        return "_".join(found[:-1])
    return (
        "_".join(found)
        if found[0] in words.SYSTEMS and found[-1] in ("customer", "user", "contact")
        else None
    )


def names_person(column: str) -> bool:
    """Whether a column called `..._name` names a person: customer_name, contact_name, assignee_name."""
    people = {
        *_people_words(),
        *words.OWNING_ROLES,
        *words.MENTIONING_ROLES,
        *words.PERHAPS_PEOPLE,
        *words.STRANGERS,
        *words.BEFORE_NAMES,
    }
    return any(singular(word) in people or word in people for word in split_and_expand(column)[:-1])
