"""Moments as people say them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from effaced.console.times import absolute, deadline, relative

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (timedelta(), "now"),
        (timedelta(seconds=-20), "just now"),
        (timedelta(seconds=-50), "1 minute ago"),
        (timedelta(minutes=5), "in 5 minutes"),
        (timedelta(minutes=-59), "59 minutes ago"),
        (timedelta(minutes=-90), "2 hours ago"),
        (timedelta(hours=23), "in 23 hours"),
        (timedelta(hours=-24), "1 day ago"),
        (timedelta(days=59), "in 59 days"),
        (timedelta(days=-75), "2 months ago"),
        (timedelta(days=900), "in 2 years"),
    ],
)
def test_a_distance_is_told_in_one_fitting_unit(offset: timedelta, words: str) -> None:
    assert relative(NOON + offset, NOON) == words


def test_a_moment_is_shown_in_the_zone() -> None:
    assert absolute(datetime(2026, 3, 2, 23, 30, tzinfo=UTC), BERLIN) == "3 Mar 2026, 00:30"


def end_of(day: int) -> datetime:
    return datetime(2026, 3, day, 23, 59, 59, tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("due", "words", "tone"),
    [
        (end_of(2), "today", "warn"),
        (end_of(3), "tomorrow", "warn"),
        (end_of(9), "in 7 days", "warn"),
        (end_of(10), "in 8 days", "quiet"),
        (end_of(1), "1 day overdue", "bad"),
        (NOON - timedelta(minutes=1), "1 day overdue", "bad"),
        (datetime(2026, 2, 20, 23, 59, 59, tzinfo=BERLIN), "10 days overdue", "bad"),
    ],
)
def test_a_deadline_is_told_in_days(due: datetime, words: str, tone: str) -> None:
    told = deadline(due, NOON, BERLIN)
    assert (told.words, told.tone) == (words, tone)


def test_a_deadline_at_midnight_belongs_to_the_day_before() -> None:
    assert deadline(datetime(2026, 3, 5, tzinfo=BERLIN), NOON, BERLIN).date == "4 Mar 2026"


def test_a_closed_request_was_in_time() -> None:
    assert deadline(end_of(1), NOON, BERLIN, closed=end_of(1) - timedelta(hours=1)).words == "in time"


def test_a_closed_request_was_late_by_days() -> None:
    assert deadline(end_of(1), NOON + timedelta(days=9), BERLIN, closed=end_of(4)).words == "3 days late"
