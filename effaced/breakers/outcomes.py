"""What the result of a call says about the health of a system, which is not whether the call succeeded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from math import isnan

from effaced.breakers.model import HOST
from effaced.breakers.policy import BreakerPolicy
from effaced.core.errors import Problem, Refused
from effaced.model import FailureKind

_LONGEST_S = 86_400.0
# Failures that say nothing about the system's health: it refused this call, or it was not called.
_NEUTRAL = frozenset(
    {FailureKind.PERMANENT, FailureKind.CREDENTIALS, FailureKind.BREAKER_OPEN, FailureKind.CANCELLED}
)


class OutcomeKind(StrEnum):
    """The system works, is in trouble, or the result says nothing about it."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call says about a system. `retry_after` is how long the system asked callers to wait.

    `host_kind` is the classification by the host's policy, where it differs from the resolver's.
    """

    kind: OutcomeKind
    status: int | None = None
    retry_after: timedelta | None = None
    host_kind: OutcomeKind | None = None

    @property
    def failed(self) -> bool:
        """Whether it is a failure for the resolver or for the host."""
        return self.kind is OutcomeKind.FAILURE or self.host_kind is OutcomeKind.FAILURE

    def for_breaker(self, service_name: str) -> Outcome:
        """As the breaker with this name counts it."""
        if self.host_kind is None or not service_name.startswith(f"{HOST}:"):
            return self
        return replace(self, kind=self.host_kind, host_kind=None)


SUCCESS = Outcome(OutcomeKind.SUCCESS)
NEUTRAL = Outcome(OutcomeKind.NEUTRAL)


def classify(
    status: int | None,
    failure: FailureKind | None,
    policy: BreakerPolicy,
    retry_after: timedelta | None = None,
) -> Outcome:
    """The outcome by one policy: by its status if the system answered, else by the kind of failure."""
    return Outcome(kind_of(status, failure, policy), status, retry_after)


def kind_of(status: int | None, failure: FailureKind | None, policy: BreakerPolicy) -> OutcomeKind:
    """Unknown failures count: a resolver that fails on whatever the system answers must be held back."""
    if status is not None:
        if status in policy.classify.neutral_statuses:
            return OutcomeKind.NEUTRAL
        if status in policy.classify.failure_statuses:
            return OutcomeKind.FAILURE
        # A 200 that can't be understood is neutral: the system answers, but with the wrong thing.
        succeeded = 200 <= status < 300 and failure is None
        return OutcomeKind.SUCCESS if succeeded else OutcomeKind.NEUTRAL
    if failure is None:
        return OutcomeKind.SUCCESS
    return OutcomeKind.NEUTRAL if failure in _NEUTRAL else OutcomeKind.FAILURE


def wait_of(field: str, seconds: float) -> timedelta:
    """A time to wait, of a day at most: no policy lets anything wait longer. Refused if it is no number."""
    if isnan(seconds):
        raise Refused(f"{field} must be a number.", problems=[Problem(field, "must be a number")])
    return timedelta(seconds=max(0.0, min(seconds, _LONGEST_S)))


def combined(call: Outcome | None, read_back: Outcome | None) -> Outcome | None:
    """One outcome of a trial call and its read-back, for each breaker the worse of the two."""
    if read_back is None or not read_back.failed:
        return call
    if call is None:
        return read_back
    failure = OutcomeKind.FAILURE
    kind = failure if read_back.kind is failure else call.kind
    host_kind = failure if (read_back.host_kind or read_back.kind) is failure else call.host_kind or call.kind
    return replace(read_back, kind=kind, host_kind=None if host_kind is kind else host_kind)
