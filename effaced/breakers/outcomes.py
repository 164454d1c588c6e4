"""What a call says about the health of a system, which is another question than whether it succeeded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from effaced.breakers.policy import BreakerPolicy
from effaced.model import FailureKind

# Failures that say nothing about the system's health: it refused this call, or it was not called.
_NEUTRAL = frozenset(
    {FailureKind.PERMANENT, FailureKind.CREDENTIALS, FailureKind.BREAKER_OPEN, FailureKind.CANCELLED}
)


class OutcomeKind(StrEnum):
    """Well, not well, or nothing to be learned from it."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call came to. `retry_after` is how long the system asked to be left alone."""

    kind: OutcomeKind
    status: int | None = None
    retry_after: timedelta | None = None


SUCCESS = Outcome(OutcomeKind.SUCCESS)
NEUTRAL = Outcome(OutcomeKind.NEUTRAL)


def classify(
    status: int | None,
    failure: FailureKind | None,
    policy: BreakerPolicy,
    retry_after: timedelta | None = None,
) -> Outcome:
    """The outcome for the breaker: by its status if the system answered, else by the kind of failure.

    An unknown failure counts as one: a resolver that breaks on whatever the system does must be held back.
    """
    return Outcome(_kind(status, failure, policy), status, retry_after)


def _kind(status: int | None, failure: FailureKind | None, policy: BreakerPolicy) -> OutcomeKind:
    if status is not None:
        if status in policy.classify.neutral_statuses:
            return OutcomeKind.NEUTRAL
        if status in policy.classify.failure_statuses:
            return OutcomeKind.FAILURE
        # A 200 that can't be understood: the system answers, and answers wrongly. Nothing to be learned.
        well = 200 <= status < 300 and failure is None
        return OutcomeKind.SUCCESS if well else OutcomeKind.NEUTRAL
    if failure is None:
        return OutcomeKind.SUCCESS
    return OutcomeKind.NEUTRAL if failure in _NEUTRAL else OutcomeKind.FAILURE
