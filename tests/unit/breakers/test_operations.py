"""What can be done to breakers: each an atomic change, refused by name where it can't be meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from breaker_cast import API, CRM, FAILURE, NOON, SUCCESS, seconds

from effaced.audit.append import Record
from effaced.breakers import operations
from effaced.breakers.admission import Hold
from effaced.breakers.machine import Step
from effaced.breakers.model import BreakerRole, BreakerState, CircuitBreakerStateData, Transition
from effaced.breakers.operations import Results
from effaced.breakers.policy import BreakerPolicy
from effaced.breakers.stores.memory import MemoryBreakerStore
from effaced.core.clock import ManualClock
from effaced.core.errors import Conflict, Refused

OPEN, CLOSED, HALF_OPEN = BreakerState.OPEN, BreakerState.CLOSED, BreakerState.HALF_OPEN
ADA = "officer:0190f1d2-0000-7000-8000-000000000000"
POLICY = BreakerPolicy(fail_max=2)


class Log:
    """What a store passed on together with its changes."""

    def __init__(self) -> None:
        self.transitions: list[Transition] = []
        self.records: list[Record] = []

    def __call__(self, transitions: Sequence[Transition], records: Sequence[Record]) -> None:
        self.transitions += transitions
        self.records += records


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def store(log: Log, noon: ManualClock) -> MemoryBreakerStore:
    return MemoryBreakerStore(log)


def get(store: MemoryBreakerStore, name: str = CRM) -> CircuitBreakerStateData:
    return store.load([name])[name]


def opened(name: str, until: datetime) -> CircuitBreakerStateData:
    return CircuitBreakerStateData(name, OPEN, opened_at=NOON, retry_at=until, generation=1, version=1)


class TestTrials:
    def test_are_taken_in_all_breakers_and_written_with_the_transitions(
        self, store: MemoryBreakerStore, log: Log
    ) -> None:
        store.put([opened(API, NOON), opened(CRM, NOON)])
        verdict = operations.start_trials(store, [API, CRM], [POLICY, POLICY], BreakerRole.ERASE, 5)
        assert (verdict.granted, verdict.rows) == (1, (get(store, API), get(store)))
        assert [(each.service_name, each.new) for each in log.transitions] == [
            (API, HALF_OPEN),
            (CRM, HALF_OPEN),
        ]

    def test_are_taken_in_none_if_one_of_them_blocks(self, store: MemoryBreakerStore, log: Log) -> None:
        store.put([opened(API, NOON), opened(CRM, NOON + seconds(1))])
        verdict = operations.start_trials(store, [API, CRM], [POLICY, POLICY], BreakerRole.ERASE, 1)
        assert (verdict.granted, get(store, API).state, log.transitions) == (0, OPEN, [])


class TestResults:
    def record(self, store: MemoryBreakerStore, *outcomes: Any, generation: int = 0) -> Any:
        hold = Hold(CRM, generation)
        return operations.record_results(store, Results([hold], [POLICY], outcomes))

    def test_open_the_breaker_and_say_so_once(self, store: MemoryBreakerStore, log: Log) -> None:
        rows, [made] = self.record(store, FAILURE, FAILURE)
        assert (rows, made.new, log.transitions) == ([get(store)], OPEN, [made])

    def test_of_a_healthy_breaker_write_nothing(self, store: MemoryBreakerStore) -> None:
        before = store.revision()
        [row], made = self.record(store, SUCCESS)
        assert (row.version, made, store.load_all(), store.revision()) == (0, (), [], before)

    def test_from_before_the_last_transition_count_nowhere(self, store: MemoryBreakerStore) -> None:
        self.record(store, FAILURE, FAILURE)
        before = get(store)
        _, made = self.record(store, FAILURE, FAILURE, generation=0)
        assert (get(store), made) == (before, ())


def test_a_step_that_changes_nothing_writes_no_new_version(store: MemoryBreakerStore) -> None:
    first = operations.change_one(store, CRM, lambda row, _: Step(row)).data
    again = operations.change_one(store, CRM, lambda row, _: Step(row)).data
    assert first.version == again.version == 1


class TestCooldowns:
    def test_end_when_they_are_over_or_when_asked(self, store: MemoryBreakerStore, noon: ManualClock) -> None:
        operations.set_cooldown(store, CRM, POLICY, seconds(10), "retry_after")
        assert operations.prune_cooldowns(store) == 0
        assert get(store).cooldown_reason == "retry_after"
        assert operations.end_cooldown(store, CRM) is not None
        assert operations.end_cooldown(store, CRM) is None

    def test_that_have_ended_are_pruned_and_the_others_not(
        self, store: MemoryBreakerStore, noon: ManualClock
    ) -> None:
        operations.set_cooldown(store, CRM, POLICY, seconds(10), "a")
        operations.set_cooldown(store, API, POLICY, seconds(11), "b")
        noon.advance(seconds(10))
        assert operations.prune_cooldowns(store) == 1
        assert (get(store).cooldown_until, get(store, API).cooldown_reason) == (None, "b")

    def test_keep_their_length_when_the_clock_was_set_back(self, store: MemoryBreakerStore) -> None:
        later = NOON + timedelta(hours=1)
        ahead = CircuitBreakerStateData(
            CRM, version=1, cooldown_since=later, cooldown_until=later + seconds(30)
        )
        store.put([ahead, CircuitBreakerStateData(API, version=1)])
        assert operations.restart_waits(store) == 1
        assert get(store).cooldown_until == NOON + seconds(30)
        assert operations.restart_waits(store, [CRM, API]) == 0


BY_HAND: dict[str, Callable[[MemoryBreakerStore, str], object]] = {
    "BREAKER_FORCED_OPEN": lambda store, actor: operations.pin(store, CRM, OPEN, until=None, actor=actor),
    "BREAKER_FORCED_CLOSED": lambda store, actor: operations.pin(store, CRM, CLOSED, until=None, actor=actor),
    "BREAKER_UNPINNED": lambda store, actor: operations.unpin(store, CRM, actor=actor),
    "BREAKER_RESET": lambda store, actor: operations.reset(store, CRM, actor=actor),
    "BREAKER_DELETED": lambda store, actor: operations.delete(store, CRM, actor=actor),
}


class TestByHand:
    @pytest.fixture(autouse=True)
    def pinned(self, store: MemoryBreakerStore, log: Log) -> None:
        operations.pin(store, CRM, OPEN, until=None, actor=ADA)
        log.transitions.clear()
        log.records.clear()

    @pytest.mark.parametrize("event", BY_HAND)
    def test_each_is_one_event_and_one_transition_under_its_actor(
        self, store: MemoryBreakerStore, log: Log, event: str
    ) -> None:
        BY_HAND[event](store, "cli")
        [record], [transition] = log.records, log.transitions
        assert (record.event.type, record.actor, transition.actor) == (event, "cli", "cli")
        assert record.event.model_dump()["previous"] == "open"

    @pytest.mark.parametrize("event", BY_HAND)
    @pytest.mark.parametrize(
        "actor", ["", "Ada Berg", "ada@company.example", "officer:", "officer:" + "1" * 65]
    )
    def test_none_is_done_by_somebody_the_trail_could_not_name(
        self, store: MemoryBreakerStore, log: Log, event: str, actor: str
    ) -> None:
        before = store.load_all()
        with pytest.raises(Refused, match="actor expected system, cli, officer:ID or api_key:ID") as refused:
            BY_HAND[event](store, actor)
        assert [each.where for each in refused.value.problems] == ["actor"]
        assert (store.load_all(), log.records) == (before, [])

    def test_what_is_not_pinned_is_not_unpinned(self, store: MemoryBreakerStore, log: Log) -> None:
        with pytest.raises(Conflict, match="is not pinned"):
            operations.unpin(store, API, actor="cli")
        assert (store.load([API]), log.records) == ({}, [])

    def test_what_is_not_there_is_not_deleted(self, store: MemoryBreakerStore, log: Log) -> None:
        assert operations.delete(store, API, actor="cli") is None
        assert log.records == []


class TestPinUntil:
    @pytest.mark.parametrize(
        ("given", "end"),
        [
            ((None, None), timedelta(minutes=90)),
            ((0.5, None), timedelta(seconds=0.5)),
            ((30 * 86_400, None), timedelta(days=30)),
            ((None, NOON + timedelta(days=30)), timedelta(days=30)),
        ],
    )
    def test_is_the_end_that_was_named_or_ninety_minutes(self, given: Any, end: timedelta) -> None:
        assert operations.pin_until(NOON, *given) == NOON + end

    @pytest.mark.parametrize(
        ("given", "field", "said"),
        [
            ((1, NOON), "until", "give seconds or until, not both"),
            ((0, None), "seconds", "must be over 0 and at most 2592000"),
            ((-1, None), "seconds", "must be over 0 and at most 2592000"),
            ((30 * 86_400 + 1, None), "seconds", "must be over 0 and at most 2592000"),
            ((float("nan"), None), "seconds", "must be over 0 and at most 2592000"),
            ((None, NOON.replace(tzinfo=None)), "until", "must have a time zone"),
            ((None, NOON), "until", "must be in the future and at most 30 days away"),
            (
                (None, NOON + timedelta(days=30, microseconds=1)),
                "until",
                "must be in the future and at most 30 days away",
            ),
        ],
    )
    def test_refuses_an_end_that_can_not_be_meant(self, given: Any, field: str, said: str) -> None:
        with pytest.raises(Refused) as refused:
            operations.pin_until(NOON, *given)
        assert [(each.where, each.message) for each in refused.value.problems] == [(field, said)]


@pytest.mark.parametrize(
    "reason", ["", "maintenance", "cli-open:2026.03", "0190f1d2-0000-7000-8000-000000000000"]
)
def test_a_reason_may_be_a_code_or_the_id_of_a_note(reason: str) -> None:
    operations.require_code(reason)


@pytest.mark.parametrize("reason", ["Anna called", "anna@people.example", "x" * 65, "ü", "a\n"])
def test_a_reason_in_free_text_is_refused_without_repeating_it(reason: str) -> None:
    with pytest.raises(Refused, match="free text belongs in a note") as refused:
        operations.require_code(reason)
    assert reason not in str(refused.value)
