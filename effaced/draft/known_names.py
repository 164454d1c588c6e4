"""Names of people in the sample, to see them where no column tells of them. None is written down."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from effaced.datamap.schema.tables import LiveTable
from effaced.datamap.vocabulary.names import concept_in
from effaced.draft.samples import Samples
from effaced.draft.sketch import Sketch

_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")
_LONGEST = 4


class KnownNames:
    """The whole names, first and last, of the people whose rows were sampled."""

    def __init__(self, sketch: Sketch, samples: Samples) -> None:
        self._samples = samples
        self._whose: dict[tuple[str, ...], str] = {}
        for person in sketch.people:
            table = sketch.schema.tables[person.table]
            for row in samples.rows(table.name):
                for name in _names(table, row):
                    self._whose.setdefault(name, table.name)

    def held_by(self, table: LiveTable) -> dict[str, str]:
        """Columns in whose sampled texts such a name stands, and of which table's people."""
        found = {}
        for column in table.columns.values():
            if column.family in ("text", "json"):
                for value in self._samples.values(table.name, column.name):
                    if whose := self._whose_name(value):
                        found[column.name] = whose
                        break
        return found

    def _whose_name(self, value: Any) -> str | None:
        spoken = _spoken(value)
        for start in range(len(spoken)):
            for length in range(2, _LONGEST + 1):
                if whose := self._whose.get(spoken[start : start + length]):
                    return whose
        return None


def _names(table: LiveTable, row: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    parts: dict[str, tuple[str, ...]] = {}
    for column in table.columns.values():
        concept = concept_in(table, column)
        if concept and concept.word in ("first_name", "last_name", "full_name", "name"):
            parts.setdefault(concept.word, _spoken(row.get(column.name)))
    first, last = parts.get("first_name", ()), parts.get("last_name", ())
    whole = [first + last, last + first] if first and last else []
    whole += [parts[word] for word in ("full_name", "name") if word in parts]
    return (name for name in whole if 2 <= len(name) <= _LONGEST)


def _spoken(value: Any) -> tuple[str, ...]:
    return tuple(word.casefold() for word in _WORD.findall(value)) if isinstance(value, str) else ()
