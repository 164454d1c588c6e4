"""What a process knows of breakers when Redis does not: nothing that another one did is undone by it."""

from __future__ import annotations

from typing import Any

import pytest
from breaker_cast import CRM, NEUTRAL, NOON, SUCCESS, registry, seconds
from breaker_fleet import Fleet, Process
from saga_cast import KEYRING

from effaced.audit.notes import write_note
from effaced.breakers import transitions
from effaced.breakers.admitted import Admission
from effaced.breakers.cooldowns import CooldownStore
from effaced.breakers.model import BreakerRole, BreakerState
from effaced.breakers.open_store import connect
from effaced.breakers.outcomes import Outcome, OutcomeKind
from effaced.breakers.repository import CircuitBreakerStateRepository as Repository
from effaced.breakers.stores.base import WriteLog
from effaced.breakers.stores.redis import PREFIX, RedisBreakerStore
from effaced.core import clock
from effaced.core.clock import ManualClock

pytestmark = pytest.mark.usefixtures("now")


class TestWhatAnotherProcessHasOpened:
    """One has known the breaker as closed, and has not looked since."""

    @pytest.fixture
    def idle(self, fleet: Fleet) -> Process:
        one, idle = fleet.process(), fleet.process()
        one.calls.repository.get_or_create(CRM)
        assert idle.state() is BreakerState.CLOSED
        one.fail()
        return idle

    def test_is_not_closed_by_giving_an_emptied_redis_an_old_row(self, fleet: Fleet, idle: Process) -> None:
        connect(fleet.redis.url).flushall()
        assert idle.calls.admit("crm").granted == 0
        assert fleet.shared() == {CRM: "open"}

    def test_is_not_closed_by_a_change_of_an_old_row(self, fleet: Fleet, idle: Process) -> None:
        connect(fleet.redis.url).flushall()
        idle.calls.repository.record_success(CRM)
        assert fleet.shared() == {CRM: "open"}

    def test_is_known_although_redis_is_away(self, fleet: Fleet, idle: Process) -> None:
        fleet.redis.stop()
        assert idle.calls.admit("crm").granted == 0


def test_what_another_process_opens_while_redis_is_away_is_soon_known(fleet: Fleet) -> None:
    one, two = fleet.process(), fleet.process()
    fleet.redis.stop()
    assert two.state() is BreakerState.CLOSED
    one.fail()
    assert two.state() is BreakerState.OPEN


class TestATrialThatEndsWhileRedisIsAway:
    @pytest.fixture
    def one(self, fleet: Fleet, now: ManualClock) -> Process:
        one = fleet.process()
        one.fail()
        now.advance(seconds(60))
        return one

    @pytest.fixture
    def trial(self, one: Process) -> Admission:
        trial = one.calls.admit("crm")
        assert trial.trial
        return trial

    def test_closes_nothing(self, fleet: Fleet, one: Process, trial: Admission) -> None:
        """Who is alone can't tell how other trials fare."""
        with fleet.away():
            one.calls.settle(trial, [SUCCESS])
            assert one.state() is BreakerState.HALF_OPEN
        assert one.state() is BreakerState.HALF_OPEN
        assert [new for _, _, new in one.heard.moves] == ["open", "half_open"]

    @pytest.mark.parametrize("outcome", [SUCCESS, NEUTRAL])
    def test_frees_its_slot_for_the_next_one(
        self, fleet: Fleet, one: Process, trial: Admission, outcome: Outcome, now: ManualClock
    ) -> None:
        with fleet.away():
            now.advance(seconds(1))
            one.calls.settle(trial, [outcome])
        again = one.calls.admit("crm")
        assert (again.granted, again.trial) == (1, True)
        one.calls.settle(again, [SUCCESS])
        assert fleet.shared() == {CRM: "closed"}

    def test_frees_no_other_one_s(
        self, fleet: Fleet, one: Process, trial: Admission, now: ManualClock
    ) -> None:
        """That of another process is under way all the time."""
        two = fleet.process()
        other = two.calls.admit("crm", role=BreakerRole.VERIFY)
        with fleet.away():
            now.advance(seconds(1))
            one.calls.settle(trial, [NEUTRAL])
        assert one.calls.admit("crm", role=BreakerRole.VERIFY).granted == 0
        two.calls.settle(other, [NEUTRAL])
        assert one.calls.admit("crm", role=BreakerRole.VERIFY).granted == 1


