"""Whatever happens in whatever order, every store ends where the pure machine does."""

from __future__ import annotations

import itertools
import os
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from breaker_cast import API, CRM, FAILURE, NEUTRAL, NOON, SUCCESS, Where, registry
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effaced.breakers.admission import admit, record
from effaced.breakers.admitted import Admission
from effaced.breakers.machine import force, reset, without_expired
from effaced.breakers.model import BreakerRole, BreakerState, CircuitBreakerStateData
from effaced.breakers.outcomes import Outcome, OutcomeKind
from effaced.breakers.policy import BreakerPolicy
from effaced.breakers.registry import BreakerRegistry
from effaced.breakers.repository import CircuitBreakerStateRepository as Repository
from effaced.breakers.stores.base import BreakerStore
from effaced.core import clock

EXAMPLES = int(os.environ.get("EFFACED_EXAMPLES", "15"))
DAYS = itertools.count()
POLICY: dict[str, Any] = {
    "fail_max": 3,
    "reset_timeout_s": 10,
    "success_threshold": 2,
    "trial_calls": 2,
    "stuck_timeout_s": 40,
    "rolling": {"enabled": True, "window_s": 20, "threshold_failures": 4, "cooldown_s": 15},
}
NAMES = (API, CRM)
outcomes = st.lists(
    st.sampled_from([SUCCESS, FAILURE, NEUTRAL, Outcome(OutcomeKind.FAILURE, 429, timedelta(seconds=8))]),
    max_size=4,
)
steps = st.one_of(
    st.tuples(st.just("admit"), st.sampled_from(list(BreakerRole)), st.integers(1, 3)),
    st.tuples(st.just("settle"), st.integers(0, 5), outcomes),
    st.tuples(st.just("settle"), st.integers(0, 5), outcomes),
    st.tuples(st.just("wait"), st.integers(1, 45), st.none()),
    st.tuples(st.just("force"), st.sampled_from(["open", "closed", "reset"]), st.sampled_from(NAMES)),
)


class Model:
    """The machine on two plain values."""

    def __init__(self) -> None:
        self.rows = {name: CircuitBreakerStateData(name) for name in NAMES}
        self.policy = BreakerPolicy(**POLICY)
        self.admissions: list[Any] = []

    def admit(self, role: BreakerRole, most: int) -> int:
        rows = [self.rows[name] for name in NAMES]
        verdict = admit(rows, [self.policy] * 2, role, clock.now(), most)
        self._keep(verdict.rows)
        if verdict.granted:
            self.admissions.append(verdict.holds)
        return verdict.granted

    def settle(self, which: int, made: list[Outcome]) -> None:
        for hold in self.admissions[which % len(self.admissions)]:
            row = self.rows[hold.service_name]
            after, _ = record(row, self.policy, hold, made, clock.now(), jitter=1.0)
            if after != row:
                self._keep([after])

    def force(self, how: str, name: str) -> None:
        now, row = clock.now(), self.rows[name]
        if how == "reset":
            self._keep([reset(row, now, actor="cli").data])
        else:
            until = now + timedelta(seconds=30)
            self._keep([force(row, BreakerState(how), now, until=until, actor="cli").data])

    def _keep(self, rows: Any) -> None:
        self.rows |= {row.service_name: without_expired(row, clock.now()) for row in rows}


class Real:
    """The same through a registry on a store."""

    def __init__(self, store: BreakerStore) -> None:
        self.store = store
        self.calls: BreakerRegistry = registry(store, **POLICY)
        self.admissions: list[Admission] = []

    def admit(self, role: BreakerRole, most: int) -> int:
        admission = self.calls.admit("crm", "api.example", role, most)
        if admission.granted:
            self.admissions.append(admission)
        return admission.granted

    def settle(self, which: int, made: list[Outcome]) -> None:
        self.calls.settle(self.admissions[which % len(self.admissions)], made)

    def force(self, how: str, name: str) -> None:
        if how == "reset":
            self.calls.reset(name, actor="cli")
        else:
            pin = self.calls.force_open if how == "open" else self.calls.force_close
            pin(name, seconds=30, actor="cli")

    def rows(self) -> dict[str, CircuitBreakerStateData]:
        found = self.store.load(NAMES)
        return {name: plain(found.get(name) or CircuitBreakerStateData(name)) for name in NAMES}


def plain(row: CircuitBreakerStateData) -> CircuitBreakerStateData:
    """Without what the machine does not decide: the number and the moment of a write."""
    return replace(without_expired(row, clock.now()), version=0, updated_at=None)


@pytest.mark.property
@given(story=st.lists(steps, min_size=1, max_size=25))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_history_ends_where_the_machine_does(where: Where, story: list[Any]) -> None:
    with ExitStack() as stack:
        # Never back in time: what a store remembers of the example before must be past.
        now = stack.enter_context(clock.pretend(NOON + timedelta(days=next(DAYS))))
        store = stack.enter_context(where.opened())
        for name in NAMES:
            Repository(store).delete_state(name)
        model, real = Model(), Real(store)
        for what, *about in story:
            if what == "wait":
                now.advance(timedelta(seconds=about[0]))
            elif what == "settle" and not model.admissions:
                continue
            else:
                said = [getattr(side, what)(*about) for side in (model, real)]
                assert said[0] == said[1]
            assert {name: plain(row) for name, row in model.rows.items()} == real.rows()
