"""Pure rules over the breakers of a host and a resolver: may calls be made, and what do results change.

The order of decisions: pin, cooldown, host, resolver, half-open budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from effaced.breakers.machine import CLOSED, HALF_OPEN, OPEN, Step, count, free_slots, live_slots, take_slots
from effaced.breakers.model import BreakerRole, BreakerState, CircuitBreakerStateData, Transition
from effaced.breakers.outcomes import Outcome
from effaced.breakers.policy import BreakerPolicy

PINNED, COOLDOWN, BUDGET = "pinned", "cooldown", "half_open_budget"
# When to ask again while the half-open budget is used up, and while a pin without an end holds.
BUDGET_RETRY = timedelta(seconds=1)
PIN_RETRY = timedelta(minutes=15)
_FIRST = (PINNED, COOLDOWN)


class Hold(NamedTuple):
    """What an admission took from one breaker. Without a generation results don't count: pinned closed."""

    service_name: str
    generation: int | None
    slots: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Which breaker blocks, why, and until when."""

    service_name: str
    reason: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many calls may be made, or what blocks them. `rows` are those that starting a trial changed."""

    granted: int
    holds: tuple[Hold, ...] = ()
    block: Block | None = None
    trial: bool = False
    rows: tuple[CircuitBreakerStateData, ...] = ()
    transitions: tuple[Transition, ...] = ()


def effective_state(data: CircuitBreakerStateData, now: datetime) -> BreakerState:
    """The state that holds now: the pin's, if it is pinned."""
    return data.pinned if data.pinned is not None and data.is_pinned(now) else data.state


def blocked(rows: Sequence[CircuitBreakerStateData], now: datetime) -> Block | None:
    """What blocks first, until the last block ends. None if calls, or trials, may go out."""
    blocks = [found for row in rows if (found := _block(row, now)) is not None]
    if not blocks:
        return None
    first = min(blocks, key=lambda each: _FIRST.index(each.reason) if each.reason in _FIRST else len(_FIRST))
    return Block(first.service_name, first.reason, max(each.until for each in blocks))


def _block(data: CircuitBreakerStateData, now: datetime) -> Block | None:
    if data.is_pinned(now):
        until = data.expires_at or now + PIN_RETRY
        return Block(data.service_name, PINNED, until) if data.pinned is OPEN else None
    if data.cooldown_until is not None and data.cooldown_until > now:
        return Block(data.service_name, COOLDOWN, data.cooldown_until)
    if data.state is OPEN and data.retry_at is not None and data.retry_at > now:
        return Block(data.service_name, data.reason or OPEN.value, data.retry_at)
    return None


def admit(
    rows: Sequence[CircuitBreakerStateData],
    policies: Sequence[BreakerPolicy],
    role: BreakerRole,
    now: datetime,
    most: int = 1,
) -> Verdict:
    """Admit up to `most` calls. Rows come host first; slots are taken in all of them or in none."""
    block = blocked(rows, now)
    if block is not None:
        return Verdict(0, block=block)
    granted, trial = most, False
    for row, policy in zip(rows, policies, strict=True):
        if _needs_trial(row, now):
            trial = True
            granted = min(granted, free_trials(row, policy, role, now))
            if granted <= 0:
                return Verdict(0, block=Block(row.service_name, BUDGET, now + BUDGET_RETRY))
    if not trial:
        return Verdict(granted, tuple(_hold(row, now) for row in rows))
    steps = [
        take_slots(row, policy, role, now, granted) if _needs_trial(row, now) else Step(row)
        for row, policy in zip(rows, policies, strict=True)
    ]
    return Verdict(
        granted,
        tuple(_hold(step.data, now, row.slots_given) for row, step in zip(rows, steps, strict=True)),
        trial=True,
        rows=tuple(step.data for step in steps),
        transitions=tuple(step.transition for step in steps if step.transition is not None),
    )


def acquire(
    data: CircuitBreakerStateData, policy: BreakerPolicy, role: BreakerRole, now: datetime
) -> tuple[bool, Step]:
    """Take one trial slot of one breaker. The caller has checked that its wait is over."""
    if not _needs_trial(data, now) or free_trials(data, policy, role, now) <= 0:
        return False, Step(data)
    return True, take_slots(data, policy, role, now, 1)


def record(
    data: CircuitBreakerStateData,
    policy: BreakerPolicy,
    hold: Hold,
    outcomes: Sequence[Outcome],
    now: datetime,
    *,
    unused: int = 0,
    jitter: float = 0.0,
) -> tuple[CircuitBreakerStateData, tuple[Transition, ...]]:
    """Apply outcomes in order. Each frees its slot; unused slots are freed too."""
    # A transition frees all slots; one with the same number would belong to a later admission.
    if hold.slots and hold.generation == data.generation:
        data = free_slots(data, hold.slots, len(outcomes) + unused)
    transitions = []
    for outcome in outcomes:
        if hold.generation != data.generation or data.is_pinned(now):
            break  # from before the last transition, or under a pin: does not count
        step = count(data, policy, outcome.for_breaker(data.service_name), now, jitter=jitter)
        data = step.data
        if step.transition is not None:
            transitions.append(step.transition)
    return data, tuple(transitions)


def has_room(data: CircuitBreakerStateData, policy: BreakerPolicy, role: BreakerRole, now: datetime) -> bool:
    """Whether the half-open budget, if it applies, has room for a call of this role."""
    return not _needs_trial(data, now) or free_trials(data, policy, role, now) > 0


def free_trials(
    data: CircuitBreakerStateData, policy: BreakerPolicy, role: BreakerRole, now: datetime
) -> int:
    """The half-open budget that is left for a role. Slots of lost trials are free again."""
    if data.state is not HALF_OPEN:
        return policy.trial_calls
    return policy.trial_calls - sum(slot.role is role for slot in live_slots(data, policy, now))


def _needs_trial(data: CircuitBreakerStateData, now: datetime) -> bool:
    return data.state is not CLOSED and not data.is_pinned(now)


def _hold(data: CircuitBreakerStateData, now: datetime, given_before: int | None = None) -> Hold:
    if data.is_pinned(now):
        return Hold(data.service_name, None)
    first = data.slots_given if given_before is None else given_before
    return Hold(data.service_name, data.generation, tuple(range(first + 1, data.slots_given + 1)))
