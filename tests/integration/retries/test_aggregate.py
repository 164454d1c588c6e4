"""R4: hours of tries, counted again and again until nothing of them can change."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from attempts_cast import HOUR, Try, ended_entry, hours, recounted, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from saga_cast import NOON, House
from sqlalchemy import delete, select

from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.core.errors import Refused
from effaced.model import AttemptOutcome, new_id
from effaced.retries.aggregate import EARLIER, KEPT
from effaced.retries.figures import LATENCY_BOUNDS, Figures, Histogram, from_columns, merged
from effaced.retries.metrics import RetryMetrics, read_by_resolver
from effaced.retries.overrides import ALL
from effaced.retries.tables import Attempt, AttemptHour
from effaced.retries.totals import read_totals
from effaced.triage.housekeeping import delete_old_attempts

EXAMPLES = max(5, int(os.environ.get("EFFACED_EXAMPLES", "150")) // 15)
MINUTE = timedelta(minutes=1)
IDS = [new_id() for _ in range(4)]
TRIES = st.lists(
    st.builds(
        Try,
        at=st.integers(0, 10 * 3_600).map(lambda seconds: NOON - timedelta(seconds=seconds)),
        resolver=st.sampled_from(["crm", "mail", "payment"]),
        outcome=st.sampled_from(AttemptOutcome),
        number=st.integers(1, 5),
        entry_id=st.sampled_from(IDS),
        request_id=st.sampled_from(IDS),
        latency_ms=st.one_of(st.integers(0, 90_000), st.sampled_from(LATENCY_BOUNDS)),
        status_code=st.sampled_from([None, 200, 429, 503]),
        error=st.sampled_from([None, "Unreachable", "CallTimeout"]),
        first=st.booleans(),
        delay_before_ms=st.one_of(st.none(), st.integers(0, 10**11)),
    ),
    max_size=25,
)


def count(database: Database) -> int:
    return RetryMetrics(database).aggregate_hourly()


def row(house: House, hour: datetime, resolver: str = "crm") -> Figures:
    return from_columns(hours(house.db)[hour, resolver])


def rows_of(database: Database) -> list[dict[str, Any]]:
    with database.read() as session:
        return [dict(each._mapping) for each in session.execute(select(Attempt.__table__))]


class TestHour:
    def test_has_every_figure(self, house: House, noon: ManualClock) -> None:
        entry, request = new_id(), new_id()
        write(
            house.db,
            [
                Try(NOON, entry_id=entry, request_id=request, outcome=AttemptOutcome.FAILURE,
                    status_code=503, latency_ms=100, delay_before_ms=40),
                Try(NOON + MINUTE, entry_id=entry, request_id=request, number=2, first=False, latency_ms=20),
                Try(NOON + MINUTE, request_id=request, latency_ms=30, delay_before_ms=60),
                Try(NOON + MINUTE, outcome=AttemptOutcome.TIMEOUT, error="CallTimeout", latency_ms=30_001),
                Try(NOON + MINUTE, outcome=AttemptOutcome.CIRCUIT_OPEN, latency_ms=0, first=False),
                Try(NOON + HOUR, outcome=AttemptOutcome.SCHEDULED),
                Try(NOON, resolver="mail", request_id=request),
            ],
        )  # fmt: skip
        noon.advance(HOUR + MINUTE)
        assert count(house.db) == 2
        found = row(house, NOON)
        assert (found.attempts, found.entries, found.requests, found.retries) == (5, 4, 3, 2)
        assert found.outcomes == {"success": 2, "failure": 1, "timeout": 1, "circuit_open": 1}
        assert found.success_by_attempt == {1: 1, 2: 1}
        assert found.failure_by_reason == {"http_503": 1, "CallTimeout": 1, "circuit_open": 1}
        assert found.latency.average == (100 + 20 + 30 + 30_001) / 4
        assert found.wait.average == (40 + 60 + 15) / 3
        assert row(house, NOON + HOUR).outcomes == {"scheduled": 1}
        everything = row(house, NOON, ALL)
        assert (everything.attempts, everything.entries, everything.requests) == (6, 5, 3)

    def test_a_try_whose_attempt_was_given_back_is_followed_by_a_retry(
        self, house: House, noon: ManualClock
    ) -> None:
        """A failed trial costs no attempt, so the next try has the same number."""
        failed = Try(NOON, outcome=AttemptOutcome.FAILURE, trial=True)
        write(house.db, [failed, Try(NOON + MINUTE, number=1, first=False)])
        noon.advance(HOUR)
        count(house.db)
        found = row(house, NOON)
        assert (found.attempts, found.retries) == (2, 1)

    def test_counted_twice_is_the_same(self, house: House, noon: ManualClock) -> None:
        write(house.db, [Try(NOON), Try(NOON - HOUR), Try(NOON, outcome=AttemptOutcome.FAILURE)])
        count(house.db)
        once = hours(house.db)
        count(house.db)
        assert hours(house.db) == once

    def test_the_running_one_grows(self, house: House, noon: ManualClock) -> None:
        write(house.db, [Try(NOON)])
        count(house.db)
        noon.advance(5 * MINUTE)
        write(house.db, [Try(noon())])
        count(house.db)
        assert row(house, NOON).attempts == 2

    @pytest.mark.parametrize("late", [HOUR, 22 * HOUR])
    def test_a_result_that_comes_late_is_found(
        self, house: House, noon: ManualClock, late: timedelta
    ) -> None:
        write(house.db, [Try(NOON)])
        for _ in range(24):
            if noon() - NOON <= late < noon() - NOON + HOUR:
                write(house.db, [Try(NOON)])
            count(house.db)
            noon.advance(HOUR)
        count(house.db)
        assert row(house, NOON).attempts == 2

    def test_a_day_s_standstill_is_made_good(self, house: House, noon: ManualClock) -> None:
        write(house.db, [Try(NOON)])
        count(house.db)
        write(house.db, [Try(NOON + n * HOUR) for n in range(1, 30)])
        noon.advance(30 * HOUR)
        count(house.db)
        assert [row(house, NOON + n * HOUR).attempts for n in range(30)] == [1] * 30

    def test_is_final_once_its_tries_may_go(self, house: House, noon: ManualClock) -> None:
        """Its figures stay, although counting again would find nothing."""
        write(house.db, [Try(NOON, entry_id=ended_entry(house.db, NOON))])
        noon.advance(24 * HOUR)
        count(house.db)
        with house.db.begin() as session:
            assert delete_old_attempts(session) == 1
        write(house.db, [Try(noon())])
        for _ in range(3):
            noon.advance(HOUR)
            count(house.db)
        assert row(house, NOON).attempts == 1

    def test_old_ones_are_not_counted_again(self, house: House, noon: ManualClock) -> None:
        """Ten hours of tries: the running one, and what ended less than two hours ago, may change."""
        write(house.db, [Try(NOON - n * HOUR) for n in range(10)])
        assert count(house.db) == 10
        assert count(house.db) == 3

    def test_goes_after_eight_days_and_is_not_lost_from_the_total(
        self, house: House, noon: ManualClock
    ) -> None:
        write(house.db, [Try(NOON), Try(NOON, resolver="mail")])
        count(house.db)
        noon.advance(KEPT + MINUTE)
        count(house.db)
        assert (NOON, "crm") in hours(house.db)
        for _ in range(3):
            noon.advance(HOUR)
            count(house.db)
        assert (NOON, "crm") not in hours(house.db)
        assert row(house, EARLIER).attempts == 1
        with house.db.read() as session:
            assert {name: each.attempts for name, each in read_totals(session).items()} == {
                "crm": 1,
                "mail": 1,
            }

    def test_of_nobody_is_no_hour(self, house: House) -> None:
        assert count(house.db) == 0
        assert hours(house.db) == {}


def test_many_at_once_come_to_the_same(house: House, noon: ManualClock) -> None:
    """R4: tries are written and counted from many sides; nobody fails, and in the end all is counted."""
    errors: list[BaseException] = []

    def at_once(work: Callable[[], object]) -> None:
        try:
            for _ in range(6):
                work()
        except BaseException as error:
            errors.append(error)

    def add() -> None:
        write(house.db, [Try(NOON - HOUR), Try(NOON)])

    threads = [
        threading.Thread(target=at_once, args=(work,)) for work in [add, *[lambda: count(house.db)] * 4]
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert errors == []
    count(house.db)
    assert [row(house, NOON - n * HOUR).attempts for n in (0, 1)] == [6, 6]


@pytest.mark.property
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=TRIES, more=TRIES)
def test_aggregates_are_what_a_recount_of_the_rows_gives(
    db: Database, first: list[Try], more: list[Try]
) -> None:
    """R4: whatever was tried and in whatever order it was written and counted."""
    with clock.pretend(NOON + MINUTE):
        with db.begin() as session:
            session.execute(delete(Attempt))
            session.execute(delete(AttemptHour))
        write(db, first)
        count(db)
        with clock.pretend(NOON + 24 * HOUR):
            write(db, more)
            count(db)
            once = hours(db)
            count(db)
            assert hours(db) == once
        rows = rows_of(db)
        for (hour, resolver), kept in once.items():
            mine = [
                each
                for each in rows
                if hour <= each["at"] < hour + HOUR and resolver in (ALL, each["resolver"])
            ]
            expected = recounted(mine)
            if resolver == ALL:  # an entry has one resolver, in life; here it may have several
                expected.entries = kept["entries"]
            expected.last_id = max((each["id"] for each in mine), default=0)
            assert kept == {"hour": hour, "resolver": resolver, **expected.columns()}
        counted = sum(kept["attempts"] for (_, resolver), kept in once.items() if resolver == ALL)
        assert counted == len(rows)


class TestHistogram:
    @given(st.lists(st.integers(0, 100_000)), st.lists(st.integers(0, 100_000)))
    def test_buckets_of_two_hours_add_up(self, one: list[int], other: list[int]) -> None:
        def made(values: list[int]) -> Histogram:
            histogram = Histogram(LATENCY_BOUNDS)
            for value in values:
                histogram.observe(value)
            return histogram

        added = made(one)
        added.merge(made(other))
        assert added == made(one + other)

    @given(st.lists(st.integers(0, 60_000), min_size=1))
    def test_p95_is_estimated_within_its_bucket(self, values: list[int]) -> None:
        histogram = Histogram(LATENCY_BOUNDS)
        for value in values:
            histogram.observe(value)
        exact = sorted(values)[-(-len(values) * 95 // 100) - 1]
        above = min(bound for bound in LATENCY_BOUNDS if exact <= bound)
        below = max((bound for bound in LATENCY_BOUNDS if bound < exact), default=0)
        estimate = histogram.quantile(0.95)
        assert estimate is not None
        assert below <= estimate <= above

    def test_of_nothing_has_no_average_and_no_p95(self) -> None:
        assert (Histogram(LATENCY_BOUNDS).average, Histogram(LATENCY_BOUNDS).quantile(0.95)) == (None, None)

    def test_beyond_the_last_bound_p95_is_that_bound(self) -> None:
        histogram = Histogram(LATENCY_BOUNDS)
        histogram.observe(10**6)
        assert histogram.quantile(0.95) == LATENCY_BOUNDS[-1]


class TestTimeseries:
    def test_has_a_point_for_every_hour_the_running_one_last(self, house: House, noon: ManualClock) -> None:
        """R5: zeros where nothing was tried; what was not counted yet is counted now."""
        write(house.db, [Try(NOON - 3 * HOUR), Try(NOON), Try(NOON - 30 * HOUR)])
        points = RetryMetrics(house.db).timeseries(5)
        assert [(each.hour, each.figures.attempts) for each in points] == [
            (NOON - 4 * HOUR, 0),
            (NOON - 3 * HOUR, 1),
            (NOON - 2 * HOUR, 0),
            (NOON - HOUR, 0),
            (NOON, 1),
        ]

    def test_says_the_same_before_and_after_counting(self, house: House, noon: ManualClock) -> None:
        write(house.db, [Try(NOON - n * HOUR, outcome=AttemptOutcome.FAILURE) for n in range(4)])
        before = RetryMetrics(house.db).timeseries(4)
        count(house.db)
        assert RetryMetrics(house.db).timeseries(4) == before

    def test_of_one_resolver_is_its_own(self, house: House, noon: ManualClock) -> None:
        write(house.db, [Try(NOON), Try(NOON, resolver="mail"), Try(NOON, resolver="mail")])
        (point,) = RetryMetrics(house.db).timeseries(1, resolver="mail")
        assert point.figures.attempts == 2

    @pytest.mark.parametrize("hours", [0, -1, 169])
    def test_of_more_than_a_week_or_of_nothing_is_refused(self, house: House, hours: int) -> None:
        """R5"""
        with pytest.raises(Refused) as told:
            RetryMetrics(house.db).timeseries(hours)
        assert [each.where for each in told.value.problems] == ["hours"]

    def test_of_a_week_is_168_hours(self, house: House) -> None:
        """R5"""
        assert len(RetryMetrics(house.db).timeseries(168)) == 168


class TestSummary:
    def test_adds_the_hours_and_says_each_resolver_s_share(self, house: House, noon: ManualClock) -> None:
        write(
            house.db,
            [
                Try(NOON, latency_ms=10),
                Try(NOON - HOUR, latency_ms=1_000, number=2, first=False),
                Try(NOON - HOUR, resolver="mail", outcome=AttemptOutcome.FAILURE, status_code=500),
                Try(NOON - 24 * HOUR),
            ],
        )
        found = RetryMetrics(house.db).get_summary()
        assert (found["attempts"], found["retries"], found["retention_hours"]) == (3, 1, 192)
        assert found["success_by_attempt"] == {"1": 1, "2": 1}
        assert found["failure_by_reason"] == {"http_500": 1}
        assert found["by_resolver"]["crm"]["avg_latency_ms"] == 505.0
        assert found["by_resolver"]["crm"]["p95_latency_ms_estimate"] == 950.0
        assert set(found["by_resolver"]) == {"crm", "mail"}

    def test_of_one_resolver_is_its_own(self, house: House, noon: ManualClock) -> None:
        write(house.db, [Try(NOON), Try(NOON, resolver="mail")])
        found = RetryMetrics(house.db).get_summary(resolver="mail")
        assert (found["attempts"], set(found["by_resolver"])) == (1, {"mail"})


class TestTotals:
    def totals(self, house: House) -> dict[str, int]:
        with house.db.read() as session:
            return {name: each.attempts for name, each in read_totals(session).items()}

    def test_hold_what_came_since_the_last_count(self, house: House, noon: ManualClock) -> None:
        write(house.db, [Try(NOON)])
        count(house.db)
        write(house.db, [Try(NOON), Try(NOON, resolver="mail")])
        assert self.totals(house) == {"crm": 2, "mail": 1}

    def test_never_shrink_whatever_is_written_counted_and_forgotten(
        self, house: House, noon: ManualClock
    ) -> None:
        """A day and a half, with results that come late, in an order of chance."""
        dice, before, written = random.Random(5), 0, 0
        entry = ended_entry(house.db, NOON)
        for _ in range(70):
            late = timedelta(minutes=dice.choice([0, 0, 0, 1, 30, 90]))
            write(house.db, [Try(noon() - late, entry_id=entry)])
            written += 1
            if dice.random() < 0.4:
                count(house.db)
                with house.db.begin() as session:
                    delete_old_attempts(session)
            noon.advance(timedelta(minutes=dice.choice([1, 7, 35])))
            told = self.totals(house).get("crm", 0)
            assert told >= before
            before = told
        noon.advance(24 * HOUR)
        count(house.db)
        assert self.totals(house) == {"crm": written}


def test_the_resolvers_of_a_window_add_up_to_all(house: House, noon: ManualClock) -> None:
    write(house.db, [Try(NOON), Try(NOON, resolver="mail"), Try(NOON - HOUR, resolver="mail")])
    with house.db.read() as session:
        found = read_by_resolver(session, 24)
    total = found.pop(ALL)
    assert merged(list(found.values())).attempts == total.attempts == 3
