"""What a call says about the health of a system, which is another question than whether it succeeded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

import httpx

from effaced.breakers.policy import BreakerPolicy
from effaced.errors import ResolverError

# What an exception of the network looks like. A resolver's own TransientFailure has `retry_after`.
_NETWORK = (OSError, TimeoutError, httpx.TransportError)


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
    status_code: int | None,
    error: BaseException | None,
    policy: BreakerPolicy,
    cached: bool = False,
) -> Outcome:
    """The outcome for the breaker. An answer from a cache counts nothing: nobody was asked."""
    if cached:
        return NEUTRAL
    status = status_code if status_code is not None else getattr(error, "status_code", None)
    retry_after: object = getattr(error, "retry_after", None)
    return Outcome(
        _kind(status, error, policy),
        status,
        retry_after if isinstance(retry_after, timedelta) else None,
    )


def _kind(status: int | None, error: BaseException | None, policy: BreakerPolicy) -> OutcomeKind:
    if status is not None:
        if status in policy.classify.neutral_statuses:
            return OutcomeKind.NEUTRAL
        if status in policy.classify.failure_statuses:
            return OutcomeKind.FAILURE
        # A 200 that can't be understood: the system answers, and answers wrongly. Nothing to be learned.
        well = 200 <= status < 300 and error is None
        return OutcomeKind.SUCCESS if well else OutcomeKind.NEUTRAL
    if error is None:
        return OutcomeKind.SUCCESS
    if isinstance(error, ResolverError) or _is_about_credentials(error):
        return OutcomeKind.NEUTRAL
    if isinstance(error, _NETWORK) or hasattr(error, "retry_after"):
        return OutcomeKind.FAILURE
    return OutcomeKind.NEUTRAL


def _is_about_credentials(error: BaseException) -> bool:
    # By name: the class is the resolvers' own, and their room is not known here.
    return any(each.__name__ == "CredentialsRefused" for each in type(error).__mro__)
