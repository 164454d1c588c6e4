"""May calls be made? The order of decisions: pin, cooldown, host, resolver, half-open budget."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from effaced.breakers.admission import (
    BUDGET,
    COOLDOWN,
    PINNED,
    Hold,
    admit,
    blocked,
    effective_state,
    free_trials,
    record,
)
from effaced.breakers.model import BreakerRole, BreakerState, CircuitBreakerStateData
from effaced.breakers.outcomes import SUCCESS, Outcome, OutcomeKind
from effaced.breakers.policy import BreakerPolicy

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
SOON, LATER = NOON + timedelta(minutes=1), NOON + timedelta(hours=1)
POLICY = BreakerPolicy(trial_calls=2)
CRM = CircuitBreakerStateData("resolver:crm")
HOST = CircuitBreakerStateData("host:api.example")
FAILURE = Outcome(OutcomeKind.FAILURE)


def opened(row: CircuitBreakerStateData, until: datetime) -> CircuitBreakerStateData:
    return replace(row, state=BreakerState.OPEN, retry_at=until, reason="consecutive_failures", generation=1)


def pinned(row: CircuitBreakerStateData, state: BreakerState) -> CircuitBreakerStateData:
    return replace(row, pinned=state, expires_at=LATER)


def test_closed_breakers_admit_all_calls_without_a_trial() -> None:
    verdict = admit([HOST, CRM], [POLICY, POLICY], BreakerRole.ERASE, NOON, 10)
    assert (verdict.granted, verdict.trial, verdict.block) == (10, False, None)
    assert verdict.holds == (Hold("host:api.example", 0), Hold("resolver:crm", 0))


def test_a_pin_blocks_before_a_cooldown_and_a_cooldown_before_an_open_state() -> None:
    cooling = replace(CRM, cooldown_until=SOON)
    found = [
        blocked([opened(HOST, LATER), pinned(CRM, BreakerState.OPEN)], NOON),
        blocked([opened(HOST, LATER), cooling], NOON),
        blocked([opened(HOST, LATER), opened(CRM, SOON)], NOON),
    ]
    assert [each and (each.service_name, each.reason) for each in found] == [
        ("resolver:crm", PINNED),
        ("resolver:crm", COOLDOWN),
        ("host:api.example", "consecutive_failures"),
    ]


def test_a_block_lasts_until_the_last_of_them_ends() -> None:
    block = blocked([opened(HOST, SOON), opened(CRM, LATER)], NOON)
    assert block is not None
    assert block.until == LATER


def test_a_resolver_pinned_closed_does_not_get_past_an_open_host() -> None:
    verdict = admit(
        [opened(HOST, LATER), pinned(CRM, BreakerState.CLOSED)], [POLICY, POLICY], BreakerRole.ERASE, NOON
    )
    assert verdict.block is not None
    assert verdict.block.service_name == "host:api.example"


def test_trials_take_slots_in_both_breakers_and_no_more_than_the_smaller_budget() -> None:
    rows = [opened(HOST, NOON), opened(CRM, NOON)]
    verdict = admit(rows, [BreakerPolicy(trial_calls=1), POLICY], BreakerRole.ERASE, NOON, 5)
    assert (verdict.granted, verdict.trial) == (1, True)
    assert [len(row.slots) for row in verdict.rows] == [1, 1]


def test_a_used_up_budget_blocks_this_role_only() -> None:
    started = admit([opened(CRM, NOON)], [POLICY], BreakerRole.ERASE, NOON, 2).rows
    denied = admit(started, [POLICY], BreakerRole.ERASE, NOON)
    assert denied.block is not None
    assert denied.block.reason == BUDGET
    assert admit(started, [POLICY], BreakerRole.VERIFY, NOON).granted == 1
    assert free_trials(started[0], POLICY, BreakerRole.ERASE, NOON) == 0


def test_a_result_from_before_the_last_transition_does_not_count() -> None:
    row, made = record(CRM, BreakerPolicy(fail_max=1), Hold("resolver:crm", 7), [FAILURE], NOON)
    assert (row, made) == (CRM, ())


def test_results_under_a_pin_do_not_count() -> None:
    held = pinned(CRM, BreakerState.CLOSED)
    assert record(held, BreakerPolicy(fail_max=1), Hold("resolver:crm", 0), [FAILURE], NOON) == (held, ())


def test_outcomes_count_in_order_until_one_of_them_moves_the_breaker() -> None:
    row, made = record(
        CRM, BreakerPolicy(fail_max=2), Hold("resolver:crm", 0), [SUCCESS, FAILURE, FAILURE, FAILURE], NOON
    )
    assert ([each.new for each in made], row.failure_count) == ([BreakerState.OPEN], 2)


def test_the_effective_state_is_the_pins_until_it_ends() -> None:
    held = pinned(opened(CRM, LATER), BreakerState.CLOSED)
    assert effective_state(held, NOON) is BreakerState.CLOSED
    assert effective_state(held, LATER) is BreakerState.OPEN
