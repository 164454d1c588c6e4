"""A rule for a cell whose row stays, such that the column can take it."""

from __future__ import annotations

import json

from effaced.datamap.schema.tables import LiveColumn, LiveTable
from effaced.datamap.vocabulary.concepts import Concept

# What the random texts need at least: erased-, 16 digits, and for addresses @erased.invalid.
_RANDOM, _RANDOM_EMAIL = 23, 38
_NEUTRAL = ("unknown", "none", "other", "undisclosed", "n/a", "unbekannt", "divers", "x", "u")


def surrogate_for(table: LiveTable, column: LiveColumn, concept: Concept | None) -> str | None:
    """The rule as YAML; None if nothing that surely fits is known."""
    unique = [each for each in table.uniques if column.name in each.columns]
    if column.nullable and all(each.nulls_repeat for each in unique):
        return "{anonymise: null}"
    match column.family:
        case "text":
            return _text(column, concept, bool(unique))
        case "uuid":
            return "{anonymise: random_uuid}"
        case "number":
            return "{anonymise: random_number}" if unique else "{anonymise: fixed, value: 0}"
        case _ if unique:
            return None
        case "date" | "date and time":
            return "{anonymise: truncated_date}"
        case "true or false":
            return "{anonymise: fixed, value: false}"
        case "json" | "binary" | "array":
            return "{anonymise: empty}"
        case _:
            words = {each.lower(): each for each in column.enum_values}
            word = next((words[each] for each in _NEUTRAL if each in words), None)
            return f"{{anonymise: fixed, value: {json.dumps(word)}}}" if word else None


def _text(column: LiveColumn, concept: Concept | None, unique: bool) -> str | None:
    room = column.length or 1_000
    word = concept.word if concept else ""
    if word == "email" and room >= _RANDOM_EMAIL:
        return "{anonymise: random_email}"
    if unique or (word == "secret" and room >= _RANDOM):
        return "{anonymise: random_unique}" if room >= _RANDOM else None
    return "{anonymise: fixed_text}" if room >= len("erased") else '{anonymise: fixed_text, text: "-"}'
