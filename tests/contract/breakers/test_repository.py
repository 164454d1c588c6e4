"""CircuitBreakerStateRepository, statement by statement (B1 to B7), on every store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from breaker_cast import CRM, NOON, registry, seconds

from effaced.breakers.model import BreakerState, CircuitBreakerStateData, Transition
from effaced.breakers.repository import CircuitBreakerStateRepository as Repository
from effaced.breakers.stores.base import BreakerStore
from effaced.core.clock import ManualClock
from effaced.core.errors import Refused

pytestmark = pytest.mark.usefixtures("now")


def half_open(repository: Repository, name: str = CRM, slots: int = 1) -> None:
    repository.update_state(name, "open")
    for _ in range(slots):
        assert repository.try_acquire_half_open_slot(name, limit=slots, stuck_timeout_seconds=60)[0]


def state(repository: Repository, name: str = CRM) -> CircuitBreakerStateData:
    found = repository.get_by_service_name(name)
    assert found is not None
    return found


class TestLooking:
    """B1."""

    def test_an_unknown_name_is_none(self, repository: Repository) -> None:
        assert repository.get_by_service_name("resolver:nobody") is None

    def test_get_or_create_makes_a_closed_one_and_finds_it_again(self, repository: Repository) -> None:
        made = repository.get_or_create(CRM)
        assert (made.state, made.failure_count, made.generation) == (BreakerState.CLOSED, 0, 0)
        assert made == repository.get_or_create(CRM) == repository.get_by_service_name(CRM)

    def test_what_is_read_is_what_was_written(self, repository: Repository, now: ManualClock) -> None:
        repository.update_state(CRM, "open", 3, 1, NOON - seconds(5), NOON - seconds(6), 2)
        found = state(repository)
        assert (found.failure_count, found.success_count, found.half_open_request_count) == (3, 1, 2)
        assert (NOON - seconds(5), NOON - seconds(6)) == (found.opened_at, found.last_failure_at)
        assert (found.updated_at, found.version) == (NOON, 1)


NAMED: dict[str, Callable[[Repository, Any], object]] = {
    "get_or_create": Repository.get_or_create,
    "get_by_service_name": Repository.get_by_service_name,
    "record_failure": Repository.record_failure,
    "record_success": Repository.record_success,
    "record_success_with_close_check": lambda each, name: each.record_success_with_close_check(name, 1),
    "record_failure_with_open_check": lambda each, name: each.record_failure_with_open_check(name, 1),
    "try_acquire_half_open_slot": lambda each, name: each.try_acquire_half_open_slot(name, 1, 60),
    "reset_half_open_count": Repository.reset_half_open_count,
    "update_state": lambda each, name: each.update_state(name, "open"),
    "set_manual_control": lambda each, name: each.set_manual_control(name, "open"),
    "clear_manual_control": Repository.clear_manual_control,
    "reset": Repository.reset,
    "delete_state": Repository.delete_state,
    "atomic_force_open": Repository.atomic_force_open,
    "atomic_force_close": Repository.atomic_force_close,
    "atomic_reset": Repository.atomic_reset,
}


class TestNames:
    """The rule of every other door."""

    def test_every_verb_that_takes_a_name_is_tested_here(self) -> None:
        public = {name for name in vars(Repository) if not name.startswith("_")}
        assert set(NAMED) == public - {"get_all_states", "get_open_states"}

    @pytest.mark.parametrize("verb", NAMED)
    def test_one_that_no_breaker_has_is_refused(self, repository: Repository, verb: str) -> None:
        for name in (
            "crm",
            "host:",
            "resolver:",
            "resolver: ",
            "resolver:a\nb",
            "",
            ":crm",
            "host:" + "a" * 250,
        ):
            with pytest.raises(Refused, match="must be resolver:NAME or host:NAME"):
                NAMED[verb](repository, name)
        assert repository.get_all_states() == []

    @pytest.mark.parametrize("verb", NAMED)
    def test_one_that_is_no_text_is_named_by_its_argument(self, repository: Repository, verb: str) -> None:
        with pytest.raises(TypeError, match="service_name must be a str, not int"):
            NAMED[verb](repository, 5)

    def test_a_host_is_the_same_in_any_case(self, repository: Repository) -> None:
        repository.get_or_create("host:API.example")
        assert repository.delete_state("host:api.EXAMPLE")


class TestSlot:
    """B2: the five branches of acquiring a trial slot, in their order."""

    def test_a_full_window_that_is_stuck_is_begun_anew(
        self, repository: Repository, now: ManualClock
    ) -> None:
        half_open(repository, slots=2)
        repository.record_success(CRM)
        repository.try_acquire_half_open_slot(CRM, 2, 60)
        now.advance(seconds(61))
        assert repository.try_acquire_half_open_slot(CRM, 2, 60) == (True, "half_open", "half_open")
        found = state(repository)
        assert (found.half_open_request_count, found.success_count) == (1, 0)
        assert found.half_open_window_started_at == NOON + seconds(61)

    def test_an_open_one_admits_and_turns_half_open(self, repository: Repository) -> None:
        repository.update_state(CRM, "open", success_count=7)
        assert repository.try_acquire_half_open_slot(CRM, 1, 60) == (True, "open", "half_open")
        found = state(repository)
        assert (
            found.half_open_request_count,
            found.success_count,
            found.half_open_window_started_at,
        ) == (1, 0, NOON)

    def test_a_half_open_one_below_the_limit_admits(self, repository: Repository) -> None:
        half_open(repository)
        assert repository.try_acquire_half_open_slot(CRM, 2, 60) == (True, "half_open", "half_open")
        assert state(repository).half_open_request_count == 2

    def test_a_full_one_refuses_within_the_window(self, repository: Repository, now: ManualClock) -> None:
        half_open(repository)
        now.advance(seconds(60))
        assert repository.try_acquire_half_open_slot(CRM, 1, 60) == (False, "half_open", "half_open")
        assert state(repository).half_open_request_count == 1

    def test_a_closed_one_is_left_alone(self, repository: Repository) -> None:
        repository.get_or_create(CRM)
        assert repository.try_acquire_half_open_slot(CRM, 1, 60) == (False, "closed", "closed")

    def test_a_pinned_one_is_left_alone(self, repository: Repository) -> None:
        repository.atomic_force_open(CRM)
        assert repository.try_acquire_half_open_slot(CRM, 1, 60) == (False, "open", "open")

    def test_a_trial_that_was_lost_frees_nobody_else_s_slot_when_it_comes_back(
        self, repository: Repository, now: ManualClock
    ) -> None:
        """Only the lost one's slot is given away; the other trial keeps its own."""
        half_open(repository, slots=2)
        repository.record_success(CRM)
        now.advance(seconds(40))
        repository.try_acquire_half_open_slot(CRM, 2, 60)
        now.advance(seconds(40))
        assert repository.try_acquire_half_open_slot(CRM, 2, 60)[0]
        assert not repository.try_acquire_half_open_slot(CRM, 2, 60)[0]


