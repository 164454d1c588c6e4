"""What the figures of a while say about a breaker's policy and a resolver's rate limit.

`advise` is a function of its figures and nothing else. Each rule says what was seen, what would change,
and from what to what. Where 429s are many, calls come too fast: the rate is lowered and the breaker left.
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
    """What was seen of a resolver's or host's breaker, and what is in force.

    `rate_per_second` is the limit in force, `pace` how fast calls went in the seconds that had any; both
    are a resolver's, a host has none. `opens` are those out of closed that nobody forced.
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
    """One field that should be another; `was` is None where there was no limit."""

    kind: PolicyKind
    field: str
    was: float | None
    now: float
    why: str


@dataclass(frozen=True, slots=True)
class HostAdvice:
    """What is suggested for one breaker, all of it of one kind."""

    breaker: str
    metrics: HostMetrics
    suggestions: tuple[Suggestion, ...]


def advise(metrics: Mapping[str, HostMetrics]) -> dict[str, HostAdvice]:
    """Advice for each breaker for which there is any."""
    found = {name: HostAdvice(name, each, tuple(_suggestions(each))) for name, each in metrics.items()}
    return {name: each for name, each in found.items() if each.suggestions}


def _suggestions(seen: HostMetrics) -> list[Suggestion]:
    if seen.calls >= FEWEST_CALLS and seen.too_many / seen.calls >= TOO_MANY_SHARE:
        return _slower(seen)
    return [*_reset(seen), *_sooner(seen), *_surer(seen)]


def _slower(seen: HostMetrics) -> list[Suggestion]:
    basis = seen.rate_per_second or seen.pace
    if basis is None:
        return []  # a host: its resolvers are advised
    now = max(RATE[0], min(RATE[1], float(f"{basis * SLOWER:.3g}")))
    if now >= basis:
        return []
    limit = f"from {basis:g}" if seen.rate_per_second else f"(no limit now; calls went out at {basis:.3g})"
    why = (
        f"{seen.too_many:,} of {seen.calls:,} calls ({seen.too_many / seen.calls:.0%}) got 429 as an answer;"
        f" {TOO_MANY_SHARE:.0%} is too many. The rate goes down by a fifth, {limit} to {now:g} a second."
        " The breaker is left as it is."
    )
    return [Suggestion(PolicyKind.RATE, "rate_per_second", seen.rate_per_second, now, why)]


def _reset(seen: HostMetrics) -> list[Suggestion]:
    median, policy = seen.median_retry_after_s, seen.policy
    if median is None or policy.max_reset_timeout_s < RESET_S[0]:
        return []
    now = float(round(_clamped(median, RESET_S)))
    now = min(now, policy.max_reset_timeout_s)
    if now == policy.reset_timeout_s:
        return []
    why = (
        f"{seen.retry_afters:,} answers asked to wait, in the middle {median:g} s."
        f" The wait before a trial goes from {policy.reset_timeout_s:g} to {now:g} s."
    )
    return [Suggestion(PolicyKind.BREAKER, "reset_timeout_s", policy.reset_timeout_s, now, why)]


def _sooner(seen: HostMetrics) -> list[Suggestion]:
    was = seen.policy.fail_max
    now = int(_clamped(was - 1, FAIL_MAX))
    if seen.opens < FEWEST_OPENS or now >= was:
        return []
    why = (
        f"It opened {seen.opens:,} times; {FEWEST_OPENS} is often."
        f" The failures in a row that open it go from {was} to {now}, so that fewer calls are lost."
    )
    return [Suggestion(PolicyKind.BREAKER, "fail_max", was, now, why)]


def _surer(seen: HostMetrics) -> list[Suggestion]:
    ended, failed, policy = seen.trials_ended, seen.trials_failed, seen.policy
    if ended < FEWEST_TRIALS or failed / ended < _FAILED_SHARE:
        return []
    saw, found = f"{failed:,} of {ended:,} trials failed; half is too many.", list[Suggestion]()
    successes = int(_clamped(2, SUCCESSES))
    if policy.success_threshold < successes:
        was = policy.success_threshold
        why = f"{saw} The good trials that close it go from {was} to {successes}."
        found.append(Suggestion(PolicyKind.BREAKER, "success_threshold", was, successes, why))
    if policy.trial_calls > 1:
        was = policy.trial_calls
        why = f"{saw} The trials at a time go from {was} to 1."
        found.append(Suggestion(PolicyKind.BREAKER, "trial_calls", was, 1, why))
    return found


def _clamped(value: float, bounds: Sequence[float]) -> float:
    return max(bounds[0], min(bounds[1], value))