def test_a_late_trial_frees_no_slot_that_was_given_after_redis_was_emptied(
    fleet: Fleet, now: ManualClock
) -> None:
    """Nobody remembers how many had been given, so the numbers begin anew."""
    one = fleet.process()
    one.fail()
    now.advance(seconds(60))
    late = one.calls.admit("crm")
    connect(fleet.redis.url).flushall()
    fresh = fleet.process()
    assert fresh.state() is BreakerState.OPEN
    now.advance(seconds(60))
    assert fresh.calls.admit("crm").trial
    one.calls.settle(late, [NEUTRAL])
    assert fresh.calls.admit("crm").granted == 0


@pytest.mark.parametrize("elsewhere", ["closed", "half_open", "open"])
def test_a_cooldown_from_while_redis_was_away_holds_whoever_is_right(
    fleet: Fleet, now: ManualClock, elsewhere: str
) -> None:
    """Another process has written to Redis since."""
    one = fleet.process()
    one.calls.admit("crm")
    fleet.redis.stop()
    one.calls.settle(one.calls.admit("crm"), [Outcome(OutcomeKind.FAILURE, 429, seconds(600))])
    fleet.redis.start()
    now.advance(seconds(1))
    shared = RedisBreakerStore(connect(fleet.redis.url))
    Repository(shared).get_or_create(CRM)
    Repository(shared).update_state(CRM, elsewhere)
    assert one.calls.admit("crm").reason == "cooldown"
    (row,) = shared.load([CRM]).values()
    assert (row.cooldown_until, row.cooldown_reason) == (NOON + seconds(600), "retry_after")


class TestWhatAPersonDoesWhileRedisIsAway:
    """Redis comes back as it was, so that it knows nothing of it."""

    @pytest.fixture
    def one(self, fleet: Fleet) -> Process:
        return fleet.process()

    @pytest.mark.parametrize(
        ("deed", "state"), [("force_open", "open"), ("force_close", "closed"), ("reset", "closed")]
    )
    def test_holds_when_it_is_back(
        self, fleet: Fleet, one: Process, now: ManualClock, deed: str, state: str
    ) -> None:
        """Also a deed that lets calls through: who did it has seen what there was to see."""
        one.fail(times=1 if deed == "force_open" else 2)
        with fleet.away():
            now.advance(seconds(1))
            getattr(fleet.process().calls, deed)(CRM, actor="officer:1")
        (row,) = fleet.process().store.load([CRM]).values()
        assert (row.state, row.is_pinned(now())) == (state, deed != "reset")
        assert (fleet.shared(), fleet.unsynced()) == ({CRM: state}, 0)
        assert one.state() == state

    @pytest.mark.parametrize("end", [600, None])
    def test_keeps_its_reason_and_its_end(
        self, fleet: Fleet, one: Process, now: ManualClock, end: float | None
    ) -> None:
        one.fail()
        with fleet.away():
            now.advance(seconds(1))
            until = None if end is None else NOON + seconds(end)
            fleet.process().calls.repository.set_manual_control(CRM, "open", "cli", "during_outage", until)
        for known in (fleet.process(), one):
            (row,) = known.store.load([CRM]).values()
            assert (row.pinned, row.controlled_by, row.control_reason, row.expires_at) == (
                "open", "cli", "during_outage", until,
            )  # fmt: skip

    def test_is_noted_in_the_transaction_of_the_deed(self, fleet: Fleet, one: Process) -> None:
        """A second one would wait for the first: SQLite has one writer."""
        fleet.redis.stop()
        with fleet.db.begin() as session:
            note = write_note(session, KEYRING, "maintenance", author="officer:1")
            one.calls.force_open(CRM, actor="officer:1", note=note, session=session)
        assert fleet.unsynced() == 1

    def test_is_soon_known_to_others(self, fleet: Fleet, one: Process, now: ManualClock) -> None:
        one.fail()
        fleet.redis.stop()
        now.advance(seconds(1))
        fleet.process().calls.reset(CRM, actor="officer:1")
        assert one.state() is BreakerState.CLOSED

    def test_does_not_outlast_what_another_person_did_later(
        self, fleet: Fleet, one: Process, now: ManualClock
    ) -> None:
        """He has a way to Redis, and this one has not."""
        one.fail()
        with fleet.away():
            now.advance(seconds(1))
            fleet.process().calls.force_close(CRM, actor="officer:1")
        now.advance(seconds(1))
        shared = RedisBreakerStore(connect(fleet.redis.url), keeping(fleet))
        registry(shared).force_open(CRM, actor="officer:2")
        assert fleet.process().calls.admit("crm").reason == "pinned"

    def test_holds_although_redis_is_emptied_later(
        self, fleet: Fleet, one: Process, now: ManualClock
    ) -> None:
        one.fail(times=1)
        with fleet.away():
            now.advance(seconds(1))
            fleet.process().calls.force_open(CRM, actor="officer:1")
        fleet.process().state()
        connect(fleet.redis.url).flushall()
        assert fleet.process().calls.admit("crm").reason == "pinned"


