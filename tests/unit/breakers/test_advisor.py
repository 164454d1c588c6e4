"""P7: what the figures of a while suggest. A function of the figures, so they are all it is given."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from breaker_cast import API, CRM, NOON
from hypothesis import given
from hypothesis import strategies as st

from effaced.breakers.advice.rules import FAIL_MAX, RATE, RESET_S, SUCCESSES, HostMetrics, Suggestion, advise
from effaced.breakers.policy import BreakerPolicy
from effaced.model import PolicyKind

BOUNDS = {
    "fail_max": FAIL_MAX,
    "reset_timeout_s": RESET_S,
    "success_threshold": SUCCESSES,
    "trial_calls": (1, 1),
    "rate_per_second": RATE,
}


def seen(breaker: str = CRM, policy: dict[str, Any] | None = None, **figures: Any) -> HostMetrics:
    made = BreakerPolicy(**policy or {})
    return HostMetrics(breaker, NOON - timedelta(seconds=600), NOON, made, **figures)


def advised(metrics: HostMetrics) -> dict[str, Suggestion]:
    found = advise({metrics.breaker: metrics})
    return {each.field: each for advice in found.values() for each in advice.suggestions}


def values(metrics: HostMetrics) -> dict[str, float]:
    return {name: each.now for name, each in advised(metrics).items()}


class TestTooManyRequests:
    def test_from_5_percent_of_429_on_the_rate_goes_down_by_a_fifth(self) -> None:
        assert values(seen(calls=100, too_many=5, rate_per_second=10)) == {"rate_per_second": 8}

    def test_below_5_percent_nothing_changes(self) -> None:
        assert values(seen(calls=100, too_many=4, rate_per_second=10)) == {}

    def test_of_few_calls_nothing_is_concluded(self) -> None:
        assert values(seen(calls=19, too_many=19, rate_per_second=10)) == {}

    def test_the_breaker_is_left_whatever_else_was_seen(self) -> None:
        metrics = seen(
            calls=100, too_many=50, rate_per_second=10, median_retry_after_s=120, retry_afters=50,
            opens=9, trials_ended=9, trials_failed=9,
        )  # fmt: skip
        assert values(metrics) == {"rate_per_second": 8}

    def test_without_a_limit_the_pace_is_what_it_is_a_fifth_below(self) -> None:
        found = advised(seen(calls=100, too_many=5, pace=20))["rate_per_second"]
        assert (found.was, found.now) == (None, 16)

    def test_a_host_has_no_rate_and_its_breaker_is_left_too(self) -> None:
        assert values(seen(API, calls=100, too_many=50, opens=9)) == {}

    @pytest.mark.parametrize("rate", [0.1, 0.05])
    def test_a_limit_that_is_as_low_as_it_gets_is_left(self, rate: float) -> None:
        assert values(seen(calls=100, too_many=50, rate_per_second=rate)) == {}


class TestRetryAfter:
    @pytest.mark.parametrize(("median", "reset"), [(120, 120), (3, 15), (4_000, 600), (90.5, 90)])
    def test_its_median_sets_the_reset_timeout_between_15_and_600(self, median: float, reset: float) -> None:
        assert values(seen(median_retry_after_s=median, retry_afters=3)) == {"reset_timeout_s": reset}

    def test_never_goes_above_the_longest_wait_of_the_policy(self) -> None:
        metrics = seen(policy={"max_reset_timeout_s": 100}, median_retry_after_s=500, retry_afters=1)
        assert values(metrics) == {"reset_timeout_s": 100}

    def test_what_is_so_already_is_not_suggested(self) -> None:
        assert values(seen(policy={"reset_timeout_s": 120}, median_retry_after_s=120, retry_afters=1)) == {}


class TestOpens:
    def test_three_in_the_window_lower_fail_max(self) -> None:
        assert values(seen(opens=3)) == {"fail_max": 4}

    def test_two_do_not(self) -> None:
        assert values(seen(opens=2)) == {}

    @pytest.mark.parametrize(("was", "now"), [(2, {}), (1, {}), (40, {"fail_max": 10})])
    def test_fail_max_ends_between_2_and_10(self, was: int, now: dict[str, float]) -> None:
        assert values(seen(policy={"fail_max": was}, opens=9)) == now


class TestTrials:
    def test_half_of_them_failing_asks_two_successes_and_one_trial(self) -> None:
        metrics = seen(policy={"trial_calls": 4}, trials_ended=4, trials_failed=2)
        assert values(metrics) == {"success_threshold": 2, "trial_calls": 1}

    def test_fewer_failing_do_not(self) -> None:
        assert values(seen(trials_ended=5, trials_failed=2)) == {}

    def test_a_single_one_says_nothing(self) -> None:
        assert values(seen(trials_ended=1, trials_failed=1)) == {}

    def test_three_successes_are_not_made_two(self) -> None:
        assert values(seen(policy={"success_threshold": 3}, trials_ended=4, trials_failed=4)) == {}


def test_every_explanation_has_the_figures_and_what_would_change_from_what_to_what() -> None:
    slower = advised(seen(calls=1_200, too_many=96, rate_per_second=10))["rate_per_second"].why
    assert all(each in slower for each in ("96 of 1,200", "8%", "429", "from 10 to 8", "left as it is"))
    metrics = seen(
        policy={"trial_calls": 3}, median_retry_after_s=120, retry_afters=7, opens=5, trials_ended=4,
        trials_failed=3,
    )  # fmt: skip
    why = {name: each.why for name, each in advised(metrics).items()}
    assert "7 answers" in why["reset_timeout_s"]
    assert "from 60 to 120 s" in why["reset_timeout_s"]
    assert "5 times" in why["fail_max"]
    assert "from 5 to 4" in why["fail_max"]
    assert "3 of 4 trials failed" in why["success_threshold"]
    assert "from 1 to 2" in why["success_threshold"]
    assert "from 3 to 1" in why["trial_calls"]


counts = st.integers(0, 10**9)


@given(
    calls=counts,
    too_many=counts,
    retry_afters=counts,
    median=st.none() | st.floats(0, 1e9),
    opens=counts,
    ended=counts,
    failed=counts,
    rate=st.none() | st.floats(0.001, 100_000),
    pace=st.none() | st.floats(0.001, 1e7),
    fail_max=st.integers(1, 1_000),
    reset=st.floats(0.001, 86_400),
    longest=st.floats(0.001, 86_400),
    successes=st.integers(1, 100),
    trials=st.integers(1, 100),
)
def test_whatever_was_seen_the_clamps_hold_and_a_kind_at_a_time_changes(
    calls: int, too_many: int, retry_afters: int, median: float | None, opens: int, ended: int, failed: int,
    rate: float | None, pace: float | None, fail_max: int, reset: float, longest: float, successes: int,
    trials: int,
) -> None:  # fmt: skip
    policy = BreakerPolicy(
        fail_max=fail_max,
        reset_timeout_s=min(reset, longest),
        max_reset_timeout_s=longest,
        success_threshold=successes,
        trial_calls=trials,
    )
    metrics = HostMetrics(
        CRM, NOON, NOON, policy, calls, min(too_many, calls), retry_afters, median, opens, ended,
        min(failed, ended), rate, pace,
    )  # fmt: skip
    found = advised(metrics)
    for name, each in found.items():
        least, most = BOUNDS[name]
        assert least <= each.now <= most
        assert each.now != each.was
    if "rate_per_second" in found:
        assert set(found) == {"rate_per_second"}
        assert found["rate_per_second"].now < (rate or pace or 0)
    if "fail_max" in found:
        assert found["fail_max"].now < fail_max
    breaker = {name: each.now for name, each in found.items() if each.kind is PolicyKind.BREAKER}
    policy.replace(**breaker)  # what is suggested is a policy that can be