class TestOutcomes:
    """B3 and B7; who sees a transition under many hands is in test_races.py."""

    def test_the_success_that_reaches_the_threshold_closes(self, repository: Repository) -> None:
        half_open(repository, slots=2)
        assert not repository.record_success_with_close_check(CRM, 2).did_close
        attempt = repository.record_success_with_close_check(CRM, 2)
        assert attempt.did_close
        assert (attempt.state.state, attempt.state.half_open_request_count) == (BreakerState.CLOSED, 0)
        assert not repository.record_success_with_close_check(CRM, 2).did_close

    def test_the_failure_that_reaches_the_threshold_opens(self, repository: Repository) -> None:
        assert not repository.record_failure_with_open_check(CRM, 2).did_open
        attempt = repository.record_failure_with_open_check(CRM, 2)
        assert attempt.did_open
        assert (BreakerState.OPEN, NOON, NOON + seconds(60)) == (
            attempt.state.state,
            attempt.state.opened_at,
            attempt.state.retry_at,
        )
        assert not repository.record_failure_with_open_check(CRM, 2).did_open

    def test_one_failure_on_trial_opens_again(self, repository: Repository) -> None:
        half_open(repository)
        assert repository.record_failure_with_open_check(CRM, 5).did_open

    def test_plain_records_count_and_move_nothing(self, repository: Repository) -> None:
        assert [repository.record_failure(CRM).failure_count for _ in range(9)] == list(range(1, 10))
        assert state(repository).state is BreakerState.CLOSED
        assert state(repository).last_failure_at == NOON
        assert repository.record_success(CRM).failure_count == 0
        half_open(repository)
        assert (
            (after := repository.record_success(CRM)).success_count,
            after.state,
        ) == (1, BreakerState.HALF_OPEN)

    def test_one_slot_and_a_threshold_of_two_close_after_two_good_trials(
        self, repository: Repository
    ) -> None:
        """B7: a success frees its slot in the same write, so that the second trial can begin."""
        half_open(repository)
        assert not repository.record_success_with_close_check(CRM, 2).did_close
        assert repository.try_acquire_half_open_slot(CRM, 1, 60)[0]
        assert repository.record_success_with_close_check(CRM, 2).did_close

    def test_a_failure_frees_its_slot_in_the_same_write(self, repository: Repository) -> None:
        half_open(repository)
        assert repository.record_failure_with_open_check(CRM, 5).state.half_open_request_count == 0