def keeping(fleet: Fleet) -> WriteLog:
    def keep(*made: Any) -> None:
        with fleet.db.begin() as session:
            transitions.write(session, *made)

    return keep


def test_a_deleted_breaker_is_not_brought_back_by_the_memory_of_a_pin_that_is_over(
    fleet: Fleet, now: ManualClock
) -> None:
    one = fleet.process()
    one.calls.force_close(CRM, seconds=30, actor="officer:1")
    now.advance(seconds(40))
    one.fail(times=1)  # whatever is written takes the pin away, which is no move
    assert one.calls.repository.delete_state(CRM)
    one.fail(times=1)
    assert one.store.load([CRM])[CRM].generation == 0
    assert fleet.process().store.load([CRM])[CRM].generation == 0


class TestADeletedBreaker:
    @pytest.fixture
    def other(self, fleet: Fleet) -> Process:
        """A process that knows the breaker as open."""
        one, other = fleet.process(), fleet.process()
        one.fail()
        assert other.state() is BreakerState.OPEN
        one.calls.delete(CRM, actor="officer:1")
        return other

    def test_does_not_come_back_from_another_process_s_memory(self, fleet: Fleet, other: Process) -> None:
        assert other.state() is BreakerState.CLOSED
        assert (fleet.shared(), fleet.process().state()) == ({}, BreakerState.CLOSED)

    def test_nor_after_redis_was_emptied(self, fleet: Fleet, other: Process) -> None:
        """Then only the log of transitions knows of it."""
        connect(fleet.redis.url).flushall()
        assert other.state() is BreakerState.CLOSED
        assert fleet.shared() == {}

    def test_nor_while_redis_is_away(self, fleet: Fleet, other: Process) -> None:
        fleet.redis.stop()
        assert other.state() is BreakerState.CLOSED

    def test_can_be_used_again(self, other: Process, now: ManualClock) -> None:
        now.advance(seconds(1))
        other.fail()
        assert other.state() is BreakerState.OPEN


def test_a_closed_one_does_not_come_back_either(fleet: Fleet) -> None:
    one, other = fleet.process(), fleet.process()
    one.fail(times=1)
    assert other.store.load([CRM])[CRM].failure_count == 1
    one.calls.delete(CRM, actor="officer:1")
    assert (other.store.load([CRM]), fleet.shared()) == ({}, {})


def test_a_cooldown_s_key_ends_with_it_and_what_blocks_calls_stays(fleet: Fleet, now: ManualClock) -> None:
    client, store = connect(fleet.redis.url), fleet.process().store
    CooldownStore(store).set_until("api.example", clock.monotonic() + 90, "retry_after")
    assert 0 < client.pttl(f"{PREFIX}host:api.example") <= 90_000
    one = fleet.process()
    one.fail(times=1)
    assert client.ttl(f"{PREFIX}{CRM}") > 3_600, "its count of failures is needed for longer"
    one.fail(times=1)
    assert client.ttl(f"{PREFIX}{CRM}") == -1
