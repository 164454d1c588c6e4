"""What people are known by in their own tables, to see it where no way leads: numbers in a list of calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from effaced.datamap.schema.tables import LiveColumn, LiveTable
from effaced.datamap.vocabulary.names import concept_in
from effaced.draft.find_emails import differ_in_case, holds_email
from effaced.draft.find_pointers import SURE
from effaced.draft.samples import Samples, Share, form, shape
from effaced.draft.sketch import Sketch

_WORDS = {"email", "phone", "login", "bank", "number_of_person", "vehicle"}
_SPOKEN = {"email": "address", "phone": "number"}
_FAMILIES = ("text", "number")
# Shorter ones, and words, meet by chance; names that people log in with are words, and so must all be there.
_LENGTH, _DIGITS, _SOME = 5, 7, 3


@dataclass(frozen=True, slots=True)
class Place:
    """A column by which people are known, and the forms that its sampled values have."""

    table: LiveTable
    column: LiveColumn
    word: str
    forms: frozenset[str]

    @property
    def is_unique(self) -> bool:
        return self.table.determines([self.column.name])

    def __str__(self) -> str:
        return f"{self.table.name}.{self.column.name}"


@dataclass(frozen=True, slots=True)
class Meeting:
    """A column some of whose values are in such a place."""

    mine: LiveColumn
    place: Place
    share: Share | None

    def offer(self) -> str:
        """What to decide about rows that are known by it."""
        spoken = _SPOKEN.get(self.place.word, self.place.column.name)
        if self.place.is_unique:
            return f"if {self.mine.name} can be the {spoken} of one of {self._who}, link it: {self.link}"
        return f"{self.mine.name} may be the {spoken} of one of {self._who}, but {self.no_link}"

    @property
    def link(self) -> str:
        other = self.place.column
        unlike = self.mine.family != other.family or differ_in_case(self.mine, other)
        as_text = ", as: text" if unlike else ""
        return f"{{to: {self._who}, on: {{{self.mine.name}: {other.name}}}{as_text}}}"

    @property
    def no_link(self) -> str:
        return f"no link can go by {self.place} unless it is unique"

    @property
    def _who(self) -> str:
        return self.place.table.name


class KnownBy:
    """Telephone numbers, addresses and the like of all people, those in what belongs to them included."""

    def __init__(self, sketch: Sketch, samples: Samples) -> None:
        self._samples = samples
        people = [person.table for person in sketch.people]
        names = dict.fromkeys([*people, *sketch.links, *sketch.sources])
        self._places = [place for name in names for place in self._of(sketch.schema.tables[name])]
        self._own = [place for place in self._places if place.table.name in people]

    def meetings(self, table: LiveTable) -> list[Meeting]:
        """The columns of a table that hold such values; the one with most of them first."""
        found = [best for column in table.columns.values() if (best := self._best(table, column))]
        return sorted(found, key=_weight, reverse=True)

    def addresses(self, table: LiveTable) -> list[Meeting]:
        """Its first e-mail address with those of the people themselves, whether they meet or not."""
        mine = next(
            (each for each in table.columns.values() if holds_email(self._samples, table, each)), None
        )
        places = [place for place in self._own if place.word == "email"]
        return sorted(
            (Meeting(mine, place, self._share(table, mine, place)) for place in places if mine),
            key=_weight,
            reverse=True,
        )

    def _of(self, table: LiveTable) -> Iterator[Place]:
        for column in table.columns.values():
            concept = concept_in(table, column)
            values = self._samples.values(table.name, column.name)
            word = concept.word if concept else shape(values)
            word = "email" if holds_email(self._samples, table, column) else word
            if word in _WORDS and column.family in _FAMILIES and not column.generated:
                yield Place(table, column, word, frozenset(_forms(values)))

    def _best(self, table: LiveTable, column: LiveColumn) -> Meeting | None:
        if column.family not in _FAMILIES:
            return None
        values = self._samples.values(table.name, column.name)
        forms = set(_forms(values))
        distinctive = any(_is_distinctive(str(value)) for value in values)
        found = []
        for place in self._places:
            # Only where the forms agree is it worth asking the database.
            if place.table is table or not forms & place.forms or not (distinctive or place.word == "login"):
                continue
            share = self._share(table, column, place)
            surely = share and share.of >= _SOME and share.part >= SURE
            if share and (surely or (distinctive and share.found)):
                found.append(Meeting(column, place, share))
        return max(found, key=_weight, default=None)

    def _share(self, table: LiveTable, column: LiveColumn, place: Place) -> Share | None:
        return self._samples.share(table.name, place.table.name, ((column.name, place.column.name),))


def _weight(meeting: Meeting) -> tuple[int, bool]:
    return (meeting.share.found if meeting.share else 0, meeting.place.is_unique)


def _forms(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        yield shape([value]) or form(str(value))


def _is_distinctive(value: str) -> bool:
    if value.isdigit():
        return len(value) >= _DIGITS
    return len(value) >= _LENGTH and bool(re.search(r"[\d@]", value))
