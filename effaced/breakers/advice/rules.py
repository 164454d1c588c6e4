"""Advice on breaker policies and rate limits: pure functions of what was measured in a window.

Each suggestion says what was measured and what would change, from what to what. Many 429s mean that calls are
too fast: then the rate is lowered, and the breaker is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from effaced.breakers.policy import BreakerPolicy
from effaced.model import PolicyKind

FAIL_MAX, RESET_S, SUCCESSES, RATE = (2, 10), (15, 600), (1, 3), (0.1, 100_000.0)
TOO_MANY_SHARE, SLOWER = 0.05, 0.8
FEWEST_CALLS, FEWEST_OPENS, FEWEST_TRIALS = 20, 3, 2
_FAILED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class HostMetrics:
    """What was measured of a resolver's or host's breaker, and what is in force.

    `rate_per_second` is the limit in force, `pace` the rate of calls in the seconds that had any; a host has
    neither. `opens` counts openings out of closed that nobody forced.
    """

    breaker: str
    since: datetime
    until: datetime
    policy: BreakerPolicy
    calls: int = 0
    too_many: int = 0
    retry_afters: int = 0
    median_retry_after_s: float | None = None
    opens: int = 0
    trials_ended: int = 0
    trials_failed: int = 0
    rate_per_second: float | None = None
    pace: float | None = None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A new value for one field; `was` is None if there was no limit."""

    kind: PolicyKind
    field: str
    was: float | None
    now: float
    why: str


@dataclass(frozen=True, slots=True)
class HostAdvice:
    """The suggestions for one breaker, all of one kind."""

    breaker: str
    metrics: HostMetrics
    suggestions: tuple[Suggestion, ...]


def advise(metrics: Mapping[str, HostMetrics]) -> dict[str, HostAdvice]:
    """Advice for each breaker that needs any."""
    found = {name: HostAdvice(name, each, tuple(_suggestions(each))) for name, each in metrics.items()}
    return {name: each for name, each in found.items() if each.suggestions}


def _suggestions(measured: HostMetrics) -> list[Suggestion]:
    if measured.calls >= FEWEST_CALLS and measured.too_many / measured.calls >= TOO_MANY_SHARE:
        return _lower_rate(measured)
    return [*_reset_timeout(measured), *_lower_fail_max(measured), *_stricter_trials(measured)]


def _lower_rate(measured: HostMetrics) -> list[Suggestion]:
    basis = measured.rate_per_second or measured.pace
    if basis is None:
        return []  # a host; advice goes to its resolvers
    now = max(RATE[0], min(RATE[1], float(f"{basis * SLOWER:.3g}")))
    if now >= basis:
        return []
    limit = (
        f"from {basis:g}" if measured.rate_per_second else f"(no limit now; calls went out at {basis:.3g})"
    )
    share = measured.too_many / measured.calls
    why = (
        f"{measured.too_many:,} of {measured.calls:,} calls ({share:.0%}) were answered with 429;"
        f" {TOO_MANY_SHARE:.0%} is too many. The rate goes down by a fifth, {limit} to {now:g} a second."
        " The breaker is left as it is."
    )
    return [Suggestion(PolicyKind.RATE, "rate_per_second", measured.rate_per_second, now, why)]


def _reset_timeout(measured: HostMetrics) -> list[Suggestion]:
    median, policy = measured.median_retry_after_s, measured.policy
    if median is None or policy.max_reset_timeout_s < RESET_S[0]:
        return []
    now = float(round(_clamped(median, RESET_S)))
    now = min(now, policy.max_reset_timeout_s)
    if now == policy.reset_timeout_s:
        return []
    why = (
        f"{measured.retry_afters:,} answers asked callers to wait, {median:g} s in the median."
        f" The wait before a trial goes from {policy.reset_timeout_s:g} to {now:g} s."
    )
    return [Suggestion(PolicyKind.BREAKER, "reset_timeout_s", policy.reset_timeout_s, now, why)]


def _lower_fail_max(measured: HostMetrics) -> list[Suggestion]:
    was = measured.policy.fail_max
    now = int(_clamped(was - 1, FAIL_MAX))
    if measured.opens < FEWEST_OPENS or now >= was:
        return []
    why = (
        f"It opened {measured.opens:,} times; {FEWEST_OPENS} is often."
        f" The failures in a row that open it go from {was} to {now}, so that fewer calls are lost."
    )
    return [Suggestion(PolicyKind.BREAKER, "fail_max", was, now, why)]


def _stricter_trials(measured: HostMetrics) -> list[Suggestion]:
    ended, failed, policy = measured.trials_ended, measured.trials_failed, measured.policy
    if ended < FEWEST_TRIALS or failed / ended < _FAILED_SHARE:
        return []
    finding, found = f"{failed:,} of {ended:,} trials failed; half is too many.", list[Suggestion]()
    successes = int(_clamped(2, SUCCESSES))
    if policy.success_threshold < successes:
        was = policy.success_threshold
        why = f"{finding} The good trials that close it go from {was} to {successes}."
        found.append(Suggestion(PolicyKind.BREAKER, "success_threshold", was, successes, why))
    if policy.trial_calls > 1:
        was = policy.trial_calls
        why = f"{finding} The trials at a time go from {was} to 1."
        found.append(Suggestion(PolicyKind.BREAKER, "trial_calls", was, 1, why))
    return found


def _clamped(value: float, bounds: Sequence[float]) -> float:
    return max(bounds[0], min(bounds[1], value))
