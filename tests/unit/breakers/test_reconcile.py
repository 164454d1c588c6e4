"""After an outage: what a process knew, what the log says and what the shared store holds become one row."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from breaker_cast import CRM, NOON

from effaced.breakers.layered.drift import DriftReconciler
from effaced.breakers.layered.reconcile import Reconciliation, as_stored, best_known
from effaced.breakers.layered.shadow import ShadowLogger
from effaced.breakers.model import (
    RETRY_AFTER,
    BreakerEvent,
    BreakerRole,
    BreakerState,
    CircuitBreakerStateData,
    Slot,
    Transition,
)
from effaced.breakers.stores.memory import MemoryBreakerStore
from effaced.core.clock import ManualClock

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
BEFORE, LATER = NOON - timedelta(minutes=1), NOON + timedelta(minutes=1)
OTHER = "host:api.example"


def row(state: BreakerState = CLOSED, at: datetime = BEFORE, **values: Any) -> CircuitBreakerStateData:
    return CircuitBreakerStateData(CRM, state, **{"version": 1, "generation": 1, "updated_at": at} | values)


def opened(at: datetime = BEFORE, **values: Any) -> CircuitBreakerStateData:
    return row(
        OPEN,
        at,
        **{"opened_at": at, "retry_at": LATER, "reason": BreakerEvent.CONSECUTIVE_FAILURES, "generation": 2}
        | values,
    )


def logged(reason: BreakerEvent, state: BreakerState, at: datetime, generation: int = 3) -> Any:
    """As the log of transitions has it: without counts, slots and a version."""
    return CircuitBreakerStateData(CRM, state, reason=reason, generation=generation, updated_at=at)


class TestBestKnown:
    def test_is_the_only_one_there_is(self) -> None:
        assert best_known(None, None) is None
        assert best_known(row(), None) == row()
        assert best_known(None, opened()) == opened()

    def test_is_the_more_restrictive_however_old(self) -> None:
        own, log = opened(BEFORE), logged(BreakerEvent.TRIAL_STARTED, HALF_OPEN, LATER)
        assert best_known(own, log) == own
        assert best_known(row(HALF_OPEN, LATER), opened(BEFORE)) == opened(BEFORE)

    def test_of_equal_states_is_the_newer(self) -> None:
        older, newer = opened(BEFORE), opened(LATER, generation=4)
        assert best_known(older, newer) == best_known(newer, older) == newer

    def test_of_one_transition_is_the_own_row_with_its_detail(self) -> None:
        own = opened(failure_count=5)
        log = logged(BreakerEvent.CONSECUTIVE_FAILURES, OPEN, LATER, own.generation)
        assert best_known(own, log) == own

    def test_of_one_transition_keeps_the_longer_cooldown(self) -> None:
        own = row(cooldown_until=NOON, reason=BreakerEvent.RESET)
        log = replace(logged(BreakerEvent.RESET, CLOSED, BEFORE, 1), reason=RETRY_AFTER, cooldown_until=LATER)
        found = best_known(own, log)
        assert found is not None
        assert (found.state, found.version, found.cooldown_until) == (CLOSED, 1, LATER)

    @pytest.mark.parametrize(
        "reason", [BreakerEvent.RESET, BreakerEvent.FORCED_CLOSED, BreakerEvent.UNPINNED]
    )
    def test_is_what_a_person_did_since_even_if_it_is_less_restrictive(self, reason: BreakerEvent) -> None:
        by_hand = logged(reason, CLOSED, NOON)
        assert best_known(opened(BEFORE), by_hand) == by_hand

    def test_is_the_own_row_if_that_is_newer_than_what_a_person_did(self) -> None:
        own = opened(LATER, generation=4)
        assert best_known(own, logged(BreakerEvent.RESET, CLOSED, NOON)) == own

    @pytest.mark.parametrize(
        ("own", "left"), [(None, None), (opened(BEFORE), None), (opened(LATER), opened(LATER))]
    )
    def test_of_a_deleted_breaker_is_only_what_was_made_since(self, own: Any, left: Any) -> None:
        assert best_known(own, logged(BreakerEvent.DELETED, CLOSED, NOON)) == left


@pytest.mark.parametrize(("version", "stored"), [(0, 1), (1, 1), (7, 7)])
def test_a_row_to_be_stored_has_a_version(version: int, stored: int) -> None:
    assert as_stored(row(version=version)).version == stored


@dataclass
class Fleet:
    """A process whose shared store has just come back."""

    memory: MemoryBreakerStore = field(default_factory=MemoryBreakerStore)
    shared: MemoryBreakerStore = field(default_factory=MemoryBreakerStore)
    log: dict[str, CircuitBreakerStateData] = field(default_factory=dict)
    written: list[Transition] = field(default_factory=list)
    synced: list[str] = field(default_factory=list)
    reconciler: DriftReconciler = field(default_factory=lambda: DriftReconciler(0, 0))
    shadow: ShadowLogger = field(default_factory=ShadowLogger)

    def run(self, *names: str) -> int:
        def write(transitions: Any, _records: Any) -> None:
            self.written += transitions

        reconciliation = Reconciliation(
            self.memory, self.shared, lambda _: self.log, write, self.reconciler, self.shadow, None
        )
        return reconciliation.run(names, 0.5, self.synced.append)

    def both(self) -> CircuitBreakerStateData:
        """The row, which memory and shared store have alike."""
        found = self.shared.load([CRM])[CRM]
        assert self.memory.load([CRM])[CRM] == found
        return found


@pytest.fixture
def fleet(noon: ManualClock) -> Fleet:
    return Fleet()


class TestRun:
    def test_of_a_breaker_that_nobody_knows_writes_nothing(self, fleet: Fleet) -> None:
        assert fleet.run(CRM) == 1
        assert (fleet.shared.load_all(), fleet.memory.load_all(), fleet.written) == ([], [], [])

    def test_of_no_breaker_does_nothing(self, fleet: Fleet) -> None:
        fleet.memory.put([opened()])
        assert (fleet.run(), fleet.synced, fleet.shared.load_all()) == (0, [], [])

    def test_writes_a_row_that_the_shared_store_has_lost_as_it_was(self, fleet: Fleet) -> None:
        fleet.memory.put([opened(failure_count=5, version=9)])
        fleet.run(CRM)
        assert fleet.both() == opened(failure_count=5, version=9)
        assert fleet.written == []

    def test_takes_over_what_is_more_restrictive_in_the_shared_store(self, fleet: Fleet) -> None:
        fleet.memory.put([row(CLOSED, LATER)])
        fleet.shared.put([opened()])
        fleet.run(CRM)
        assert (fleet.both().state, fleet.both().generation, fleet.written) == (OPEN, 2, [])

    def test_moves_the_shared_breaker_if_the_process_knew_it_more_restrictive(self, fleet: Fleet) -> None:
        fleet.memory.put([opened(generation=6)])
        fleet.shared.put([row(CLOSED, LATER, version=3)])
        fleet.run(CRM)
        assert (fleet.both().state, fleet.both().retry_at, fleet.both().version) == (OPEN, LATER, 4)
        [made] = fleet.written
        assert (made.old, made.new, made.reason) == (CLOSED, OPEN, BreakerEvent.KNOWN_OPEN)

    def test_of_equal_states_keeps_the_newer_counts_and_makes_no_transition(self, fleet: Fleet) -> None:
        fleet.memory.put([row(at=LATER, failure_count=3, generation=1)])
        fleet.shared.put([row(at=BEFORE, failure_count=1, generation=5, version=8)])
        fleet.run(CRM)
        found = fleet.both()
        assert (found.failure_count, found.generation, found.version, fleet.written) == (3, 5, 9, [])

    def test_gives_up_no_trial_that_others_began_during_the_outage(self, fleet: Fleet) -> None:
        ours, ended, theirs = (Slot(number, BreakerRole.ERASE, BEFORE) for number in (1, 2, 3))
        fleet.memory.put([row(HALF_OPEN, LATER, slots=(ours,), slots_given=2)])
        fleet.shared.put([row(HALF_OPEN, BEFORE, slots=(ours, ended, theirs), slots_given=3)])
        fleet.run(CRM)
        assert (fleet.both().slots, fleet.both().slots_given) == ((ours, theirs), 3)

    @pytest.mark.parametrize(
        ("own", "shared"),
        [(row(), opened()), (row(at=NOON), row(at=BEFORE)), (opened(), row())],
        ids=["theirs wins", "equal, ours is newer", "ours wins"],
    )
    @pytest.mark.parametrize("ends", [(LATER, None), (None, LATER), (LATER, NOON), (NOON, LATER)])
    def test_keeps_the_longer_cooldown_whichever_row_wins(
        self,
        fleet: Fleet,
        own: CircuitBreakerStateData,
        shared: CircuitBreakerStateData,
        ends: tuple[datetime | None, datetime | None],
    ) -> None:
        fleet.memory.put([replace(own, cooldown_until=ends[0], cooldown_since=ends[0] and BEFORE)])
        fleet.shared.put([replace(shared, cooldown_until=ends[1], cooldown_since=ends[1] and BEFORE)])
        fleet.run(CRM)
        assert fleet.both().cooldown_until == LATER

    def test_does_to_the_shared_row_what_a_person_did_during_the_outage(self, fleet: Fleet) -> None:
        fleet.memory.put([opened(BEFORE)])
        fleet.shared.put([opened(BEFORE, version=4)])
        fleet.log[CRM] = logged(BreakerEvent.RESET, CLOSED, NOON, generation=2)
        fleet.run(CRM)
        assert (fleet.both().state, fleet.both().generation) == (CLOSED, 3)
        assert fleet.written == []  # it is in the log already

    def test_does_not_bring_back_a_deleted_breaker(self, fleet: Fleet) -> None:
        fleet.memory.put([opened(BEFORE)])
        fleet.log[CRM] = logged(BreakerEvent.DELETED, CLOSED, NOON)
        fleet.run(CRM)
        assert fleet.shared.load_all() == []

    def test_marks_each_breaker_once_its_write_is_confirmed(self, fleet: Fleet) -> None:
        for name in (CRM, OTHER):
            fleet.shadow.record_sync_failure(name, "open", ConnectionError())
        assert fleet.run(CRM) == 1
        assert fleet.synced == [CRM]
        assert [each.service_name for each in fleet.shadow.get_unsynced_records()] == [OTHER]

    def test_marks_none_whose_write_failed(self, fleet: Fleet) -> None:
        class Gone(MemoryBreakerStore):
            def change(self, names: Any, fn: Any) -> Any:
                raise ConnectionError

        fleet.shared = Gone()
        fleet.shadow.record_sync_failure(CRM, "open", ConnectionError())
        with pytest.raises(ConnectionError):
            fleet.run(CRM)
        assert (fleet.synced, len(fleet.shadow.get_unsynced_records())) == ([], 1)

    def test_records_what_differed_with_the_pause_before_it(self, fleet: Fleet) -> None:
        fleet.memory.put([opened()])
        fleet.shared.put([row()])
        fleet.run(CRM)
        [record] = fleet.reconciler.get_history()
        assert (record.l1_state, record.l2_state, record.winner) == ("open", "closed", "l1")
        assert record.jitter_seconds == 0.5

    def test_runs_again_without_a_change(self, fleet: Fleet) -> None:
        fleet.memory.put([opened()])
        fleet.shared.put([row()])
        fleet.run(CRM)
        before = fleet.both()
        fleet.run(CRM)
        assert (fleet.both(), len(fleet.written)) == (before, 1)
