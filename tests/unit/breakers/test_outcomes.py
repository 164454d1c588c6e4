"""What an answer says of a system's health (SEMANTICS, P1)."""

from __future__ import annotations

from datetime import timedelta

import httpx
import pytest

from effaced.breakers.outcomes import NEUTRAL, OutcomeKind, classify
from effaced.breakers.policy import BreakerPolicy
from effaced.errors import ResolverError
from effaced.resolvers.protocols import (
    CallTimeout,
    CredentialsRefused,
    Rejected,
    TransientFailure,
    Unreachable,
)

POLICY = BreakerPolicy()


def kind(status: int | None = None, error: BaseException | None = None, **policy: object) -> OutcomeKind:
    return classify(status, error, POLICY.replace(**policy) if policy else POLICY).kind


@pytest.mark.parametrize("status", [None, 200, 204, 299])
def test_an_answer_is_a_success(status: int | None) -> None:
    assert kind(status) is OutcomeKind.SUCCESS


@pytest.mark.parametrize("status", [408, 429, 500, 503, 599])
def test_a_system_in_trouble_is_a_failure(status: int) -> None:
    assert kind(status) is OutcomeKind.FAILURE


@pytest.mark.parametrize("status", [100, 301, 400, 401, 403, 404, 410, 451])
def test_everything_else_says_nothing(status: int) -> None:
    assert kind(status) is OutcomeKind.NEUTRAL


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        ConnectionResetError(),
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        CallTimeout("No answer in time.", code="timeout"),
        Unreachable("No answer.", code="ConnectError"),
        TransientFailure("later"),
        TransientFailure("later", status_code=503),
    ],
    ids=lambda error: type(error).__name__,
)
def test_trouble_on_the_way_is_a_failure(error: BaseException) -> None:
    assert kind(None, error) is OutcomeKind.FAILURE


@pytest.mark.parametrize(
    "error",
    [
        ResolverError("never"),
        Rejected("no", code="http_400", status_code=400),
        CredentialsRefused("wrong password"),
        CredentialsRefused("wrong password", status_code=401),
        KeyError("a mistake of ours"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_trouble_that_is_not_the_system_s_says_nothing(error: BaseException) -> None:
    assert kind(None, error) is OutcomeKind.NEUTRAL


def test_an_answer_that_can_not_be_understood_says_nothing() -> None:
    assert kind(200, ResolverError("no horizon in it")) is OutcomeKind.NEUTRAL


def test_both_lists_are_the_policy_s_and_neutral_wins() -> None:
    lists = {"failure_statuses": [404, "500-509"], "neutral_statuses": [503]}
    found = [kind(status, classify=lists) for status in (404, 500, 503, 510, 429)]
    failure, neutral = OutcomeKind.FAILURE, OutcomeKind.NEUTRAL
    assert found == [failure, failure, neutral, neutral, neutral]


def test_an_answer_from_a_cache_counts_nothing() -> None:
    assert classify(503, None, POLICY, cached=True) == NEUTRAL


def test_retry_after_goes_with_it() -> None:
    error = TransientFailure("later", status_code=429, retry_after=timedelta(seconds=7))
    outcome = classify(None, error, POLICY)
    assert (429, timedelta(seconds=7)) == (outcome.status, outcome.retry_after)
