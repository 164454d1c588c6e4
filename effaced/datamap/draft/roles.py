"""Which part the one pointed at has in a row, by the name of the pointer."""

from __future__ import annotations

from functools import cache

from effaced.datamap.draft import words
from effaced.datamap.draft.names import pieces, pointer, singular, spelled, table_words
from effaced.datamap.draft.sketch import Edge


def acts(edge: Edge) -> bool:
    """Whether it names the one who set the row off."""
    return any(word in words.ACTING_ROLES for column in edge.columns for word in pieces(column))


@cache
def role(edge: Edge) -> str:
    """owning, receiving, mentioning, making, choosing, or '' for a pointer that only names its table."""
    for column in edge.columns:
        said = pointer(column)
        stem = said.stem if said else spelled(column)
        if {"address", "email", "mail"} & set(stem):
            # Mail to somebody is as much theirs as mail from them.
            stem = tuple(word for word in stem if word not in ("to", "from", "cc", "contact"))
        if tuple(singular(word) for word in stem) == table_words(edge.to):
            return ""
        for name, known in (
            ("choosing", words.CHOOSING),
            ("receiving", words.RECEIVING_ROLES),
            ("mentioning", words.MENTIONING_ROLES),
            ("making", words.MAKING_ROLES),
            ("owning", words.OWNING_ROLES),
        ):
            if any(word in known for word in stem):
                return name
    return ""
