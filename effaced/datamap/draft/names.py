"""What the name of a table or a column says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from effaced.datamap.draft import words
from effaced.datamap.draft.concepts import BY_WORD, CONCEPTS, Concept

_PIECE = re.compile(r"[A-ZÄÖÜ]+(?![a-zäöüß])|[A-ZÄÖÜ]?[a-zäöüßéèçñáíóú]+|\d+|[^\W\d_]+")
_PLAIN = str.maketrans(
    {
        "ä": "ae",
        "ö": "oe",
        "ü": "ue",
        "ß": "ss",
        "é": "e",
        "è": "e",
        "ç": "c",
        "ñ": "n",
        "ó": "o",
        "í": "i",
        "á": "a",
    }
)

# In names of dates they say when, in names of texts where or to whom.
_ALSO_PLACES = {("to",), ("from",), ("von",), ("bis",), ("am",), ("on",), ("start",), ("end",)}


@cache
def pieces(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case and plain letters: customerId, customer_id -> customer, id."""
    return tuple(
        word.lower().translate(_PLAIN) for part in re.split(r"[_\W]+", name) for word in _PIECE.findall(part)
    )


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
    """The words of a table's name that count, each in singular; without its schema, tbl_ and the like."""
    found = [singular(word) for word in pieces(name.rpartition(".")[2])]
    while len(found) > 1 and found[0] in words.TABLE_PREFIXES:
        found.pop(0)
    while len(found) > 1 and found[-1] in words.TABLE_SUFFIXES:
        found.pop()
    return tuple(found)


def head(name: str) -> str:
    """The word that says what a row of the table is: `order` of tbl_customer_orders."""
    return table_words(name)[-1] if table_words(name) else ""


def is_one_of(name: str, known: list[str]) -> bool:
    """Whether a table's name ends in one of these words, or pairs of words."""
    found = table_words(name)
    pair = "_".join([singular(word) for word in pieces(name)][-2:])
    return bool(found) and (
        found[-1] in _singulars(tuple(known)) or pair in known or _compound(found[-1], known)
    )


@cache
def _singulars(known: tuple[str, ...]) -> frozenset[str]:
    return frozenset(known) | {singular(word) for word in known}


def _compound(word: str, known: list[str]) -> bool:
    """German puts words together, and the last of them counts: Sammelrechnung is a Rechnung."""
    return any(word.endswith(each) and len(word) > len(each) + 2 for each in known if len(each) > 5)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A column that looks as if it pointed somewhere: what it says about the place, and about the role."""

    stem: tuple[str, ...]
    ending: str


@cache
def pointer(column: str) -> Pointer | None:
    """`billing_customer_id` -> (billing, customer) id; `created_by` -> (created) by; None if it is none."""
    found = pieces(column)
    if not found:
        return None
    if len(found) == 1:
        for ending in words.POINTER_ENDINGS:
            stem = found[0].removesuffix(ending)
            if stem != found[0] and len(stem) > 3 and (stem in _whom() or singular(stem) in _whom()):
                return Pointer((singular(stem),), ending)
        return Pointer(found, "") if found[0] in _whom() else None
    if found[-1] in ("by", "to"):
        return Pointer(found[:-1], found[-1])
    if found[-1] in words.POINTER_ENDINGS:
        return Pointer(tuple(singular(words.SHORT.get(word, word)) for word in found[:-1]), found[-1])
    return None


@cache
def _whom() -> frozenset[str]:
    return _singulars((*words.PEOPLE, *words.STAFF, "author", "owner", "sender", "receiver", "assignee"))


@cache
def concept_of(column: str, family: str | None) -> Concept | None:
    """What a column of that name and type most likely holds; None if the name says nothing."""
    found = pieces(column)
    core = found
    while len(core) > 1 and core[-1] in words.HARMLESS:
        core = core[:-1]
    best: tuple[int, int] = (0, 0)
    answer: Concept | None = None
    for concept, phrase in _phrases():
        if concept.families is not None and family is not None and family not in concept.families:
            continue
        if family == "text" and concept.word == "moment" and phrase in _ALSO_PLACES:
            continue
        # The last words count most (e-mail status is a status), the first ones in the Romance way.
        begins = concept.tells and core[: len(phrase)] == phrase
        place = 2 if _ends(core, phrase) else int(begins)
        if place and (place, len("".join(phrase))) > best:
            best, answer = (place, len("".join(phrase))), concept
    if answer is None and family == "text" and found and singular(found[-1]) in _whom():
        return BY_WORD["full_name"]
    return answer


def _ends(found: tuple[str, ...], phrase: tuple[str, ...]) -> bool:
    if not found or found[-len(phrase) :] == phrase:
        return bool(found)
    compound = len(phrase) == 1 and phrase[0] in words.COMPOUND_HEADS and found[-1].endswith(phrase[0])
    return compound or found[-1] == "".join(phrase)


@cache
def _phrases() -> tuple[tuple[Concept, tuple[str, ...]], ...]:
    return tuple((concept, pieces(phrase)) for concept in CONCEPTS for phrase in concept.phrases)


def system_of(column: str) -> str | None:
    """The kind of reference a column holds for another system: stripe_customer_id -> stripe_customer."""
    found = pieces(column)
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
    """Whether `..._name` is that of a person: customer_name, contact_name, assignee_name."""
    people = {
        *_whom(),
        *words.OWNING_ROLES,
        *words.MENTIONING_ROLES,
        *words.PERHAPS_PEOPLE,
        "billing",
        "shipping",
    }
    return any(singular(word) in people or word in people for word in pieces(column)[:-1])
