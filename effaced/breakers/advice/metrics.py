"""Measures what advice is based on: attempts and transitions since the policy was last changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced.breakers import transitions
from effaced.breakers.advice.rules import FEWEST_CALLS, TOO_MANY_SHARE, HostAdvice, HostMetrics, advise
from effaced.breakers.model import RESOLVER, BreakerEvent, BreakerState, Transition, split_name
from effaced.breakers.policy import BreakerPolicies
from effaced.breakers.telemetry import (
    Called,
    Calls,
    calls_within,
    names_of_all,
    read_calls,
    require_window,
    resolvers_of,
    trials_ended,
)
from effaced.core import clock
from effaced.model import PolicyKind, PolicyScope
from effaced.retries.overrides import ALL, rate_in_force
from effaced.retries.tables import attempts
from effaced.retries.tables import policies as overrides

WINDOW_S = 600
_TRIPPED = (BreakerEvent.CONSECUTIVE_FAILURES, BreakerEvent.ROLLING_FAILURES)
_MOST_WAITS = 10_000
Changed = Mapping[tuple[PolicyKind, PolicyScope, str], tuple[Mapping[str, Any], datetime]]


class BreakerAdvisor:
    """Measures a window and advises. `policies` are those in force."""

    def __init__(
        self,
        session: Session,
        called: Collection[Called],
        policies: BreakerPolicies,
        window_s: float = WINDOW_S,
    ) -> None:
        self._session = session
        self._called = {each.resolver: each for each in called}
        self._policies = policies
        self._window = require_window(window_s)

    def read_metrics(self, now: datetime | None = None) -> dict[str, HostMetrics]:
        """Every breaker's metrics, since the last change of its policy at the earliest."""
        until = now or clock.now()
        changed = _changed(self._session)
        moves = transitions.history(self._session, until - self._window, until)
        return {
            name: self._measure(name, _since(name, changed, until - self._window), until, changed, moves)
            for name in names_of_all(self._called.values())
        }

    def advise(self, metrics: Mapping[str, HostMetrics] | None = None) -> dict[str, HostAdvice]:
        return advise(self.read_metrics() if metrics is None else metrics)

    def _measure(
        self,
        name: str,
        since: datetime,
        until: datetime,
        changed: Changed,
        moves: Mapping[str, Sequence[Transition]],
    ) -> HostMetrics:
        resolvers = resolvers_of(name, self._called.values())
        mine = moves.get(name, ())
        calls = read_calls(self._session, resolvers, since, until)
        waits = _waits(self._session, resolvers, since, until)
        ended, succeeded = trials_ended(mine, since)
        limit = self._rate_in_force(name, changed)
        return HostMetrics(
            breaker=name,
            since=since,
            until=until,
            policy=self._policies.named(name),
            calls=calls.calls,
            too_many=calls.too_many,
            retry_afters=len(waits),
            median_retry_after_s=float(median(waits)) if waits else None,
            opens=sum(each.at >= since and _tripped(each) for each in mine),
            trials_ended=ended,
            trials_failed=ended - succeeded,
            rate_per_second=limit,
            pace=None if limit else self._pace(name, calls, since, until),
        )

    def _rate_in_force(self, name: str, changed: Changed) -> float | None:
        scope, key = split_name(name)
        if scope != RESOLVER:
            return None
        own, _ = changed.get((PolicyKind.RATE, PolicyScope.RESOLVER, key), ({}, None))
        common, _ = changed.get((PolicyKind.RATE, PolicyScope.GLOBAL, ALL), ({}, None))
        configured = self._called[key].rate_per_second
        return rate_in_force(own.get("rate_per_second"), configured, common.get("rate_per_second"))

    def _pace(self, name: str, calls: Calls, since: datetime, until: datetime) -> float | None:
        """Calls per second in the seconds that had any. Only read if calls are too fast."""
        scope, key = split_name(name)
        if scope != RESOLVER or calls.calls < FEWEST_CALLS or calls.too_many / calls.calls < TOO_MANY_SHARE:
            return None
        found = self._session.scalars(select(attempts.c.at).where(*calls_within([key], since, until)))
        seconds = {int(at.timestamp()) for at in found}
        return calls.calls / len(seconds)


def _tripped(move: Transition) -> bool:
    return move.new is BreakerState.OPEN and move.reason in _TRIPPED


def _waits(session: Session, resolvers: Sequence[str], since: datetime, until: datetime) -> list[int]:
    """The waits that vendors asked for, newest first, up to a limit."""
    asked = select(attempts.c.retry_after_s).where(
        *calls_within(resolvers, since, until), attempts.c.retry_after_s.is_not(None)
    )
    found = session.scalars(asked.order_by(attempts.c.at.desc()).limit(_MOST_WAITS))
    return [each for each in found if each is not None]


def _changed(session: Session) -> Changed:
    """Changes of breaker policies and rates at run time, and when; undone ones too."""
    kinds = (PolicyKind.BREAKER, PolicyKind.RATE)
    found = select(overrides).where(overrides.c.kind.in_(kinds), overrides.c.scope != PolicyScope.REQUEST)
    return {(row.kind, row.scope, row.key): (row.body, row.changed_at) for row in session.execute(found)}


def _since(name: str, changed: Changed, earliest: datetime) -> datetime:
    scope, key = split_name(name)
    about = ((PolicyScope(scope), key), (PolicyScope.GLOBAL, ALL))
    times = [at for (_, where, whom), (_, at) in changed.items() if (where, whom) in about]
    # Excluding that moment: the change was based on what was known then.
    return max([earliest, *(at + timedelta(microseconds=1) for at in times)])
