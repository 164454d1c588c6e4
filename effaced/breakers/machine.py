"""The state machine: pure functions of a row, its policy and the current time. Every store runs these.

All state changes are in one table; an event that is not in it for a state leaves that state as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from effaced.breakers.model import (
    COOLDOWN_ENDED,
    RETRY_AFTER,
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
    **{(state, _E.UNPINNED): state for state in BreakerState},
    **{(state, _E.RESET): CLOSED for state in BreakerState},
    **{(state, _E.DELETED): CLOSED for state in BreakerState},
    # After an outage of a shared store: what a process knew meanwhile, where it is more restrictive.
    (CLOSED, _E.KNOWN_OPEN): OPEN,
    (HALF_OPEN, _E.KNOWN_OPEN): OPEN,
    (CLOSED, _E.KNOWN_HALF_OPEN): HALF_OPEN,
}
ASSIGNED = "assigned"
MANUAL = (_E.FORCED_OPEN, _E.FORCED_CLOSED, _E.UNPINNED, _E.RESET, _E.DELETED)
# Clocks of machines differ by less than this; a start this far in the future means that one was set back.
_CLOCK_TOLERANCE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Step:
    """A row after an event, and the transition to record if there was one."""

    data: CircuitBreakerStateData
    transition: Transition | None = None


# --- trials ---


def live_slots(data: CircuitBreakerStateData, policy: BreakerPolicy, now: datetime) -> tuple[Slot, ...]:
    """The slots whose callers may still be alive: a call ends long before the stuck timeout."""
    oldest = now - timedelta(seconds=policy.stuck_timeout_s)
    return tuple(slot for slot in data.slots if slot.since >= oldest)


def take_slots(
    data: CircuitBreakerStateData, policy: BreakerPolicy, role: BreakerRole, now: datetime, number: int
) -> Step:
    """Start this many trials. The caller has checked that there is room for them."""
    step = Step(data)
    if data.state is OPEN:
        step = _move(replace(data, success_count=0, slots=()), _E.TRIAL_STARTED, now)
    data, live = step.data, live_slots(step.data, policy, now)
    taken = tuple(Slot(data.slots_given + each, role, now) for each in range(1, number + 1))
    # A worker died during a trial, so earlier successes of this half-open phase no longer count.
    stuck = len(live) < len(data.slots)
    data = replace(
        data,
        slots=live + taken,
        slots_given=data.slots_given + number,
        success_count=0 if stuck else data.success_count,
    )
    return Step(data, step.transition)


def free_slots(data: CircuitBreakerStateData, numbers: tuple[int, ...], most: int) -> CircuitBreakerStateData:
    """Free up to `most` of these slots. Slots that are free already are not freed again."""
    gone = [slot.number for slot in data.slots if slot.number in numbers][:most]
    return replace(data, slots=tuple(s for s in data.slots if s.number not in gone)) if gone else data


# --- outcomes ---


def tally(data: CircuitBreakerStateData, kind: OutcomeKind, now: datetime) -> CircuitBreakerStateData:
    """Count one outcome without changing the state."""
    if kind is OutcomeKind.FAILURE:
        return replace(data, failure_count=data.failure_count + 1, last_failure_at=now)
    if kind is OutcomeKind.SUCCESS and data.state is HALF_OPEN:
        return replace(data, success_count=data.success_count + 1)
    if kind is OutcomeKind.SUCCESS and data.state is CLOSED and data.failure_count:
        return replace(data, failure_count=0)
    return data


def count(
    data: CircuitBreakerStateData,
    policy: BreakerPolicy,
    outcome: Outcome,
    now: datetime,
    *,
    jitter: float = 0.0,
) -> Step:
    """Count an outcome of a call of this generation. `jitter`, 0 to 1, is a share of the policy's."""
    if outcome.kind is OutcomeKind.FAILURE:
        held = _obey_retry_after(data, policy, outcome, now)
        step = _count_failure(tally(held, outcome.kind, now), policy, now, jitter)
        return step if step.transition or held is data else Step(step.data, _hold(step.data, now))
    data = tally(data, outcome.kind, now)
    trial_succeeded = outcome.kind is OutcomeKind.SUCCESS and data.state is HALF_OPEN
    if trial_succeeded and data.success_count >= policy.success_threshold:
        return _move(_cleared(data), _E.TRIALS_SUCCEEDED, now)
    return Step(data)


def _count_failure(
    data: CircuitBreakerStateData, policy: BreakerPolicy, now: datetime, jitter: float
) -> Step:
    if data.state is HALF_OPEN:
        doubled = 2 * (data.reset_timeout_s or policy.reset_timeout_s)
        wait = min(doubled, policy.max_reset_timeout_s)
        return _open(data, _E.TRIAL_FAILED, policy, wait, now, jitter)
    if data.state is OPEN:
        return Step(data)
    rolling = policy.rolling
    if rolling.enabled:
        oldest = now - timedelta(seconds=rolling.window_s)
        recent = (*(at for at in data.recent_failures if at > oldest), now)
        data = replace(data, recent_failures=recent[-rolling.threshold_failures :])
    if data.failure_count >= policy.fail_max:
        return _open(data, _E.CONSECUTIVE_FAILURES, policy, policy.reset_timeout_s, now, jitter)
    if rolling.enabled and len(data.recent_failures) >= rolling.threshold_failures:
        return _open(data, _E.ROLLING_FAILURES, policy, rolling.cooldown_s, now, jitter)
    return Step(data)


