"""One month, as Regulation 1182/71 counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effaced.requests.deadline import due_date

BERLIN = ZoneInfo("Europe/Berlin")
MOMENTS = st.timedeltas(timedelta(0), timedelta(days=109_000)).map(
    lambda since: datetime(1901, 1, 1, tzinfo=UTC) + since
)


@pytest.mark.parametrize(
    ("received", "due"),
    [
        ("2026-03-02", "2026-04-02"),
        ("2026-01-31", "2026-03-02"),  # 28 February is a Saturday
        ("2027-01-31", "2027-03-01"),  # 28 February is a Sunday
        ("2028-01-31", "2028-02-29"),
        ("2026-12-15", "2027-01-15"),
        ("2026-04-02", "2026-05-04"),  # 2 May is a Saturday
    ],
)
def test_ends_with_the_same_day_of_the_next_month_or_the_working_day_after(received: str, due: str) -> None:
    at = datetime.fromisoformat(f"{received}T10:00:00").replace(tzinfo=BERLIN)
    assert due_date(at, BERLIN) == datetime.fromisoformat(f"{due}T23:59:59").replace(tzinfo=BERLIN)


def test_counts_days_where_the_company_is() -> None:
    """Half past eleven in the evening UTC is already the next day in Berlin."""
    at = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    assert due_date(at, BERLIN).astimezone(BERLIN).day == 2


@given(MOMENTS)
def test_is_never_shorter_than_a_month_of_28_days_nor_on_a_weekend(received: datetime) -> None:
    due = due_date(received, BERLIN)
    assert 27 <= (due - received).days <= 34
    assert due.astimezone(BERLIN).weekday() < 5
