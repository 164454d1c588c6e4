"""Figures of attempts: histograms, sums that add up, and what survives the hourly table."""

from __future__ import annotations

from collections import Counter

import pytest

from effaced.retries.figures import LATENCY_BOUNDS, Figures, Histogram, from_columns, merged


def some(attempts: int, latency_ms: int, last_id: int) -> Figures:
    figures = Figures(attempts=attempts, entries=1, requests=1, retries=attempts - 1, last_id=last_id)
    figures.outcomes["success"] += 1
    figures.success_by_attempt[attempts] += 1
    figures.failure_by_reason["http_503"] += attempts - 1
    figures.latency.observe(latency_ms)
    return figures


class TestHistogram:
    def test_is_empty_at_first(self) -> None:
        empty = Histogram((10, 20))
        assert (empty.count, empty.average, empty.quantile(0.95)) == (0, None, None)

    @pytest.mark.parametrize(("value", "counts"), [(10, [1, 0, 0]), (11, [0, 1, 0]), (21, [0, 0, 1])])
    def test_counts_a_value_up_to_its_bound(self, value: int, counts: list[int]) -> None:
        histogram = Histogram((10, 20))
        histogram.observe(value)
        assert (histogram.counts, histogram.total) == (counts, value)

    def test_estimates_a_quantile_within_its_bucket(self) -> None:
        histogram = Histogram((10, 20))
        histogram.add(1, 4, 60)
        assert histogram.quantile(0.5) == 15
        assert histogram.average == 15

    def test_says_the_last_bound_for_values_beyond_it(self) -> None:
        histogram = Histogram((10, 20))
        histogram.observe(5_000)
        assert histogram.quantile(0.95) == 20

    def test_merging_adds_bucket_by_bucket(self) -> None:
        one, other = Histogram((10, 20)), Histogram((10, 20))
        one.observe(5)
        other.observe(15)
        one.merge(other)
        assert (one.counts, one.total) == ([1, 1, 0], 20)


class TestFigures:
    def test_add_up(self) -> None:
        total = merged([some(1, 40, 7), some(3, 80, 5)])
        assert (total.attempts, total.entries, total.requests, total.retries) == (4, 2, 2, 2)
        assert total.outcomes == Counter(success=2)
        assert total.success_by_attempt == Counter({1: 1, 3: 1})
        assert total.failure_by_reason["http_503"] == 2
        assert (total.latency.count, total.latency.total) == (2, 120)

    def test_keep_the_highest_id_rather_than_a_sum(self) -> None:
        assert merged([some(1, 40, 7), some(1, 40, 5)]).last_id == 7

    def test_of_nothing_are_zero(self) -> None:
        assert merged([]) == Figures()

    def test_survive_their_row_in_the_hourly_table(self) -> None:
        figures = some(3, 80, 5)
        assert from_columns(figures.columns()) == figures

    def test_are_shown_with_average_and_percentile(self) -> None:
        shown = some(2, LATENCY_BOUNDS[0], 1).plain()
        assert (shown["attempts"], shown["retries"], shown["avg_latency_ms"]) == (2, 1, 5.0)
        assert shown["success_by_attempt"] == {"2": 1}
        assert Figures().plain()["avg_latency_ms"] is None