def _obey_retry_after(
    data: CircuitBreakerStateData, policy: BreakerPolicy, outcome: Outcome, now: datetime
) -> CircuitBreakerStateData:
    """Set the cooldown that a 429 or 503 asks for, up to the cap. A longer one that is running stays."""
    if outcome.retry_after is None or outcome.status not in (429, 503) or outcome.retry_after <= timedelta(0):
        return data
    return hold(data, policy, outcome.retry_after, now).data


def _hold(data: CircuitBreakerStateData, now: datetime) -> Transition:
    """The record of a hold. Not a state change, so the generation stays: calls still count."""
    return Transition(
        data.service_name,
        data.state,
        data.state,
        RETRY_AFTER,
        now,
        retry_at=data.cooldown_until,
        generation=data.generation,
        **_pin(data, now),
    )


def _open(
    data: CircuitBreakerStateData,
    event: BreakerEvent,
    policy: BreakerPolicy,
    wait: float,
    now: datetime,
    jitter: float,
) -> Step:
    data = replace(
        data,
        opened_at=now,
        retry_at=now + timedelta(seconds=wait, milliseconds=jitter * policy.jitter_ms),
        reset_timeout_s=wait,
        success_count=0,
        recent_failures=(),
        slots=(),
    )
    return _move(data, event, now)


def _cleared(data: CircuitBreakerStateData) -> CircuitBreakerStateData:
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


# --- cooldowns ---


def hold(
    data: CircuitBreakerStateData,
    policy: BreakerPolicy,
    wait: timedelta,
    now: datetime,
    reason: str = RETRY_AFTER,
) -> Step:
    """Allow no call for that long, up to the policy's cap, whatever the state. A longer cooldown that is
    running stays."""
    until = now + min(wait, timedelta(seconds=policy.retry_after_cap_s))
    if until <= now or (data.cooldown_until is not None and data.cooldown_until >= until):
        return Step(data)
    data = replace(data, cooldown_since=now, cooldown_until=until, cooldown_reason=reason)
    return Step(data, _hold(data, now))


def release(data: CircuitBreakerStateData, now: datetime) -> Step:
    """End the cooldown early. Like a hold it is told and is no state change."""
    if not data.is_cooling(now):
        return Step(end_cooldown(data))
    data = end_cooldown(data)
    ended = replace(
        _hold(data, now),
        reason=COOLDOWN_ENDED,
        reset_timeout_s=data.reset_timeout_s,
        retry_at=data.retry_at or now if data.state is OPEN else None,
    )
    return Step(data, ended)


def end_cooldown(data: CircuitBreakerStateData) -> CircuitBreakerStateData:
    return replace(data, cooldown_since=None, cooldown_until=None, cooldown_reason=None)


def longer_cooldown(data: CircuitBreakerStateData, other: CircuitBreakerStateData) -> CircuitBreakerStateData:
    """With the other row's cooldown, if that ends later."""
    if other.cooldown_until is None or (data.cooldown_until or other.cooldown_until) > other.cooldown_until:
        return data
    return replace(
        data,
        cooldown_since=other.cooldown_since,
        cooldown_until=other.cooldown_until,
        cooldown_reason=other.cooldown_reason,
    )


# --- manual control ---


def force(
    data: CircuitBreakerStateData,
    state: BreakerState,
    now: datetime,
    *,
    until: datetime | None,
    actor: str,
    reason: str | None = None,
) -> Step:
    """Pin it. Pinning it closed ends a cooldown too; a pin to open ends with a trial."""
    data = replace(_cleared(data), pinned=state, controlled_by=actor, control_reason=reason, expires_at=until)
    if state is OPEN:
        return _move(replace(data, opened_at=now, retry_at=until), _E.FORCED_OPEN, now, actor)
    return _move(end_cooldown(data), _E.FORCED_CLOSED, now, actor)


def unpin(data: CircuitBreakerStateData, now: datetime, *, actor: str, preserve_reason: bool = False) -> Step:
    """Remove the pin and keep the state. From pinned open, a trial may start at once."""
    data = replace(_unpinned(data, preserve_reason), retry_at=None if data.pinned is OPEN else data.retry_at)
    return _move(data, _E.UNPINNED, now, actor)


def reset(data: CircuitBreakerStateData, now: datetime, *, actor: str) -> Step:
    """Close it and clear counters, pin and cooldown."""
    data = replace(end_cooldown(_cleared(_unpinned(data))), last_failure_at=None)
    return _move(data, _E.RESET, now, actor)


