"""The state machine: functions of a row, its policy and the moment. Every store runs this and nothing else.

The moves are one table. Whatever is not in it leaves the state as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from effaced.breakers.model import (
    BreakerEvent,
    BreakerRole,
    BreakerState,
    CircuitBreakerStateData,
    Slot,
    Transition,
)
from effaced.breakers.outcomes import Outcome, OutcomeKind
from effaced.breakers.policy import BreakerPolicy

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
_E = BreakerEvent

TRANSITIONS: dict[tuple[BreakerState, BreakerEvent], BreakerState] = {
    (CLOSED, _E.CONSECUTIVE_FAILURES): OPEN,
    (CLOSED, _E.ROLLING_FAILURES): OPEN,
    (OPEN, _E.TRIAL_STARTED): HALF_OPEN,
    (HALF_OPEN, _E.TRIAL_FAILED): OPEN,
    (HALF_OPEN, _E.TRIALS_SUCCEEDED): CLOSED,
    **{(state, _E.FORCED_OPEN): OPEN for state in BreakerState},
    **{(state, _E.FORCED_CLOSED): CLOSED for state in BreakerState},
    **{(state, _E.RESET): CLOSED for state in BreakerState},
    # After a shared store was away: what was known meanwhile, where it is the more restrictive.
    (CLOSED, _E.KNOWN_OPEN): OPEN,
    (HALF_OPEN, _E.KNOWN_OPEN): OPEN,
    (CLOSED, _E.KNOWN_HALF_OPEN): HALF_OPEN,
}
ASSIGNED = "assigned"
MANUAL = (_E.FORCED_OPEN, _E.FORCED_CLOSED, _E.RESET)


@dataclass(frozen=True, slots=True)
class Step:
    """What an event has made of a row."""

    data: CircuitBreakerStateData
    transition: Transition | None = None


# --- trials ---


def live_slots(data: CircuitBreakerStateData, policy: BreakerPolicy, now: datetime) -> tuple[Slot, ...]:
    """The slots whose callers can still be alive: a call ends long before the stuck timeout."""
    oldest = now - timedelta(seconds=policy.stuck_timeout_s)
    return tuple(slot for slot in data.slots if slot.since >= oldest)


def take_slots(
    data: CircuitBreakerStateData, policy: BreakerPolicy, role: BreakerRole, now: datetime, number: int
) -> Step:
    """Start so many trials. That there is room for them is for the caller to know."""
    step = Step(data)
    if data.state is OPEN:
        step = _move(replace(data, success_count=0, slots=()), _E.TRIAL_STARTED, now)
    data, live = step.data, live_slots(step.data, policy, now)
    taken = tuple(Slot(data.slots_given + each, role, now) for each in range(1, number + 1))
    # A worker died in the middle of a trial: what went well before it is no sign any more.
    stuck = len(live) < len(data.slots)
    data = replace(
        data,
        slots=live + taken,
        slots_given=data.slots_given + number,
        success_count=0 if stuck else data.success_count,
    )
    return Step(data, step.transition)


def free_slots(data: CircuitBreakerStateData, numbers: tuple[int, ...], most: int) -> CircuitBreakerStateData:
    """Free so many of those slots; one that is free already is not freed again."""
    gone = [slot.number for slot in data.slots if slot.number in numbers][:most]
    return replace(data, slots=tuple(s for s in data.slots if s.number not in gone)) if gone else data


# --- outcomes ---


def count(
    data: CircuitBreakerStateData,
    policy: BreakerPolicy,
    outcome: Outcome,
    now: datetime,
    *,
    chance: float = 0.0,
) -> Step:
    """One outcome, of a call of this generation. `chance`, 0 to 1, is how much of the jitter is waited."""
    if outcome.kind is OutcomeKind.SUCCESS:
        return _count_success(data, policy, now)
    if outcome.kind is OutcomeKind.FAILURE:
        return _count_failure(_cool_down(data, policy, outcome, now), policy, now, chance)
    return Step(data)


def _count_success(data: CircuitBreakerStateData, policy: BreakerPolicy, now: datetime) -> Step:
    if data.state is CLOSED:
        return Step(replace(data, failure_count=0) if data.failure_count else data)
    if data.state is OPEN:
        return Step(data)
    data = replace(data, success_count=data.success_count + 1)
    if data.success_count < policy.success_threshold:
        return Step(data)
    return _move(_calm(data), _E.TRIALS_SUCCEEDED, now)


def _count_failure(
    data: CircuitBreakerStateData, policy: BreakerPolicy, now: datetime, chance: float
) -> Step:
    data = replace(data, failure_count=data.failure_count + 1, last_failure_at=now)
    if data.state is HALF_OPEN:
        doubled = 2 * (data.reset_timeout_s or policy.reset_timeout_s)
        wait = min(doubled, policy.max_reset_timeout_s)
        return _open(data, _E.TRIAL_FAILED, policy, wait, now, chance)
    if data.state is OPEN:
        return Step(data)
    rolling = policy.rolling
    if rolling.enabled:
        oldest = now - timedelta(seconds=rolling.window_s)
        recent = (*(at for at in data.recent_failures if at > oldest), now)
        data = replace(data, recent_failures=recent[-rolling.threshold_failures :])
    if data.failure_count >= policy.fail_max:
        return _open(data, _E.CONSECUTIVE_FAILURES, policy, policy.reset_timeout_s, now, chance)
    if rolling.enabled and len(data.recent_failures) >= rolling.threshold_failures:
        return _open(data, _E.ROLLING_FAILURES, policy, rolling.cooldown_s, now, chance)
    return Step(data)


def _cool_down(
    data: CircuitBreakerStateData, policy: BreakerPolicy, outcome: Outcome, now: datetime
) -> CircuitBreakerStateData:
    """Keep to the vendor's Retry-After, up to the cap. The later of two moments holds."""
    if outcome.retry_after is None or outcome.status not in (429, 503) or outcome.retry_after <= timedelta(0):
        return data
    until = now + min(outcome.retry_after, timedelta(seconds=policy.retry_after_cap_s))
    if data.cooldown_until is not None and data.cooldown_until >= until:
        return data
    return replace(data, cooldown_until=until, cooldown_reason="retry_after")


