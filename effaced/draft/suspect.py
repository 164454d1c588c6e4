"""What makes a table or a column suspect that leads to nobody and has no telling name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from effaced.datamap.schema.tables import LiveColumn, LiveTable
from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.names import concept_in, is_one_of, pointer, table_words
from effaced.draft.samples import Samples, shape
from effaced.draft.sketch import Sketch


def why_unclear(samples: Samples, table: LiveTable) -> str:
    """Why a table that shows nobody is still not simply nobody's; empty if it is."""
    if any(word in words.REFUSED for word in table_words(table.name)):
        return (
            "it seems to list people who are refused or want no mail; a hash of an address is personal"
            " too; say whose rows they are, or that they are nobody's"
        )
    if not samples.looking or samples.rows(table.name):
        return ""
    texts = [column for column in table.columns.values() if column.family in ("text", "json")]
    silent = bool(texts) and all(concept_in(table, each) is None for each in texts)
    pointing = any((said := pointer(name)) and said.ending for name in table.columns)
    if silent and not pointing:
        return "it has no row, and the names of its columns say nothing; say what it is for"
    return ""


def names_somebody(sketch: Sketch, table: LiveTable, column: LiveColumn) -> bool:
    """A landlord's name; or borrower_no, where no table was found that has such numbers."""
    concept = concept_in(table, column)
    if concept and concept.word in ("name", "full_name") and is_one_of(table.name, words.STRANGERS):
        return True
    said = pointer(column.name)
    known = any(edge.table == table.name and column.name in edge.columns for edge in sketch.pointers)
    people = [*words.PEOPLE, *words.STAFF]
    return said is not None and bool(said.stem) and not known and is_one_of(said.stem[-1], people)


def has_shape(table: LiveTable, column: LiveColumn, values: Sequence[Any]) -> bool:
    """A form that only personal data has; a company's number or a date may look like one to be called."""
    concept = concept_in(table, column)
    other = concept is not None and concept.word in ("vat", "moment", "amount")
    seen = shape(values)
    return seen is not None and not (seen == "phone" and other)