class TestForce:
    """B4 and B5."""

    def test_open_creates_it_pins_it_for_90_minutes_and_says_what_it_was(
        self, repository: Repository
    ) -> None:
        assert repository.atomic_force_open(CRM, "maintenance", 7) == (True, "closed", "open")
        found = state(repository)
        assert (
            found.pinned,
            found.controlled_by,
            found.control_reason,
        ) == (BreakerState.OPEN, "officer:7", "maintenance")
        assert found.expires_at == NOON + timedelta(minutes=90)

    def test_close_writes_an_end_of_its_own(self, repository: Repository, now: ManualClock) -> None:
        repository.atomic_force_open(CRM, ttl_minutes=600)
        now.advance(timedelta(minutes=5))
        assert repository.atomic_force_close(CRM) == (True, "open", "closed")
        assert state(repository).expires_at == NOON + timedelta(minutes=95)

    def test_reset_clears_counters_and_pin(self, repository: Repository) -> None:
        repository.record_failure(CRM)
        repository.atomic_force_open(CRM)
        assert repository.atomic_reset(CRM) == (True, "open", "closed")
        found = state(repository)
        assert (
            found.failure_count,
            found.pinned,
            found.expires_at,
            found.opened_at,
        ) == (0, None, None, None)
        assert repository.reset(CRM)

    def test_outcomes_under_a_pin_are_not_counted(self, repository: Repository) -> None:
        repository.atomic_force_close(CRM)
        for _ in range(9):
            assert not repository.record_failure_with_open_check(CRM, 1).did_open
            repository.record_failure(CRM)
        assert (state(repository).state, state(repository).failure_count) == (BreakerState.CLOSED, 0)

    def test_the_end_of_a_pin_is_judged_at_each_look(self, repository: Repository, now: ManualClock) -> None:
        """Nobody has to come and take it away."""
        repository.atomic_force_close(CRM, ttl_minutes=1)
        now.advance(seconds(59))
        assert not repository.record_failure_with_open_check(CRM, 1).did_open
        now.advance(seconds(1))
        assert repository.record_failure_with_open_check(CRM, 1).did_open

    def test_a_reason_that_somebody_typed_has_no_place_here(self, repository: Repository) -> None:
        with pytest.raises(Refused, match="reason"):
            repository.atomic_force_open(CRM, "because Anna called")
        assert repository.get_by_service_name(CRM) is None

    @pytest.mark.parametrize("who", ["Anna from sales", "officer:", "cli; DROP", "intern:1"])
    def test_a_controller_that_is_no_actor_is_refused(self, repository: Repository, who: str) -> None:
        with pytest.raises(Refused, match="actor"):
            repository.set_manual_control(CRM, "open", who)
        assert repository.get_by_service_name(CRM) is None

    def test_a_pin_is_let_go_with_or_without_its_reason(self, repository: Repository) -> None:
        repository.set_manual_control(CRM, "open", "officer:1", "maintenance", NOON + seconds(60))
        assert repository.clear_manual_control(CRM, preserve_reason=True)
        assert (state(repository).pinned, state(repository).control_reason) == (None, "maintenance")
        repository.set_manual_control(CRM, "open", "officer:1", "maintenance", NOON + seconds(60))
        repository.clear_manual_control(CRM)
        assert (state(repository).pinned, state(repository).control_reason) == (None, None)
        assert not repository.clear_manual_control(CRM)

    def test_let_go_from_open_it_comes_back_by_a_trial(self, repository: Repository) -> None:
        repository.atomic_force_open(CRM)
        repository.clear_manual_control(CRM)
        assert repository.try_acquire_half_open_slot(CRM, 1, 60) == (True, "open", "half_open")

    @pytest.mark.parametrize("days", [-1, 0, 31])
    def test_the_end_of_a_pin_is_at_most_30_days_away(self, repository: Repository, days: int) -> None:
        with pytest.raises(Refused, match="expires_at must be in the future and at most 30 days away"):
            repository.set_manual_control(CRM, "open", expires_at=NOON + timedelta(days=days))
        with pytest.raises(Refused, match="expires_at must have a time zone"):
            repository.set_manual_control(CRM, "open", expires_at=NOON.replace(tzinfo=None))
        assert repository.get_by_service_name(CRM) is None

    def test_a_pin_may_have_no_end(self, repository: Repository) -> None:
        assert repository.set_manual_control(CRM, "open")
        assert (state(repository).pinned, state(repository).expires_at) == (BreakerState.OPEN, None)

    def test_half_open_is_no_pin(self, repository: Repository) -> None:
        with pytest.raises(Refused, match="open or closed"):
            repository.set_manual_control(CRM, "half_open")


