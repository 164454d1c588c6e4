"""Which part the one pointed at has in a row, by the name of the pointer."""

from __future__ import annotations

from functools import cache

from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.names import (
    is_one_of,
    pointer,
    singular,
    split_and_expand,
    split_name,
    table_words,
)
from effaced.draft.sketch import Edge


def is_staff(name: str) -> bool:
    """Called after those who work here: doctors, and staff_users as well."""
    return is_one_of(name, words.STAFF) or bool(set(table_words(name)[:1]) & set(words.STAFF))


def acts(edge: Edge) -> bool:
    """Whether it names the one who set the row off."""
    return any(word in words.ACTING_ROLES for column in edge.columns for word in split_name(column))


def names_target(edge: Edge) -> bool:
    """Whether the column is called after the table or its key: agent_id to agents, persnr to persnr."""
    target = set(table_words(edge.to))
    return any(
        own.lower() == other.lower() or target & {singular(word) for word in split_and_expand(own)}
        for own, other in edge.on
    )


def by_values_alone(edge: Edge) -> str:
    """What to doubt about a pointer that was found by its values; nothing if its name agrees."""
    return "" if names_target(edge) else "only its values say so"


def does_something(edge: Edge) -> bool:
    """reported_by, filed_by: beside somebody the row is about, the one who did it only did it."""
    return any((said := pointer(column)) is not None and said.ending == "by" for column in edge.columns)


@cache
def role(edge: Edge) -> str:
    """owning, receiving, mentioning, making, acting, choosing, or '' for one that only names its table."""
    for column, other in edge.on:
        said = pointer(column)
        stem = said.stem if said else split_and_expand(column)
        if {"address", "email", "mail"} & {*stem, *split_name(other)}:
            # Mail to somebody is as much theirs as mail from them.
            stem = tuple(word for word in stem if word not in ("to", "from", "cc", "contact"))
        if tuple(singular(word) for word in stem) == table_words(edge.to):
            return ""
        if len(stem) > 1 and stem[0] in words.LOGS:
            return "mentioning"  # history_user_id: who changed it
        for name, known in (
            ("choosing", words.CHOOSING),
            ("receiving", words.RECEIVING_ROLES),
            ("mentioning", words.MENTIONING_ROLES),
            ("making", words.MAKING_ROLES),
            ("owning", words.OWNING_ROLES),
        ):
            if any(word in known for word in stem):
                return name
        if said and said.ending == "by":
            # checked_in_by, dispensed_by: somebody did something with the row.
            return "acting"
    return ""
