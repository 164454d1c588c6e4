"""CircuitBreakerStateRepository: breakers by the verbs of a classic store. All rules are elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from effaced.breakers import machine, operations
from effaced.breakers.admission import acquire
from effaced.breakers.machine import Step
from effaced.breakers.model import (
    BreakerRole,
    BreakerState,
    CircuitBreakerCloseAttempt,
    CircuitBreakerOpenAttempt,
    CircuitBreakerStateData,
    Slot,
    Transition,
    require_name,
)
from effaced.breakers.outcomes import SUCCESS, Outcome, OutcomeKind
from effaced.breakers.policy import BreakerPolicy
from effaced.breakers.stores.base import BreakerStore, Change, Rows, stamp
from effaced.core.arguments import checked
from effaced.core.errors import Conflict, Problem, Refused

_MOST_COUNTED, _MOST_TRIALS = 1_000_000, 100
_FIRST_YEAR, _LAST_YEAR = 1970, 9000
_FAILURE = Outcome(OutcomeKind.FAILURE)
Forced = tuple[bool, str, str]


def _default_policy(_service_name: str) -> BreakerPolicy:
    return BreakerPolicy()


def _ignore(_made: Sequence[Transition]) -> None:
    return


@checked
class CircuitBreakerStateRepository:
    """Breakers of any store. `policy` is the policy in force; `on_transitions` is called with every
    transition.

    A service name is `resolver:crm` or `host:api.example`; others are refused.
    """

    def __init__(
        self,
        store: BreakerStore,
        *,
        policy: Callable[[str], BreakerPolicy] = _default_policy,
        on_transitions: Callable[[Sequence[Transition]], None] = _ignore,
    ) -> None:
        self._store = store
        self._policy = policy
        self._on_transitions = on_transitions

    # --- reading ---

    def get_or_create(self, service_name: str) -> CircuitBreakerStateData:
        """The breaker, created if it does not exist; created once, however many callers race."""
        return (
            self.get_by_service_name(service_name)
            or self._change(service_name, lambda row, _: Step(row)).data
        )

    def get_by_service_name(self, service_name: str) -> CircuitBreakerStateData | None:
        name = require_name(service_name)
        return self._store.load([name]).get(name)

    def get_all_states(self) -> list[CircuitBreakerStateData]:
        return self._store.load_all()

    def get_open_states(self, limit: int | None = None) -> list[CircuitBreakerStateData]:
        """Those in the state open, the longest open first."""
        if limit is not None and limit < 0:
            _refuse([Problem("limit", "must be at least 0", code="too_small")])
        never = datetime.max.replace(tzinfo=UTC)
        found = [row for row in self._store.load_all() if row.state is BreakerState.OPEN]
        found.sort(key=lambda row: (row.opened_at or never, row.service_name))
        return found[:limit]

    # --- outcomes ---

    def record_failure(self, service_name: str) -> CircuitBreakerStateData:
        """Count a failure and free a slot. Changes no state; `record_failure_with_open_check` does."""
        return self._tally(service_name, OutcomeKind.FAILURE)

    def record_success(self, service_name: str) -> CircuitBreakerStateData:
        """Count a success and free a slot. Changes no state; `record_success_with_close_check` does."""
        return self._tally(service_name, OutcomeKind.SUCCESS)

    def record_success_with_close_check(
        self, service_name: str, success_threshold: int
    ) -> CircuitBreakerCloseAttempt:
        """Count a success; the one that reaches the threshold closes the breaker, and says so."""
        policy = self._policy(require_name(service_name)).replace(success_threshold=success_threshold)
        row, transition = self._count(service_name, policy, SUCCESS)
        return CircuitBreakerCloseAttempt(row, transition is not None)

    def record_failure_with_open_check(
        self, service_name: str, failure_threshold: int, reset_timeout_seconds: float = 60
    ) -> CircuitBreakerOpenAttempt:
        """Count a failure; the one that reaches the threshold, or any trial's, opens it, and says so."""
        in_force = self._policy(require_name(service_name))
        policy = in_force.replace(
            fail_max=failure_threshold,
            reset_timeout_s=reset_timeout_seconds,
            max_reset_timeout_s=max(in_force.max_reset_timeout_s, reset_timeout_seconds),
        )
        row, transition = self._count(service_name, policy, _FAILURE)
        return CircuitBreakerOpenAttempt(row, transition is not None)

    def try_acquire_half_open_slot(
        self,
        service_name: str,
        limit: int,
        stuck_timeout_seconds: float,
        *,
        role: BreakerRole = BreakerRole.ERASE,
    ) -> Forced:
        """Take a trial slot if there is one: (taken, state before, state after)."""
        name = require_name(service_name)
        policy = self._policy(name).replace(trial_calls=limit, stuck_timeout_s=stuck_timeout_seconds)

        def acquired(rows: Rows) -> Change[tuple[Forced, Transition | None]]:
            row, now = rows[name], self._store.now()
            taken, step = acquire(row, policy, role, now)
            result = (taken, row.state.value, step.data.state.value), step.transition
            return Change([stamp(row, step.data, now)], result, [step.transition] if step.transition else [])

        result, transition = self._store.change([name], acquired)
        self._on_transitions([transition] if transition else [])
        return result

    def reset_half_open_count(self, service_name: str) -> None:
        self._change(service_name, lambda row, _: Step(replace(row, slots=())))

    # --- state and manual control ---

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
        """Set what is given, in one write. Open blocks calls for the policy's wait from `opened_at`, or from
        now, on; so does open again."""
        wanted, name = _state(state), require_name(service_name)
        _require_moments(opened_at=opened_at, last_failure_at=last_failure_at)
        _require_counts(_MOST_COUNTED, failure_count=failure_count, success_count=success_count)
        _require_counts(_MOST_TRIALS, half_open_request_count=half_open_request_count)
        policy = self._policy(name)

        def updated(row: CircuitBreakerStateData, now: datetime) -> Step:
            step = machine.assign(row, wanted, now, policy=policy, opened_at=opened_at)
            row = replace(
                step.data,
                failure_count=step.data.failure_count if failure_count is None else failure_count,
                success_count=step.data.success_count if success_count is None else success_count,
                last_failure_at=last_failure_at or step.data.last_failure_at,
            )
            if half_open_request_count is not None:
                row = _with_slots(row, half_open_request_count, now)
            return Step(replace(row, slots=()) if reset_half_open_count else row, step.transition)

        self._change(service_name, updated)
        return True

    def set_manual_control(
        self,
        service_name: str,
        state: str,
        controlled_by_id: str | int | None = None,
        reason: str = "",
        expires_at: datetime | None = None,
    ) -> bool:
        """Pin it, until that moment, at most 30 days away, or until somebody unpins it.

        `reason` is a code or a note's id.
        """
        until = expires_at
        if until is not None:
            until = operations.pin_until(self._store.now(), None, until, field="expires_at")
        self._pin(service_name, _pin_state(state), reason, controlled_by_id, until)
        return True

    def clear_manual_control(self, service_name: str, preserve_reason: bool = False) -> bool:
        """Remove the pin. False if there was none."""
        try:
            _, made = operations.unpin(
                self._store, require_name(service_name), actor=_actor(None), preserve_reason=preserve_reason
            )
        except Conflict:
            return False
        self._on_transitions([made])
        return True

    def reset(self, service_name: str) -> bool:
        return self.atomic_reset(service_name)[0]

    def delete_state(self, service_name: str) -> bool:
        """Delete it. False if there was no such breaker."""
        deleted = operations.delete(self._store, require_name(service_name), actor=_actor(None))
        self._on_transitions([deleted[1]] if deleted else [])
        return deleted is not None

    def atomic_force_open(
        self,
        service_name: str,
        reason: str = "",
        controlled_by_id: str | int | None = None,
        ttl_minutes: float = operations.PIN_MINUTES,
    ) -> Forced:
        """Pin it open for this long, created if it does not exist: (done, state before, state after)."""
        until = self._pin_end(ttl_minutes)
        return self._pin(service_name, BreakerState.OPEN, reason, controlled_by_id, until)

    def atomic_force_close(
        self,
        service_name: str,
        reason: str = "",
        controlled_by_id: str | int | None = None,
        ttl_minutes: float = operations.PIN_MINUTES,
    ) -> Forced:
        """Pin it closed for this long: (done, state before, state after)."""
        until = self._pin_end(ttl_minutes)
        return self._pin(service_name, BreakerState.CLOSED, reason, controlled_by_id, until)

    def atomic_reset(
        self, service_name: str, reason: str = "", controlled_by_id: str | int | None = None
    ) -> Forced:
        """Close it and clear counters, pin and cooldown: (done, state before, state after)."""
        operations.require_code(reason)
        return self._announced(
            operations.reset(self._store, require_name(service_name), actor=_actor(controlled_by_id))
        )

    # --- internals ---

    def _change(self, service_name: str, step: Callable[[CircuitBreakerStateData, datetime], Step]) -> Step:
        made = operations.change_one(self._store, require_name(service_name), step)
        self._on_transitions([made.transition] if made.transition else [])
        return made

    def _tally(self, service_name: str, kind: OutcomeKind) -> CircuitBreakerStateData:
        def tallied(row: CircuitBreakerStateData, now: datetime) -> Step:
            row = replace(row, slots=row.slots[1:])
            return Step(row if row.is_pinned(now) else machine.tally(row, kind, now))

        return self._change(service_name, tallied).data

    def _count(
        self, service_name: str, policy: BreakerPolicy, outcome: Outcome
    ) -> tuple[CircuitBreakerStateData, Transition | None]:
        def counted(row: CircuitBreakerStateData, now: datetime) -> Step:
            # The caller does not say which slot was its own, so the oldest one is freed.
            row = replace(row, slots=row.slots[1:])
            return Step(row) if row.is_pinned(now) else machine.count(row, policy, outcome, now)

        made = self._change(service_name, counted)
        return made.data, made.transition

    def _pin(
        self,
        service_name: str,
        state: BreakerState,
        reason: str,
        controlled_by: str | int | None,
        until: datetime | None,
    ) -> Forced:
        actor = _actor(controlled_by)
        return self._announced(
            operations.pin(
                self._store, require_name(service_name), state, until=until, actor=actor, code=reason
            )
        )

    def _pin_end(self, minutes: float) -> datetime:
        return operations.pin_until(self._store.now(), minutes * 60, None)

    def _announced(self, done: tuple[CircuitBreakerStateData, Transition]) -> Forced:
        before, made = done
        self._on_transitions([made])
        return True, before.state.value, made.new.value