class TestAdministration:
    """B6."""

    def test_a_state_and_its_slots_change_in_one_write(self, repository: Repository) -> None:
        half_open(repository)
        before = state(repository).version
        assert repository.update_state(CRM, "closed", failure_count=0, reset_half_open_count=True)
        found = state(repository)
        assert (before + 1, BreakerState.CLOSED, 0) == (
            found.version,
            found.state,
            found.half_open_request_count,
        )

    def test_a_state_that_does_not_exist_is_refused(self, repository: Repository) -> None:
        with pytest.raises(Refused, match="half_open"):
            repository.update_state(CRM, "ajar")

    def test_set_to_open_it_blocks_calls_for_the_policy_s_wait(
        self, store: BreakerStore, repository: Repository, now: ManualClock
    ) -> None:
        repository.update_state(CRM, "open")
        calls = registry(store)
        assert (calls.admit("crm").granted, calls.retry_at("crm")) == (0, NOON + seconds(60))
        now.advance(seconds(60))
        assert calls.admit("crm").trial

    def test_a_moment_without_a_time_zone_is_refused(self, repository: Repository) -> None:
        with pytest.raises(Refused, match="time zone"):
            repository.update_state(CRM, "open", opened_at=NOON.replace(tzinfo=None))

    def test_open_ones_come_longest_open_first_and_no_more_than_asked_for(
        self, repository: Repository, now: ManualClock
    ) -> None:
        for name in ("resolver:c", "resolver:a", "resolver:b"):
            repository.update_state(name, "open")
            now.advance(seconds(1))
        repository.get_or_create("resolver:d")
        names = [each.service_name for each in repository.get_open_states()]
        assert names == ["resolver:c", "resolver:a", "resolver:b"]
        assert [each.service_name for each in repository.get_open_states(limit=2)] == names[:2]

    def test_open_given_to_an_open_one_blocks_for_the_whole_wait_again_and_is_told(
        self, store: BreakerStore, now: ManualClock
    ) -> None:
        told: list[Transition] = []
        repository = Repository(store, on_transitions=told.extend)
        repository.update_state(CRM, "open")
        now.advance(seconds(70))
        repository.update_state(CRM, "open")
        assert registry(store).retry_at("crm") == NOON + seconds(130)
        assert [(each.old, each.new, each.reason) for each in told] == [
            ("closed", "open", "assigned"),
            ("open", "open", "assigned"),
        ]

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("failure_count", -5),
            ("success_count", 1_000_001),
            ("half_open_request_count", 101),
            ("half_open_request_count", -1),
            ("opened_at", NOON.replace(year=1)),
            ("last_failure_at", NOON.replace(year=9999)),
        ],
    )
    def test_what_no_breaker_can_have_is_refused(
        self, repository: Repository, field: str, value: Any
    ) -> None:
        with pytest.raises(Refused) as caught:
            repository.update_state(CRM, "closed", **{field: value})
        assert [each.where for each in caught.value.problems] == [field]
        with pytest.raises(TypeError, match=field):
            repository.update_state(CRM, "closed", **{field: "x"})
        assert repository.get_by_service_name(CRM) is None

    def test_all_are_listed_by_name(self, repository: Repository) -> None:
        for name in ("resolver:b", "host:z", "resolver:a"):
            repository.get_or_create(name)
        names = [each.service_name for each in repository.get_all_states()]
        assert names == ["host:z", "resolver:a", "resolver:b"]

    def test_one_is_deleted_once(self, repository: Repository) -> None:
        repository.get_or_create(CRM)
        assert [repository.delete_state(CRM), repository.delete_state(CRM)] == [True, False]
        assert repository.get_by_service_name(CRM) is None

    def test_slots_are_cleared_without_a_move(self, repository: Repository) -> None:
        half_open(repository)
        repository.reset_half_open_count(CRM)
        found = state(repository)
        assert (found.state, found.half_open_request_count) == (BreakerState.HALF_OPEN, 0)