def delete(data: CircuitBreakerStateData, now: datetime, *, actor: str) -> Step:
    """Record that it is deleted. The row of the step is not to be written."""
    return _move(end_cooldown(_cleared(_unpinned(data))), _E.DELETED, now, actor)


def assign(
    data: CircuitBreakerStateData,
    state: BreakerState,
    now: datetime,
    *,
    policy: BreakerPolicy,
    opened_at: datetime | None = None,
) -> Step:
    """Set the state, past the table. Open blocks calls for the policy's wait, counted from `opened_at`; set
    again, for the whole wait again."""
    moved = data.state is not state or state is OPEN
    if state is OPEN:
        opened_at = opened_at or now
        wait = policy.reset_timeout_s
        retry_at = opened_at + timedelta(seconds=wait)
        data = replace(data, opened_at=opened_at, retry_at=retry_at, reset_timeout_s=wait)
    else:
        data = replace(data, retry_at=None, opened_at=opened_at or data.opened_at)
    return _moved(data, state, ASSIGNED, now) if moved else Step(data)


def without_expired(data: CircuitBreakerStateData, now: datetime) -> CircuitBreakerStateData:
    """Without a pin or a cooldown that has ended. Applied whenever a row is written anyway."""
    if data.pinned is not None and not data.is_pinned(now):
        data = _unpinned(data)
    if data.cooldown_until is not None and data.cooldown_until <= now:
        data = end_cooldown(data)
    return data


def _unpinned(data: CircuitBreakerStateData, preserve_reason: bool = False) -> CircuitBreakerStateData:
    reason = data.control_reason if preserve_reason else None
    return replace(data, pinned=None, controlled_by=None, expires_at=None, control_reason=reason)


# --- a clock that was set back ---


def after_clock_set_back(data: CircuitBreakerStateData, now: datetime) -> CircuitBreakerStateData:
    """Restart waits that began in the future, with their length. A pin ends on the date that was named."""
    latest = now + _CLOCK_TOLERANCE
    if data.state is OPEN and data.pinned is None and data.opened_at is not None and data.opened_at > latest:
        retry_at = data.retry_at and data.retry_at - (data.opened_at - now)
        data = replace(data, opened_at=now, retry_at=retry_at)
    since, until = data.cooldown_since, data.cooldown_until
    if since is not None and until is not None and since > latest:
        data = replace(data, cooldown_since=now, cooldown_until=until - (since - now))
    if any(slot.since > latest for slot in data.slots):
        data = replace(data, slots=tuple(replace(slot, since=min(slot.since, now)) for slot in data.slots))
    if any(at > latest for at in data.recent_failures):
        data = replace(data, recent_failures=tuple(min(at, now) for at in data.recent_failures))
    return data


# --- what another copy of the row knows ---


def adopt(data: CircuitBreakerStateData, known: CircuitBreakerStateData, now: datetime) -> Step:
    """Take over state, waits and pin of `known`, which is the more restrictive row."""
    event = _E.KNOWN_OPEN if known.state is OPEN else _E.KNOWN_HALF_OPEN
    adopted = replace(
        longer_cooldown(known, data),
        state=data.state,
        generation=data.generation,
        version=data.version,
        slots=(),
        slots_given=max(data.slots_given, known.slots_given),
    )
    return _move(adopted, event, now)


def replace_with(data: CircuitBreakerStateData, known: CircuitBreakerStateData) -> CircuitBreakerStateData:
    """Take over a row that a person changed elsewhere. Its transition has been recorded already."""
    return replace(
        known,
        version=data.version,
        generation=max(data.generation + 1, known.generation),
        slots=(),
        slots_given=max(data.slots_given, known.slots_given),
    )


def _move(data: CircuitBreakerStateData, event: BreakerEvent, now: datetime, actor: str = "system") -> Step:
    return _moved(data, TRANSITIONS[data.state, event], event.value, now, actor)


def _moved(
    data: CircuitBreakerStateData, new: BreakerState, reason: str, now: datetime, actor: str = "system"
) -> Step:
    """The one place where a state, its generation and its reason change."""
    moved = replace(data, state=new, generation=data.generation + 1, reason=reason)
    ends = [at for at in (moved.retry_at, moved.cooldown_until) if at is not None and new is OPEN]
    transition = Transition(
        service_name=data.service_name,
        old=data.state,
        new=new,
        reason=reason,
        at=now,
        reset_timeout_s=moved.reset_timeout_s,
        retry_at=max(ends, default=None),
        actor=actor,
        generation=moved.generation,
        **_pin(moved, now),
    )
    return Step(moved, transition)


def _pin(data: CircuitBreakerStateData, now: datetime) -> dict[str, Any]:
    """What a transition says about the pin."""
    if not data.is_pinned(now):
        return {}
    return {"pinned_until": data.expires_at, "control_reason": data.control_reason}
