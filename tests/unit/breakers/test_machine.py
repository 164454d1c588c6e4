"""The table of moves, walked completely, and the rules that lead to them."""

from __future__ import annotations

import itertools
import re
from datetime import timedelta
from pathlib import Path

import pytest
from breaker_cast import CRM, FAILURE, NOON, SUCCESS, is_open, seconds

from effaced.breakers import machine
from effaced.breakers.machine import TRANSITIONS, Step
from effaced.breakers.model import BreakerEvent, BreakerRole, BreakerState, CircuitBreakerStateData
from effaced.breakers.policy import BreakerPolicy

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
ONE = BreakerPolicy(fail_max=1)
ROLLING = BreakerPolicy(
    fail_max=9, rolling={"enabled": True, "threshold_failures": 2, "window_s": 30, "cooldown_s": 60}
)
DOCS = Path(__file__).parents[3] / "docs" / "reference" / "breakers.md"


def at(state: BreakerState) -> CircuitBreakerStateData:
    return CircuitBreakerStateData(CRM, state=state, generation=4, version=1)


def cause(event: BreakerEvent, data: CircuitBreakerStateData) -> Step:
    """Have happen to a breaker what the event is the name of."""
    match event:
        case BreakerEvent.CONSECUTIVE_FAILURES:
            return machine.count(data, ONE, FAILURE, NOON)
        case BreakerEvent.ROLLING_FAILURES:
            once = machine.count(data, ROLLING, FAILURE, NOON).data
            return machine.count(once, ROLLING, FAILURE, NOON)
        case BreakerEvent.TRIAL_STARTED:
            return machine.take_slots(data, ONE, BreakerRole.ERASE, NOON, 1)
        case BreakerEvent.TRIAL_FAILED:
            return machine.count(data, ROLLING, FAILURE, NOON)
        case BreakerEvent.TRIALS_SUCCEEDED:
            return machine.count(data, ONE, SUCCESS, NOON)
        case BreakerEvent.FORCED_OPEN:
            return machine.force(data, OPEN, NOON, until=None, actor="cli")
        case BreakerEvent.FORCED_CLOSED:
            return machine.force(data, CLOSED, NOON, until=None, actor="cli")
        case BreakerEvent.UNPINNED:
            return machine.unpin(data, NOON, actor="cli")
        case BreakerEvent.DELETED:
            return machine.delete(data, NOON, actor="cli")
        case BreakerEvent.RESET:
            return machine.reset(data, NOON, actor="cli")
        case BreakerEvent.KNOWN_OPEN:
            return machine.adopt(data, at(OPEN), NOON)
        case BreakerEvent.KNOWN_HALF_OPEN:
            return machine.adopt(data, at(HALF_OPEN), NOON)


@pytest.mark.parametrize(("state", "event"), sorted(TRANSITIONS))
def test_every_move_of_the_table_is_made_and_told(state: BreakerState, event: BreakerEvent) -> None:
    step = cause(event, at(state))
    assert step.transition is not None
    assert (state, TRANSITIONS[state, event], event.value) == (
        step.transition.old,
        step.transition.new,
        step.transition.reason,
    )
    assert (step.data.state, step.data.generation) == (step.transition.new, 5)


_KNOWN = (
    BreakerEvent.KNOWN_OPEN,
    BreakerEvent.KNOWN_HALF_OPEN,
)  # asked for only where it is more restrictive
ELSEWHERE = sorted(
    pair
    for pair in itertools.product(BreakerState, BreakerEvent)
    if pair not in TRANSITIONS and pair[1] not in _KNOWN
)


@pytest.mark.parametrize(("state", "event"), ELSEWHERE)
def test_what_is_not_in_the_table_moves_nothing_for_that_reason(
    state: BreakerState, event: BreakerEvent
) -> None:
    """A failure on trial is told as such, and never as one too many in a row."""
    transition = cause(event, at(state)).transition
    assert transition is None or transition.reason != event.value


@pytest.mark.parametrize(("state", "event"), [(s, e) for s in BreakerState for e in _KNOWN])
def test_what_is_known_elsewhere_makes_nothing_less_restrictive(
    state: BreakerState, event: BreakerEvent
) -> None:
    if (state, event) not in TRANSITIONS:
        with pytest.raises(KeyError):
            cause(event, at(state))


def test_the_table_in_the_documents_is_this_one() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `(\w+)` \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    told = {(old, event): new for old, event, new in rows}
    assert told == {(old.value, event.value): new.value for (old, event), new in TRANSITIONS.items()}


class TestMoments:
    def test_recent_failures_are_no_more_than_can_matter(self) -> None:
        policy = BreakerPolicy(
            fail_max=1_000, rolling={"enabled": True, "threshold_failures": 3, "window_s": 1}
        )
        data = CircuitBreakerStateData(CRM)
        for number in range(50):
            data = machine.count(data, policy, FAILURE, NOON + seconds(number * 0.4 + number // 2)).data
        assert len(data.recent_failures) <= 3

    def test_a_pin_and_a_cooldown_that_are_over_go_with_the_next_write(self) -> None:
        data = is_open(pinned=OPEN, expires_at=NOON, controlled_by="cli", cooldown_until=NOON)
        tidy = machine.without_expired(data, NOON)
        assert (tidy.pinned, tidy.controlled_by, tidy.cooldown_until) == (None, None, None)
        assert machine.without_expired(data, NOON - timedelta(seconds=1)) == data

    def test_a_wait_longer_than_the_cap_is_not_doubled(self) -> None:
        policy = BreakerPolicy(reset_timeout_s=800)
        step = machine.count(at(HALF_OPEN), policy, FAILURE, NOON)
        assert step.data.reset_timeout_s == 900
