"""What an answer says of a system's health (SEMANTICS, P1)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from effaced.breakers.outcomes import OutcomeKind, classify
from effaced.breakers.policy import BreakerPolicy
from effaced.model import FailureKind

POLICY = BreakerPolicy()


def kind(status: int | None = None, failure: FailureKind | None = None, **policy: object) -> OutcomeKind:
    return classify(status, failure, POLICY.replace(**policy) if policy else POLICY).kind


@pytest.mark.parametrize("status", [None, 200, 204, 299])
def test_an_answer_is_a_success(status: int | None) -> None:
    assert kind(status) is OutcomeKind.SUCCESS


@pytest.mark.parametrize("status", [408, 429, 500, 503, 599])
def test_a_system_in_trouble_is_a_failure(status: int) -> None:
    assert kind(status) is OutcomeKind.FAILURE


@pytest.mark.parametrize("status", [100, 301, 400, 401, 403, 404, 410, 451])
def test_everything_else_says_nothing(status: int) -> None:
    assert kind(status) is OutcomeKind.NEUTRAL


@pytest.mark.parametrize("failure", [FailureKind.TRANSIENT, FailureKind.RATE_LIMITED, FailureKind.UNKNOWN])
def test_trouble_on_the_way_and_unknown_exceptions_are_failures(failure: FailureKind) -> None:
    assert kind(None, failure) is OutcomeKind.FAILURE


@pytest.mark.parametrize(
    "failure",
    [FailureKind.PERMANENT, FailureKind.CREDENTIALS, FailureKind.CANCELLED, FailureKind.BREAKER_OPEN],
)
def test_trouble_that_is_not_the_system_s_says_nothing(failure: FailureKind) -> None:
    assert kind(None, failure) is OutcomeKind.NEUTRAL


def test_an_answer_that_can_not_be_understood_says_nothing() -> None:
    assert kind(200, FailureKind.PERMANENT) is OutcomeKind.NEUTRAL


def test_both_lists_are_the_policy_s_and_neutral_wins() -> None:
    lists = {"failure_statuses": [404, "500-509"], "neutral_statuses": [503]}
    found = [kind(status, classify=lists) for status in (404, 500, 503, 510, 429)]
    failure, neutral = OutcomeKind.FAILURE, OutcomeKind.NEUTRAL
    assert found == [failure, failure, neutral, neutral, neutral]


def test_retry_after_goes_with_it() -> None:
    outcome = classify(429, FailureKind.RATE_LIMITED, POLICY, timedelta(seconds=7))
    assert (429, timedelta(seconds=7)) == (outcome.status, outcome.retry_after)
