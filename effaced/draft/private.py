"""What the columns of a table say about its rows: whether they are about somebody, and live by themselves."""

from __future__ import annotations

from effaced.datamap.schema.tables import LiveTable
from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.names import concept_in, is_one_of, names_person
from effaced.draft.find_people import key_of

_AT_HOME = {"street", "city", "postcode"}
_ABOUT_SOMEBODY = {
    "email", "phone", "first_name", "last_name", "full_name", "birth", "bank", "number_of_person", "health",
    "secret", "login", "gender", "ip", "device",
}  # fmt: skip


def tells(table: LiveTable) -> bool:
    """Whether some column of it is about somebody, or is text that people write."""
    return bool(telling(table) or words_of(table) & {"free_text", "photo", "place", "belief"})


def telling(table: LiveTable, *, but: str = "") -> dict[str, str]:
    """The columns that say something about a person, with what it is."""
    found = {}
    for column in table.columns.values():
        concept = concept_in(table, column)
        if concept is None or concept.word == but:
            continue
        if concept.word in _ABOUT_SOMEBODY | {"street"} or (
            concept.word == "name" and names_person(column.name)
        ):
            found[column.name] = concept.label
    return found


def words_of(table: LiveTable) -> set[str]:
    concepts = (concept_in(table, column) for column in table.columns.values())
    return {concept.word for concept in concepts if concept}


def is_private(table: LiveTable) -> bool:
    """Whether each row of it is about somebody: an address, a bank account, a contact."""
    if is_one_of(table.name, words.ORGANISATIONS):
        return False
    if is_one_of(table.name, words.FILES):
        return True
    found = words_of(table)
    return is_home(table) or len(found & _ABOUT_SOMEBODY) >= 2 or bool(found & {"bank", "number_of_person"})


def is_home(table: LiveTable) -> bool:
    """An address; what has a name besides may be a place that nobody lives in."""
    found = words_of(table)
    key = {each.word for name in key_of(table) if (each := concept_in(table, table.columns[name]))}
    if key & {"city", "postcode", "country"}:
        # A list of postcodes is everybody's.
        return False
    named = (
        "name" in found
        and not is_one_of(table.name, words.ADDRESSES)
        and (is_one_of(table.name, words.ORGANISATIONS) or not telling(table, but="street"))
    )
    return len(found & _AT_HOME) >= 2 and not named


def is_kept_by_one(table: LiveTable) -> bool:
    """An address, a file, bank details: what has no life of its own."""
    if is_one_of(table.name, words.FILES):
        return True
    named = {"name", "full_name", "email"} & words_of(table)
    return is_home(table) or ("bank" in words_of(table) and not named)


def lone_keys(table: LiveTable) -> set[str]:
    """The columns of a key that means nothing outside: a single number or UUID."""
    key = key_of(table)
    return set(key) if len(key) == 1 and table.columns[key[0]].family in ("number", "uuid") else set()
