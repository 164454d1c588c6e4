"""R1 and R2: bounds with names, waits that grow as told and never above the cap."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from effaced.core.errors import Refused
from effaced.retries.policy import RETRYABLE, BackoffPolicy, BackoffStrategy, RetryPolicy, check_changes

POLICIES = st.builds(
    lambda strategy, base, more, multiplier, jitter: RetryPolicy(
        backoff_strategy=strategy,
        base_delay=base,
        max_backoff_delay=min(base * more, 86_400.0),
        multiplier=multiplier,
        jitter=jitter,
    ),
    st.sampled_from(BackoffStrategy),
    st.floats(0.05, 86_400),
    st.floats(1, 10_000),
    st.floats(1.001, 10),
    st.booleans(),
)
TRIES = st.integers(1, 10**9)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_attempts", 0), ("max_attempts", 51), ("max_attempts", True), ("max_attempts", 2.5),
        ("backoff_strategy", "quadratic"),
        ("base_delay", 0), ("base_delay", -1), ("base_delay", "5"), ("base_delay", float("nan")),
        ("multiplier", 1), ("multiplier", 10.1), ("multiplier", float("inf")),
        ("max_backoff_delay", 0), ("max_backoff_delay", 86_401),
        ("jitter", "yes"), ("jitter", 1),
        ("retry_status_codes", [404]), ("retry_status_codes", [600]), ("retry_status_codes", ["503"]),
        ("retry_status_codes", [[503]]), ("retry_status_codes", "5xx"), ("retry_status_codes", [True]),
        ("timeout", 0), ("timeout", None), ("timeout", 91 * 86_400),
        ("retry_non_idempotent", "no"),
        ("retries", 3),
    ],
)  # fmt: skip
def test_what_is_out_of_bounds_is_refused_with_the_fields_name(field: str, value: Any) -> None:
    """R1"""
    with pytest.raises(ValidationError) as refused:
        RetryPolicy(**{field: value})
    assert [each["loc"][0] for each in refused.value.errors()] == [field]
    with pytest.raises(Refused) as told:
        check_changes({field: value}, under="retry")
    assert [each.where for each in told.value.problems] == [f"retry.{field}"]


def test_a_cap_below_the_base_is_refused_with_its_name() -> None:
    """R1"""
    with pytest.raises(ValidationError) as refused:
        RetryPolicy(base_delay=60, max_backoff_delay=30)
    assert [each["loc"][0] for each in refused.value.errors()] == ["max_backoff_delay"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("max_backoff_delay", 86_400), ("retry_status_codes", [408, 429]), ("base_delay", 86_400)],
)
def test_a_day_between_tries_and_408_and_429_are_allowed(field: str, value: Any) -> None:
    """R1"""
    assert check_changes({field: value}) == {field: value}


def test_by_default_408_429_and_every_5xx_are_tried_again() -> None:
    """R1"""
    assert RetryPolicy().retry_status_codes == RETRYABLE == (408, 429, *range(500, 600))


def test_is_frozen() -> None:
    """R1"""
    with pytest.raises(ValidationError):
        RetryPolicy().max_attempts = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("exponential", [10, 30, 90, 100]), ("linear", [10, 20, 30, 40]), ("fixed", [10, 10, 10, 10])],
)
def test_waits_grow_as_the_strategy_says_from_the_base_up_to_the_cap(
    strategy: str, expected: list[float]
) -> None:
    """R1"""
    policy = RetryPolicy(
        backoff_strategy=BackoffStrategy(strategy), base_delay=10, multiplier=3, max_backoff_delay=100
    )
    assert [policy.calculate_delay(n) for n in (1, 2, 3, 4)] == expected


@given(POLICIES)
def test_the_wait_after_the_first_try_is_the_base(policy: RetryPolicy) -> None:
    """R1"""
    assert policy.changed({"jitter": False}).calculate_delay(1) == policy.base_delay


@pytest.mark.parametrize("attempt", [0, -1])
@given(policy=POLICIES)
def test_tries_count_from_one(attempt: int, policy: RetryPolicy) -> None:
    """R1"""
    with pytest.raises(ValueError, match="from one"):
        policy.calculate_delay(attempt)


@given(POLICIES, st.lists(TRIES, min_size=2, max_size=6))
def test_without_jitter_a_later_try_never_waits_shorter(policy: RetryPolicy, tries: list[int]) -> None:
    steady = policy.changed({"jitter": False})
    waits = [steady.calculate_delay(n) for n in sorted(tries)]
    assert all(earlier <= later for earlier, later in itertools.pairwise(waits))


@given(POLICIES, TRIES, st.floats(0, 1))
def test_no_wait_exceeds_the_cap_with_jitter_or_without(
    policy: RetryPolicy, attempt: int, chance: float
) -> None:
    """R2"""
    assert 0 < policy.calculate_delay(attempt, chance=lambda: chance) <= policy.max_backoff_delay


@given(TRIES, st.floats(0, 1))
def test_jitter_stays_between_half_and_one_and_a_half_of_the_wait(attempt: int, chance: float) -> None:
    """R2"""
    steady = RetryPolicy().calculate_delay(attempt)
    varied = RetryPolicy(jitter=True).calculate_delay(attempt, chance=lambda: chance)
    assert steady / 2 <= varied <= steady * 1.5


def test_jitter_is_off_by_default() -> None:
    """R2"""
    assert RetryPolicy().jitter is False
    assert len({RetryPolicy(jitter=True).calculate_delay(2) for _ in range(20)}) > 1


@given(TRIES)
def test_the_policy_and_the_older_name_wait_alike(attempt: int) -> None:
    older = BackoffPolicy()
    policy = older.policy(max_attempts=8, max_age=timedelta(days=25))
    assert policy == RetryPolicy()
    assert older.delay(attempt) == policy.wait(attempt)


class TestChanged:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"base_delay": 7_200}, (7_200, 7_200)),
            ({"max_backoff_delay": 5}, (5, 5)),
            ({"base_delay": 5}, (5, 3_600)),
            ({"base_delay": 2, "max_backoff_delay": 4}, (2, 4)),
        ],
    )
    def test_the_delay_that_was_not_named_gives_way(
        self, changes: dict[str, float], expected: tuple[float, float]
    ) -> None:
        policy = RetryPolicy().changed(changes)
        assert (policy.base_delay, policy.max_backoff_delay) == expected

    def test_an_unknown_field_is_refused_with_what_was_meant(self) -> None:
        with pytest.raises(Refused) as told:
            check_changes({"max_atempts": 3})
        assert "did you mean 'max_attempts'" in told.value.problems[0].message