def _with_slots(row: CircuitBreakerStateData, number: int, now: datetime) -> CircuitBreakerStateData:
    first = row.slots_given + 1
    slots = tuple(Slot(first + each, BreakerRole.ERASE, now) for each in range(number))
    return replace(row, slots=slots, slots_given=row.slots_given + number)


def _state(word: str) -> BreakerState:
    try:
        return BreakerState(word.lower())
    except ValueError:
        message = f"must be one of {', '.join(BreakerState)}"
        raise Refused(
            f"The state {message}.", problems=[Problem("state", message, code="not_allowed")]
        ) from None


def _pin_state(word: str) -> BreakerState:
    state = _state(word)
    if state is BreakerState.HALF_OPEN:
        message = "must be open or closed"
        raise Refused(
            f"The state of a pin {message}.", problems=[Problem("state", message, code="not_allowed")]
        )
    return state


def _require_moments(**moments: datetime | None) -> None:
    given = {name: moment for name, moment in moments.items() if moment is not None}
    problems = [
        Problem(name, "must have a time zone", code="malformed")
        for name, moment in given.items()
        if moment.tzinfo is None
    ]
    problems += [
        Problem(name, f"must be between the years {_FIRST_YEAR} and {_LAST_YEAR}", code="out_of_range")
        for name, moment in given.items()
        if not _FIRST_YEAR <= moment.year <= _LAST_YEAR
    ]
    _refuse(problems)


def _require_counts(most: int, **counts: int | None) -> None:
    _refuse(
        [
            Problem(name, f"must be between 0 and {most}", code="out_of_range")
            for name, count in counts.items()
            if count is not None and not 0 <= count <= most
        ]
    )


def _refuse(problems: Sequence[Problem]) -> None:
    if problems:
        raise Refused(f"{problems[0].where} {problems[0].message}.", problems=problems)


def _actor(controlled_by: str | int | None) -> str:
    if controlled_by is None:
        return "system"
    return controlled_by if isinstance(controlled_by, str) else f"officer:{controlled_by}"
