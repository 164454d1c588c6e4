"""Doubling delays under a ceiling."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effaced.retries.policy import BackoffPolicy

SECOND = timedelta(seconds=1)


def test_starts_at_the_base_and_doubles() -> None:
    policy = BackoffPolicy()
    assert [policy.delay(n) / SECOND for n in (1, 2, 3, 4)] == [30, 60, 120, 240]


@given(st.integers(1, 10**9))
def test_never_exceeds_the_ceiling(attempts: int) -> None:
    assert BackoffPolicy().delay(attempts) <= timedelta(hours=1)


@pytest.mark.parametrize("attempts", [0, -1])
def test_counts_from_one(attempts: int) -> None:
    with pytest.raises(ValueError):
        BackoffPolicy().delay(attempts)


@pytest.mark.parametrize(("base", "most"), [(0, 60), (60, 30), (60, 86_401)])
def test_refuses_delays_that_make_no_sense(base: int, most: int) -> None:
    with pytest.raises(ValueError):
        BackoffPolicy(base_delay=base * SECOND, max_delay=most * SECOND)
