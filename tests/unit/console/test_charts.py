"""Charts: every number has its place, and the scale is one people can read."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from effaced.console.charts import Flow, flow_chart, strip_chart
from effaced.core.db.days import Day

FIRST = date(2026, 3, 2)
counts = st.lists(st.integers(0, 100_000), min_size=1, max_size=90)


@given(counts)
def test_no_bar_leaves_the_picture(numbers: list[int]) -> None:
    chart = strip_chart([Day(FIRST + timedelta(days=n), count) for n, count in enumerate(numbers)])
    for bar in chart.bars:
        assert bar.x >= 0
        assert bar.x + bar.width <= chart.width + 0.1
        assert bar.y >= 0
        assert abs(bar.y + bar.height - chart.base) < 0.1


@given(counts)
def test_each_number_but_zero_has_a_bar_that_can_be_seen(numbers: list[int]) -> None:
    chart = strip_chart([Day(FIRST + timedelta(days=n), count) for n, count in enumerate(numbers)])
    assert len(chart.bars) == sum(1 for number in numbers if number)
    assert all(bar.height >= 2 for bar in chart.bars)


@given(counts)
def test_the_scale_has_few_lines_and_reaches_the_highest(numbers: list[int]) -> None:
    chart = flow_chart([Flow(FIRST + timedelta(days=n), count, 0) for n, count in enumerate(numbers)])
    assert 2 <= len(chart.across) <= 5
    assert int(chart.across[-1].label.replace(",", "")) >= max(numbers)


def test_received_and_completed_stand_side_by_side() -> None:
    received, completed = flow_chart([Flow(FIRST, 4, 2)]).bars
    assert (received.kind, completed.kind) == ("received", "completed")
    assert received.x + received.width <= completed.x
    assert received.height == 2 * completed.height
    assert received.title == "2 Mar: 4 received"


def test_the_last_day_is_named() -> None:
    chart = flow_chart([Flow(FIRST + timedelta(days=n), 1, 1) for n in range(30)])
    assert chart.below[-1].label == "31 Mar"
