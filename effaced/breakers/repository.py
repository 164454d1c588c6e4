"""The store of all breakers, whatever keeps it: every verb once, over one atomic read-modify-write.

A store supplies `load`, `load_all`, `change` and `delete`. `change` gives a function the current rows,
alone with them, and stores what it makes of them; it may call the function again if somebody was faster.
So exactly one caller sees each transition, and no verb below can be made unsafe by a store.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy.orm import Session

from effaced import clock
from effaced.breakers import machine
from effaced.breakers.admission import acquire
from effaced.breakers.change import Change, Changing, Rows, stamp
from effaced.breakers.model import (
    BreakerRole,
    BreakerState,
    CircuitBreakerCloseAttempt,
    CircuitBreakerOpenAttempt,
    CircuitBreakerStateData,
    Slot,
    Transition,
)
from effaced.breakers.outcomes import SUCCESS, Outcome, OutcomeKind
from effaced.breakers.policy import BreakerPolicy
from effaced.errors import Problem, Refused

T = TypeVar("T")
PIN_MINUTES = 90
_CODE = re.compile(r"[A-Za-z0-9_.:\-]{0,64}")
_FAILURE = Outcome(OutcomeKind.FAILURE)


class CircuitBreakerStateRepository(ABC):
    """Breakers by name. Names are `resolver:crm` and `host:api.example`."""

    # --- what a store supplies ---

    @abstractmethod
    def load(self, names: Collection[str]) -> dict[str, CircuitBreakerStateData]:
        """Those of the breakers that exist."""

    @abstractmethod
    def load_all(self) -> list[CircuitBreakerStateData]:
        """All of them, by name."""

    @abstractmethod
    def change(self, names: Collection[str], fn: Changing[T]) -> T:
        """Let `fn` change those breakers, all or none. One that does not exist comes as a new one.

        What is not changed is not written. Transitions and audit records are kept with it.
        """

    @abstractmethod
    def delete(self, name: str) -> bool: ...

    def edition(self) -> int | None:
        """A number that stays the same while no breaker changes; None if telling would cost a look."""
        return None

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
        never = datetime.max.replace(tzinfo=clock.now().tzinfo)
        found.sort(key=lambda each: (each.opened_at or never, each.service_name))
        return found[:limit]

    # --- outcomes ---

    def record_failure(self, service_name: str) -> CircuitBreakerStateData:
        """Count a failure and free a slot. Moves nothing: `record_failure_with_open_check` does."""

        def counted(data: CircuitBreakerStateData) -> machine.Step:
            now = clock.now()
            data = _freed(data)
            if data.is_pinned(now):
                return machine.Step(data)
            return machine.Step(replace(data, failure_count=data.failure_count + 1, last_failure_at=now))

        return self._change_one(service_name, counted)

    def record_success(self, service_name: str) -> CircuitBreakerStateData:
        """Count a success and free a slot. Moves nothing: `record_success_with_close_check` does."""

        def counted(data: CircuitBreakerStateData) -> machine.Step:
            data = _freed(data)
            if data.is_pinned(clock.now()):
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
            data = rows[service_name]
            taken, step = acquire(data, policy, role, clock.now())
            return _stepped(data, step, (taken, data.state.value, step.data.state.value))

        return self.change([service_name], acquired)

    def reset_half_open_count(self, service_name: str) -> None:
        self._change_one(service_name, lambda data: machine.Step(replace(data, slots=())))

    # --- administration ---

    def update_state(
        self,
        service_name: str,
        state: str,
        failure_count: int | None = None,
        success_count: int | None = None,
        opened_at: datetime | None = None,
        last_failure_at: datetime | None = None,
        half_open_request_count: int | None = None,
        reset_half_open_count: bool = False,
    ) -> bool:
        """Set what is given, in one write."""
        wanted = _state(state)

        def updated(data: CircuitBreakerStateData) -> machine.Step:
            now = clock.now()
            step = machine.assign(data, wanted, now)
            given = {
                "failure_count": failure_count,
                "success_count": success_count,
                "opened_at": opened_at,
                "last_failure_at": last_failure_at,
            }
            data = replace(step.data, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
            if half_open_request_count is not None:
                data = _with_slots(data, half_open_request_count, now)
            if reset_half_open_count:
                data = replace(data, slots=())
            return machine.Step(data, step.transition)

        self._change_one(service_name, updated)
        return True

    def set_manual_control(
        self,
        service_name: str,
        state: str,
        controlled_by_id: str | int | None = None,
        reason: str = "",
        expires_at: datetime | None = None,
    ) -> bool:
        """Pin it, until that moment or until somebody lets it go. `reason` is a code or a note's id."""
        self._force(service_name, _pin_state(state), reason, controlled_by_id, expires_at)
        return True

    def clear_manual_control(self, service_name: str, preserve_reason: bool = False) -> bool:
        """Let it go. False if nobody held it."""

        def cleared(rows: Rows) -> Change[bool]:
            data = rows[service_name]
            held = data.manually_controlled
            after = machine.unpin(data, preserve_reason=preserve_reason) if held else data
            return Change([stamp(data, after, clock.now())], held)

        return self.change([service_name], cleared)

    def reset(self, service_name: str) -> bool:
        return self.atomic_reset(service_name)[0]

    def delete_state(self, service_name: str) -> bool:
        """Forget it. False if there was no such breaker."""
        # Closed first: that it was open is remembered in more places than this store.
        found = self.get_by_service_name(service_name)
        if found is not None and (found.state is not BreakerState.CLOSED or found.manually_controlled):
            self.atomic_reset(service_name)
        return self.delete(service_name)

    def atomic_force_open(
        self,
        service_name: str,
        reason: str = "",
        controlled_by_id: str | int | None = None,
        ttl_minutes: float = PIN_MINUTES,
    ) -> tuple[bool, str, str]:
        """Pin it open for so long, made if it is not there: (done, state before, state after)."""
        until = clock.now() + timedelta(minutes=ttl_minutes)
        return self._force(service_name, BreakerState.OPEN, reason, controlled_by_id, until)

    def atomic_force_close(
        self,
        service_name: str,
        reason: str = "",
        controlled_by_id: str | int | None = None,
        ttl_minutes: float = PIN_MINUTES,
    ) -> tuple[bool, str, str]:
        """Pin it closed for so long: (done, state before, state after)."""
        until = clock.now() + timedelta(minutes=ttl_minutes)
        return self._force(service_name, BreakerState.CLOSED, reason, controlled_by_id, until)

    def atomic_reset(
        self, service_name: str, reason: str = "", controlled_by_id: str | int | None = None
    ) -> tuple[bool, str, str]:
        """As if nothing had happened: (done, state before, state after)."""
        _require_code(reason)

        def made_new(rows: Rows) -> Change[tuple[bool, str, str]]:
            data = rows[service_name]
            step = machine.reset(data, clock.now(), actor=_actor(controlled_by_id))
            return _stepped(data, step, (True, data.state.value, step.data.state.value))

        return self.change([service_name], made_new)

    # --- within ---

    def _force(
        self,
        service_name: str,
        state: BreakerState,
        reason: str,
        controlled_by: str | int | None,
        until: datetime | None,
    ) -> tuple[bool, str, str]:
        _require_code(reason)

        def forced(rows: Rows) -> Change[tuple[bool, str, str]]:
            data = rows[service_name]
            actor = _actor(controlled_by)
            step = machine.force(data, state, clock.now(), until=until, actor=actor, reason=reason or None)
            return _stepped(data, step, (True, data.state.value, step.data.state.value))

        return self.change([service_name], forced)

    def _count(
        self, service_name: str, policy: BreakerPolicy, outcome: Outcome
    ) -> tuple[CircuitBreakerStateData, Transition | None]:
        def counted(data: CircuitBreakerStateData) -> machine.Step:
            now, data = clock.now(), _freed(data)
            return machine.Step(data) if data.is_pinned(now) else machine.count(data, policy, outcome, now)

        return self._step(service_name, counted)

    def _change_one(
        self, service_name: str, change: Callable[[CircuitBreakerStateData], machine.Step]
    ) -> CircuitBreakerStateData:
        return self._step(service_name, change)[0]

    def _step(
        self, service_name: str, step: Callable[[CircuitBreakerStateData], machine.Step]
    ) -> tuple[CircuitBreakerStateData, Transition | None]:
        """Change one breaker; the row as it was written, and the transition if this call made one."""

        def changed(rows: Rows) -> Change[tuple[CircuitBreakerStateData, Transition | None]]:
            made = step(rows[service_name])
            after = stamp(rows[service_name], made.data, clock.now())
            return Change([after], (after, made.transition), [made.transition] if made.transition else [])

        return self.change([service_name], changed)