def _open(
    data: CircuitBreakerStateData,
    event: BreakerEvent,
    policy: BreakerPolicy,
    wait: float,
    now: datetime,
    chance: float,
) -> Step:
    data = replace(
        data,
        opened_at=now,
        retry_at=now + timedelta(seconds=wait, milliseconds=chance * policy.jitter_ms),
        reset_timeout_s=wait,
        success_count=0,
        recent_failures=(),
        slots=(),
    )
    return _move(data, event, now)


def _calm(data: CircuitBreakerStateData) -> CircuitBreakerStateData:
    return replace(
        data,
        failure_count=0,
        success_count=0,
        opened_at=None,
        retry_at=None,
        reset_timeout_s=None,
        recent_failures=(),
        slots=(),
    )


# --- what people do ---


def force(
    data: CircuitBreakerStateData,
    state: BreakerState,
    now: datetime,
    *,
    until: datetime | None,
    actor: str,
    reason: str | None = None,
) -> Step:
    """Pin it. Closed ends a cooldown too; when a pin to open ends, the way back is a trial."""
    pin: dict[str, object] = {
        "pinned": state,
        "controlled_by": actor,
        "control_reason": reason,
        "expires_at": until,
    }
    if state is OPEN:
        pin |= {"opened_at": now, "retry_at": until}
    else:
        pin |= {"cooldown_until": None, "cooldown_reason": None}
    event = _E.FORCED_OPEN if state is OPEN else _E.FORCED_CLOSED
    return _move(replace(_calm(data), **pin), event, now, actor)  # type: ignore[arg-type]


