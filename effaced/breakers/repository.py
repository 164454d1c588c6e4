"""The store of all breakers, whatever keeps it: every verb once, over one atomic read-modify-write."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy.orm import Session

from effaced.breakers import machine
from effaced.breakers.administration import Administration
from effaced.breakers.admission import acquire
from effaced.breakers.change import Change, Rows
from effaced.breakers.kept import stepped
from effaced.breakers.model import (
    BreakerRole,
    BreakerState,
    CircuitBreakerCloseAttempt,
    CircuitBreakerOpenAttempt,
    CircuitBreakerStateData,
    Transition,
)
from effaced.breakers.outcomes import SUCCESS, Outcome, OutcomeKind
from effaced.breakers.policy import BreakerPolicy

_FAILURE = Outcome(OutcomeKind.FAILURE)


class CircuitBreakerStateRepository(Administration):
    """Breakers by name. Names are `resolver:crm` and `host:api.example`."""

    def within(self, session: Session) -> CircuitBreakerStateRepository:
        """The same, in the caller's transaction as far as the store can."""
        return self

    # --- looking ---

    def get_or_create(self, service_name: str) -> CircuitBreakerStateData:
        """The breaker, made if it is not there; made once, however many ask."""
        found = self.load([service_name]).get(service_name)
        return found or self._change_one(service_name, machine.Step)

    def get_by_service_name(self, service_name: str) -> CircuitBreakerStateData | None:
        return self.load([service_name]).get(service_name)

    def get_all_states(self) -> list[CircuitBreakerStateData]:
        return self.load_all()

    def get_open_states(self, limit: int | None = None) -> list[CircuitBreakerStateData]:
        """Those in the state open, the longest open first."""
        found = [each for each in self.load_all() if each.state is BreakerState.OPEN]
        never = datetime.max.replace(tzinfo=UTC)
        found.sort(key=lambda each: (each.opened_at or never, each.service_name))
        return found[:limit]

    # --- outcomes ---

    def record_failure(self, service_name: str) -> CircuitBreakerStateData:
        """Count a failure and free a slot. Moves nothing: `record_failure_with_open_check` does."""

        def counted(data: CircuitBreakerStateData) -> machine.Step:
            now = self.now()
            data = _freed(data)
            if data.is_pinned(now):
                return machine.Step(data)
            return machine.Step(replace(data, failure_count=data.failure_count + 1, last_failure_at=now))

        return self._change_one(service_name, counted)

    def record_success(self, service_name: str) -> CircuitBreakerStateData:
        """Count a success and free a slot. Moves nothing: `record_success_with_close_check` does."""

        def counted(data: CircuitBreakerStateData) -> machine.Step:
            data = _freed(data)
            if data.is_pinned(self.now()):
                return machine.Step(data)
            if data.state is BreakerState.HALF_OPEN:
                return machine.Step(replace(data, success_count=data.success_count + 1))
            return machine.Step(replace(data, failure_count=0))

        return self._change_one(service_name, counted)

    def record_success_with_close_check(
        self, service_name: str, success_threshold: int
    ) -> CircuitBreakerCloseAttempt:
        """Count a success; the one that reaches the threshold closes the breaker, and says so."""
        policy = BreakerPolicy(success_threshold=success_threshold)
        data, transition = self._count(service_name, policy, SUCCESS)
        return CircuitBreakerCloseAttempt(data, transition is not None)

    def record_failure_with_open_check(
        self, service_name: str, failure_threshold: int, reset_timeout_seconds: float = 60
    ) -> CircuitBreakerOpenAttempt:
        """Count a failure; the one that reaches the threshold, or any on trial, opens it, and says so."""
        policy = BreakerPolicy(
            fail_max=failure_threshold,
            reset_timeout_s=reset_timeout_seconds,
            max_reset_timeout_s=max(900, reset_timeout_seconds),
        )
        data, transition = self._count(service_name, policy, _FAILURE)
        return CircuitBreakerOpenAttempt(data, transition is not None)

    def try_acquire_half_open_slot(
        self,
        service_name: str,
        limit: int,
        stuck_timeout_seconds: float,
        *,
        role: BreakerRole = BreakerRole.ERASE,
    ) -> tuple[bool, str, str]:
        """Take a trial slot if there is one: (taken, state before, state after)."""
        policy = BreakerPolicy(trial_calls=limit, stuck_timeout_s=stuck_timeout_seconds)

        def acquired(rows: Rows) -> Change[tuple[bool, str, str]]:
            data, now = rows[service_name], self.now()
            taken, step = acquire(data, policy, role, now)
            return stepped(data, step, now, (taken, data.state.value, step.data.state.value))

        return self.change([service_name], acquired)

    def reset_half_open_count(self, service_name: str) -> None:
        self._change_one(service_name, lambda data: machine.Step(replace(data, slots=())))

    # --- within ---

    def _count(
        self, service_name: str, policy: BreakerPolicy, outcome: Outcome
    ) -> tuple[CircuitBreakerStateData, Transition | None]:
        def counted(data: CircuitBreakerStateData) -> machine.Step:
            now, data = self.now(), _freed(data)
            return machine.Step(data) if data.is_pinned(now) else machine.count(data, policy, outcome, now)

        return self._step(service_name, counted)


def _freed(data: CircuitBreakerStateData) -> CircuitBreakerStateData:
    """One slot less: the oldest, as the caller does not say which was its own."""
    return replace(data, slots=data.slots[1:]) if data.slots else data