def _stepped(before: CircuitBreakerStateData, step: machine.Step, result: T) -> Change[T]:
    after = stamp(before, step.data, clock.now())
    return Change([after], result, [step.transition] if step.transition else [])


def _freed(data: CircuitBreakerStateData) -> CircuitBreakerStateData:
    """One slot less: the oldest, as the caller does not say which was its own."""
    return replace(data, slots=data.slots[1:]) if data.slots else data


def _with_slots(data: CircuitBreakerStateData, number: int, now: datetime) -> CircuitBreakerStateData:
    given = data.slots_given
    slots = tuple(Slot(given + each, BreakerRole.ERASE, now) for each in range(1, number + 1))
    return replace(data, slots=slots, slots_given=given + number)


def _state(word: str) -> BreakerState:
    try:
        return BreakerState(word.lower())
    except ValueError:
        allowed = ", ".join(BreakerState)
        raise Refused("There is no such state.", problems=[Problem("state", f"one of {allowed}")]) from None


def _pin_state(word: str) -> BreakerState:
    state = _state(word)
    if state is BreakerState.HALF_OPEN:
        raise Refused("A breaker is pinned open or closed.", problems=[Problem("state", "open or closed")])
    return state


def _require_code(reason: str) -> None:
    if not _CODE.fullmatch(reason):
        said = "a code or a note's id; what people type is kept in a note"
        raise Refused("That reason can't be kept here.", problems=[Problem("reason", said)])


def _actor(controlled_by: str | int | None) -> str:
    if controlled_by is None:
        return "system"
    return controlled_by if isinstance(controlled_by, str) else f"officer:{controlled_by}"