def reset(data: CircuitBreakerStateData, now: datetime, *, actor: str) -> Step:
    """As if nothing had happened: counters, pin and cooldown are gone."""
    calm = _calm(unpin(data))
    calm = replace(calm, last_failure_at=None, cooldown_until=None, cooldown_reason=None)
    return _move(calm, _E.RESET, now, actor)


def unpin(data: CircuitBreakerStateData, *, preserve_reason: bool = False) -> CircuitBreakerStateData:
    """Let it go its own way again: from pinned open with a trial, which may start at once."""
    kept = data.control_reason if preserve_reason else None
    was_open = data.pinned is OPEN and data.state is OPEN
    data = replace(data, pinned=None, controlled_by=None, expires_at=None, control_reason=kept)
    return replace(data, retry_at=None) if was_open else data


def assign(data: CircuitBreakerStateData, state: BreakerState, now: datetime) -> Step:
    """Simply be in that state, past the table: for whoever administers a store."""
    if data.state is state:
        return Step(data)
    if state is OPEN:
        data = replace(data, opened_at=now)
    moved = replace(data, state=state, generation=data.generation + 1, reason=ASSIGNED)
    return Step(
        moved, Transition(data.service_name, data.state, state, ASSIGNED, now, generation=moved.generation)
    )


def tidied(data: CircuitBreakerStateData, now: datetime) -> CircuitBreakerStateData:
    """Without a pin and a cooldown that are over. Done whenever a row is written anyway."""
    if data.pinned is not None and not data.is_pinned(now):
        data = replace(data, pinned=None, controlled_by=None, control_reason=None, expires_at=None)
    if data.cooldown_until is not None and data.cooldown_until <= now:
        data = replace(data, cooldown_until=None, cooldown_reason=None)
    return data


# --- what another place knows ---


def adopt(data: CircuitBreakerStateData, known: CircuitBreakerStateData, now: datetime) -> Step:
    """Be as restrictive as `known` is, with its waits and its pin. It is the more restrictive one."""
    event = _E.KNOWN_OPEN if known.state is OPEN else _E.KNOWN_HALF_OPEN
    step = _move(data, event, now)
    kept = replace(
        known,
        state=step.data.state,
        generation=step.data.generation,
        version=data.version,
        reason=step.data.reason,
        slots=(),
        slots_given=max(data.slots_given, known.slots_given),
    )
    kept = cooled(kept, data)
    assert step.transition is not None
    pin = kept.expires_at if kept.pinned is not None else None
    told = replace(
        step.transition, reset_timeout_s=kept.reset_timeout_s, retry_at=kept.retry_at, pinned_until=pin
    )
    return Step(kept, told)


def cooled(data: CircuitBreakerStateData, other: CircuitBreakerStateData) -> CircuitBreakerStateData:
    """With the other's cooldown, if that ends later."""
    if other.cooldown_until is None or (data.cooldown_until or other.cooldown_until) > other.cooldown_until:
        return data
    return replace(data, cooldown_until=other.cooldown_until, cooldown_reason=other.cooldown_reason)


def obey(data: CircuitBreakerStateData, known: CircuitBreakerStateData) -> CircuitBreakerStateData:
    """Be as a person has had it elsewhere, where that was told already."""
    return replace(
        known,
        version=data.version,
        generation=max(data.generation + 1, known.generation),
        slots=(),
        slots_given=max(data.slots_given, known.slots_given),
    )


def _move(data: CircuitBreakerStateData, event: BreakerEvent, now: datetime, actor: str = "system") -> Step:
    """Along the table. The one place where a state, its generation and its reason change."""
    old, new = data.state, TRANSITIONS[data.state, event]
    moved = replace(data, state=new, generation=data.generation + 1, reason=event.value)
    transition = Transition(
        service_name=data.service_name,
        old=old,
        new=new,
        reason=event.value,
        at=now,
        reset_timeout_s=moved.reset_timeout_s,
        retry_at=moved.retry_at,
        pinned_until=moved.expires_at if event in MANUAL else None,
        actor=actor,
        generation=moved.generation,
    )
    return Step(moved, transition)
