"""The last day of a retention: one that the map names, or one counted from a column of the row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from enum import StrEnum


class Unit(StrEnum):
    """The unit in which a retention is counted."""

    DAYS = "days"
    WEEKS = "weeks"
    MONTHS = "months"
    YEARS = "years"


EXPECTED = "must be a date such as 2031-12-31, or a column and a time such as 'issued_on + 10 years'"
# A thousand years each: every end is then a day that both databases and Python can write.
_MOST = {Unit.DAYS: 365_000, Unit.WEEKS: 52_000, Unit.MONTHS: 12_000, Unit.YEARS: 1_000}
# Longer than any name of a column with the words around it; matching takes the square of the length.
_LONGEST = 300
_COUNTED = re.compile(r"(end of year of )?(\S.*?) *\+ *([0-9]{1,6}) +(day|week|month|year)s?")


@dataclass(frozen=True, slots=True)
class Until:
    """Either `day`, or so many units after the day in `column`, or after the end of that day's year."""

    day: date | None = None
    column: str = ""
    count: int = 0
    unit: Unit = Unit.DAYS
    end_of_year: bool = False

    def __str__(self) -> str:
        if self.day is not None:
            return self.day.isoformat()
        unit = self.unit.removesuffix("s") if self.count == 1 else self.unit
        return f"{'end of year of ' if self.end_of_year else ''}{self.column} + {self.count} {unit}"


def parse_until(text: str) -> Until | None:
    """The end that the map's text means; None if it can't be understood."""
    if len(text) > _LONGEST:
        return None
    counted = _COUNTED.fullmatch(text.strip())
    if counted is None:
        try:
            return Until(date.fromisoformat(text))
        except ValueError:
            return None
    of_year, column, count, unit = counted.groups()
    until = Until(None, column, int(count), Unit(f"{unit}s"), bool(of_year))
    return until if 0 < until.count <= _MOST[until.unit] else None
