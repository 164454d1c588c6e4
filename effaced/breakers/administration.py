"""What people and programs do to a breaker past its calls: set it, pin it, let it go, forget it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta

from effaced.breakers import machine
from effaced.breakers.change import Change, Rows, stamp
from effaced.breakers.kept import Kept, stepped
from effaced.breakers.model import BreakerRole, BreakerState, CircuitBreakerStateData, Slot
from effaced.core.errors import Problem, Refused

PIN_MINUTES = 90
_CODE = re.compile(r"[A-Za-z0-9_.:\-]{0,64}")


class Administration(Kept):
    """The part of the repository that no call uses."""

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
            now = self.now()
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
            return Change([stamp(data, after, self.now())], held)

        return self.change([service_name], cleared)

    def reset(self, service_name: str) -> bool:
        return self.atomic_reset(service_name)[0]

    def delete_state(self, service_name: str) -> bool:
        """Forget it. False if there was no such breaker."""
        # Closed first: that it was open is remembered in more places than this store.
        found = self.load([service_name]).get(service_name)
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
        until = self.now() + timedelta(minutes=ttl_minutes)
        return self._force(service_name, BreakerState.OPEN, reason, controlled_by_id, until)

    def atomic_force_close(
        self,
        service_name: str,
        reason: str = "",
        controlled_by_id: str | int | None = None,
        ttl_minutes: float = PIN_MINUTES,
    ) -> tuple[bool, str, str]:
        """Pin it closed for so long: (done, state before, state after)."""
        until = self.now() + timedelta(minutes=ttl_minutes)
        return self._force(service_name, BreakerState.CLOSED, reason, controlled_by_id, until)

    def atomic_reset(
        self, service_name: str, reason: str = "", controlled_by_id: str | int | None = None
    ) -> tuple[bool, str, str]:
        """As if nothing had happened: (done, state before, state after)."""
        _require_code(reason)

        def made_new(rows: Rows) -> Change[tuple[bool, str, str]]:
            data, now = rows[service_name], self.now()
            step = machine.reset(data, now, actor=_actor(controlled_by_id))
            return stepped(data, step, now, (True, data.state.value, step.data.state.value))

        return self.change([service_name], made_new)

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
            data, now = rows[service_name], self.now()
            actor = _actor(controlled_by)
            step = machine.force(data, state, now, until=until, actor=actor, reason=reason or None)
            return stepped(data, step, now, (True, data.state.value, step.data.state.value))

        return self.change([service_name], forced)


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
