"""The end of a retention as the map writes it."""

from __future__ import annotations

from datetime import date

import pytest

from effaced.datamap.model.last_day import Unit, Until, parse_until


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("2031-12-31", Until(date(2031, 12, 31))),
        ("issued_on + 10 years", Until(None, "issued_on", 10, Unit.YEARS)),
        ("issued_on + 1 year", Until(None, "issued_on", 1, Unit.YEARS)),
        ("end of year of issued_on + 6 months", Until(None, "issued_on", 6, Unit.MONTHS, end_of_year=True)),
        ("a column with blanks + 30 days", Until(None, "a column with blanks", 30, Unit.DAYS)),
    ],
)
def test_an_end_is_read_and_shown_as_it_is_written(text: str, until: Until) -> None:
    assert parse_until(text) == until
    assert str(until) == text


@pytest.mark.parametrize(
    "text",
    ["", "2031-02-30", "ten years", "issued_on + 0 days", "issued_on + 1001 years", "x" * 301 + " + 1 day"],
)
def test_an_end_that_nobody_can_compute_is_refused(text: str) -> None:
    assert parse_until(text) is None
