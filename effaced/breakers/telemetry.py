"""What breakers did within a period: how often they opened and why, the time saved, how trials ended.

Time saved is an estimate, and named so: calls that were not made, times how long a failed call takes. Calls
that are never started can't be counted, so their number is the rate of calls while the breaker let them
through, times how long it did not. Retry-After holds count like openings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from effaced.breakers import transitions
from effaced.breakers.model import (
    HOST,
    RETRY_AFTER,
    BreakerEvent,
    BreakerState,
    Transition,
    host_name,
    resolver_name,
    split_name,
)
from effaced.core import clock
from effaced.core.errors import Problem, Refused
from effaced.model import AttemptOutcome
from effaced.retries.tables import attempts

SHORTEST_S, LONGEST_S = 60, 86_400
DAY_S = 86_400
KEPT = timedelta(days=90)
_FAILED = (AttemptOutcome.FAILURE, AttemptOutcome.TIMEOUT)
_TRIALS_ENDED = (BreakerEvent.TRIAL_FAILED, BreakerEvent.TRIALS_SUCCEEDED)


@dataclass(frozen=True, slots=True)
class Called:
    """A resolver, its host if it has one, and its rate limit in the files."""

    resolver: str
    host: str | None = None
    rate_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """Counts of calls, without those that were denied. `trials` went through a half-open breaker."""

    calls: int = 0
    trials: int = 0
    too_many: int = 0
    failed: int = 0
    failed_ms: int = 0
    latency_ms: int = 0

    @property
    def average_ms(self) -> float:
        """How long a failed call takes, which is what an open breaker saves; any call, if none failed."""
        count, total = (self.failed, self.failed_ms) if self.failed else (self.calls, self.latency_ms)
        return total / count if count else 0.0


@dataclass(frozen=True, slots=True)
class BreakerSummary:
    """One breaker. `success_after_open` is the share of half-open phases that closed it; None without any."""

    breaker: str
    opens: int
    opens_per_hour: float
    held_back_s: float
    calls: int
    calls_not_made_estimate: int
    time_saved_ms_estimate: int
    trials_ended: int
    trials_succeeded: int
    success_after_open: float | None
    reasons: Mapping[str, int]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def require_window(seconds: float) -> timedelta:
    """The period to read. Attempts are kept for a day, so it is at most that."""
    if not SHORTEST_S <= seconds <= LONGEST_S:
        message = f"must be between {SHORTEST_S} and {LONGEST_S}"
        raise Refused(
            f"The window_s {message}.", problems=[Problem("window_s", message, code="out_of_range")]
        )
    return timedelta(seconds=seconds)


def resolvers_of(service_name: str, called: Collection[Called]) -> list[str]:
    """The resolvers whose calls go through this breaker."""
    scope, key = split_name(service_name)
    if scope != HOST:
        return [key]
    return sorted(each.resolver for each in called if (each.host or "").lower() == key)


def names_of_all(called: Collection[Called]) -> list[str]:
    """The breakers of these resolvers, and of their hosts."""
    hosts = {host_name(each.host) for each in called if each.host}
    return [*sorted(resolver_name(each.resolver) for each in called), *sorted(hosts)]


def summary(
    session: Session,
    called: Sequence[Called],
    window_s: float = DAY_S,
    *,
    only: Collection[str] | None = None,
) -> list[BreakerSummary]:
    """All breakers over the last seconds, including those of removed systems that had transitions."""
    until = clock.now()
    since = until - require_window(window_s)
    moves = transitions.history(session, since, until)
    names = names_of_all(called)
    moved = sorted(name for name, made in moves.items() if name not in names and made[-1].at >= since)
    return [
        _summary_of(
            name,
            moves.get(name, []),
            read_calls(session, resolvers_of(name, called), since, until),
            since,
            until,
        )
        for name in [*names, *moved]
        if only is None or name in only
    ]


def read_calls(session: Session, resolvers: Collection[str], since: datetime, until: datetime) -> Calls:
    """Counts of the calls to these resolvers that began within that period."""
    failed = attempts.c.outcome.in_(_FAILED)

    def total(condition: Any, value: Any = 1) -> Any:
        return func.coalesce(func.sum(case((condition, value), else_=0)), 0)

    found = select(
        func.count(),
        total(attempts.c.trial),
        total(attempts.c.status_code == 429),
        total(failed),
        total(failed, attempts.c.latency_ms),
        func.coalesce(func.sum(attempts.c.latency_ms), 0),
    ).where(*calls_within(resolvers, since, until))
    return Calls(*(int(figure) for figure in session.execute(found).one()))


def calls_within(resolvers: Collection[str], since: datetime, until: datetime) -> list[Any]:
    return [
        attempts.c.resolver.in_(resolvers),
        attempts.c.at >= since,
        attempts.c.at < until,
        attempts.c.outcome != AttemptOutcome.CIRCUIT_OPEN,
    ]


def opened(moves: Sequence[Transition], since: datetime) -> list[Transition]:
    """The transitions after which calls are held: into open, in whatever way, and Retry-After holds."""
    return [each for each in moves if each.at >= since and (_is_hold(each) or _opens(each))]


def _opens(move: Transition) -> bool:
    return move.new is BreakerState.OPEN and move.old is not BreakerState.OPEN


def _is_hold(move: Transition) -> bool:
    return move.reason == RETRY_AFTER


def trials_ended(moves: Sequence[Transition], since: datetime) -> tuple[int, int]:
    """How many half-open phases ended, and how many of them with a close."""
    ends = [each.reason for each in moves if each.at >= since and each.reason in _TRIALS_ENDED]
    return len(ends), ends.count(BreakerEvent.TRIALS_SUCCEEDED)


def held_back(moves: Sequence[Transition], since: datetime, until: datetime) -> timedelta:
    """For how long a breaker let nothing through: from each opening or hold until a call could be made.

    After that, nothing was called only because there was nothing to call.
    """
    total = timedelta(0)
    for number, each in enumerate(moves, 1):
        if each.new is BreakerState.OPEN or _is_hold(each):
            ends = [
                until,
                each.retry_at or until,
                *(following.at for following in moves[number : number + 1]),
            ]
            total += max(timedelta(0), min(ends) - max(each.at, since))
    return total


def _summary_of(
    name: str, moves: Sequence[Transition], calls: Calls, since: datetime, until: datetime
) -> BreakerSummary:
    opens, (ended, succeeded) = opened(moves, since), trials_ended(moves, since)
    window, held = (until - since).total_seconds(), held_back(moves, since, until).total_seconds()
    through = window - held
    not_made = round((calls.calls - calls.trials) / through * held) if through > 0 else 0
    return BreakerSummary(
        breaker=name,
        opens=len(opens),
        opens_per_hour=round(len(opens) / window * 3600, 3),
        held_back_s=round(held, 3),
        calls=calls.calls,
        calls_not_made_estimate=not_made,
        time_saved_ms_estimate=round(not_made * calls.average_ms),
        trials_ended=ended,
        trials_succeeded=succeeded,
        success_after_open=succeeded / ended if ended else None,
        reasons=dict(Counter(each.reason for each in opens).most_common()),
    )
