"""Redis really stops, forgets all and starts again: under the layered store nothing falls to closed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
from breaker_cast import API, CRM, SUCCESS, registry, seconds
from breaker_fleet import Fleet
from waiting import PATIENCE, eventually

from effaced.breakers import transitions
from effaced.breakers.layered.drift import DriftReconciliationResult
from effaced.breakers.layered.forensics import read_outages
from effaced.breakers.layered.outage_log import OutageLog, delete_old
from effaced.breakers.layered.shadow import ShadowLogger, get_shadow_logger
from effaced.breakers.layered.store import LayeredBreakerStore
from effaced.breakers.model import BreakerState, StoreUnavailable
from effaced.breakers.open_store import connect, open_store
from effaced.breakers.registry import STORE_UNAVAILABLE
from effaced.breakers.repository import CircuitBreakerStateRepository as Repository
from effaced.breakers.stores.redis import RedisBreakerStore
from effaced.core.clock import ManualClock
from effaced.core.errors import ConfigurationError

pytestmark = pytest.mark.usefixtures("now")
JOB = Path(__file__).parents[1] / "support" / "breaker_job.py"


def test_open_stays_open_while_redis_is_away_and_no_trial_starts(fleet: Fleet, now: ManualClock) -> None:
    one = fleet.process()
    one.fail()
    fleet.redis.stop()
    assert one.state() is BreakerState.OPEN
    now.advance(seconds(3_600))
    admission = one.calls.admit("crm")
    assert (admission.granted, admission.reason) == (0, STORE_UNAVAILABLE)
    assert one.state() is BreakerState.OPEN


def test_closed_stays_closed_while_redis_is_away_and_its_calls_go_on(fleet: Fleet) -> None:
    one = fleet.process()
    one.calls.settle(one.calls.admit("crm", most=5), [SUCCESS] * 5)
    fleet.redis.stop()
    admission = one.calls.admit("crm", most=5)
    one.calls.settle(admission, [SUCCESS] * 5)
    assert (admission.granted, admission.trial) == (5, False)
    assert one.shadow.get_all_records() == [], "nothing has changed"


def test_a_breaker_opens_while_redis_is_away_and_the_log_and_the_reconciliation_tell_of_it(
    fleet: Fleet, now: ManualClock
) -> None:
    one, two = fleet.process(), fleet.process()
    assert [one.state(), two.state()] == [BreakerState.CLOSED] * 2
    fleet.redis.stop()
    one.fail()
    assert (one.state(), one.heard.moves) == (BreakerState.OPEN, [(CRM, "closed", "open")])
    (record,) = one.shadow.get_unsynced_records()
    assert (
        record.service_name,
        record.intended_state,
        record.l1_state_at_failure,
        record.error_message,
        record.adapter_type,
        record.operation,
    ) == (CRM, "open", "closed", "ConnectionError", "redis", "update")
    assert fleet.unsynced() == 1
    now.advance(seconds(30))
    fleet.redis.start()  # with nothing in it
    assert one.state() is BreakerState.OPEN
    assert fleet.shared() == {CRM: "open"}
    assert two.state() is BreakerState.OPEN, "the other process does not know"
    (told,) = one.reconciler.get_history()
    assert (
        told.service_name,
        told.l1_state,
        told.l2_state,
        told.winner,
        told.result,
    ) == (CRM, "open", "", "l1", DriftReconciliationResult.L1_WON)
    assert (one.shadow.get_unsynced_records(), fleet.unsynced()) == ([], 0)
    assert one.shadow.analyze_l2_failures()["duration_seconds"] == 30


def test_it_ends_with_one_trial_when_redis_is_back(fleet: Fleet, now: ManualClock) -> None:
    one, two = fleet.process(), fleet.process()
    one.fail()
    fleet.redis.stop()
    now.advance(seconds(3_600))
    assert [each.calls.admit("crm").granted for each in (one, two)] == [0, 0]
    fleet.redis.start()
    granted = [each.calls.admit("crm", most=9) for each in (one, two)]
    assert sum(each.granted for each in granted) == 1
    one.calls.settle(granted[0], [SUCCESS])
    assert [one.state(), two.state()] == [BreakerState.CLOSED] * 2


def test_a_process_that_starts_while_redis_is_away_knows_the_last_state(fleet: Fleet) -> None:
    """From the newest row among the transitions."""
    one = fleet.process()
    one.fail()
    one.calls.force_open(API, seconds=600, actor="officer:1")
    fleet.redis.stop()
    fresh = fleet.process()
    assert fresh.state() is BreakerState.OPEN
    assert fresh.calls.admit("mail", "api.example").reason == "pinned"
    assert {row.service_name for row in fresh.calls.repository.get_open_states()} == {CRM, API}


@pytest.mark.parametrize("who", ["running", "fresh"])
def test_an_emptied_redis_is_filled_again_and_nothing_closes(fleet: Fleet, who: str) -> None:
    one = fleet.process()
    one.fail()
    connect(fleet.redis.url).flushall()
    asked = one if who == "running" else fleet.process()
    assert asked.calls.admit("crm").granted == 0
    assert fleet.shared() == {CRM: "open"}


@pytest.mark.parametrize("who", ["running", "fresh"])
def test_an_emptied_redis_is_no_way_past_an_open_breaker_for_a_change_either(
    fleet: Fleet, who: str, now: ManualClock
) -> None:
    """A change that finds no row takes what is known for it, not a new one."""
    one = fleet.process()
    one.fail()
    asked = one if who == "running" else fleet.process()
    connect(fleet.redis.url).flushall()
    assert not asked.calls.repository.record_failure_with_open_check(CRM, 1).did_open
    assert fleet.shared() == {CRM: "open"}


def test_the_more_restrictive_state_wins_when_both_have_changed(fleet: Fleet, now: ManualClock) -> None:
    """While one process had no way to Redis, it opened there and another one closed here."""
    one = fleet.process()
    one.fail(times=1)
    fleet.redis.stop()
    one.fail(times=1)
    fleet.redis.start()
    elsewhere = RedisBreakerStore(connect(fleet.redis.url))
    now.advance(seconds(5))
    Repository(elsewhere).get_or_create(CRM)  # closed, and newer
    assert one.state() is BreakerState.OPEN
    assert fleet.shared() == {CRM: "open"}
    assert one.heard.moves == [(CRM, "closed", "open")]
    with fleet.db.read() as session:
        assert [each.reason for each in transitions.read(session)] == ["known_open", "consecutive_failures"]


def test_a_shared_state_that_is_more_restrictive_wins_too(fleet: Fleet, now: ManualClock) -> None:
    one = fleet.process()
    one.calls.admit("crm")
    fleet.redis.stop()
    one.fail(times=1)
    fleet.redis.start()
    Repository(RedisBreakerStore(connect(fleet.redis.url))).update_state(CRM, "open")
    assert one.state() is BreakerState.OPEN
    assert one.reconciler.get_stats()["by_winner"] == {"l2": 1}
    assert fleet.unsynced() == 0


def test_what_a_job_left_behind_when_it_ended_is_made_up_for_by_another(
    fleet: Fleet, migrated_sqlite_url: str
) -> None:
    """The job is a process of its own: its memory is gone, its records are not."""
    fleet.redis.stop()
    job = subprocess.run(
        [sys.executable, str(JOB), migrated_sqlite_url, fleet.redis.url],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (job.stdout, fleet.unsynced()) == ("open", 1), job.stderr[-2_000:]
    fleet.redis.start()
    other = fleet.process()
    assert other.store.reconcile() == 1
    assert (fleet.shared(), fleet.unsynced()) == ({CRM: "open"}, 0)


def test_only_what_redis_has_confirmed_is_marked(fleet: Fleet) -> None:
    """It is gone again in the middle of making up for it."""
    one = fleet.process(on_reconciled=lambda _: fleet.redis.stop())
    one.calls.admit("a")
    fleet.redis.stop()
    for name in ("a", "b"):
        one.fail(name)
    fleet.redis.start()
    with pytest.raises(StoreUnavailable):
        one.store.reconcile()
    left = [record.service_name for record in one.shadow.get_unsynced_records()]
    assert (left, fleet.unsynced()) == (["resolver:b"], 1)
    fleet.redis.start()
    fresh = fleet.process()
    assert [fresh.state("a"), fresh.state("b")] == [BreakerState.OPEN] * 2
    assert (fleet.shared(), fleet.unsynced()) == ({"resolver:a": "open", "resolver:b": "open"}, 0)


def test_a_process_comes_back_after_a_pause_that_is_recorded(fleet: Fleet) -> None:
    """Not all at once: until its turn comes it goes on by what it knows."""
    one = fleet.process(jitter=0.3)
    one.calls.admit("crm")
    fleet.redis.stop()
    one.fail()
    fleet.redis.start()
    assert one.state() is BreakerState.OPEN
    assert fleet.shared() == {}, "it came back without its pause"
    eventually(lambda: one.state() is BreakerState.OPEN and fleet.shared() != {}, "its turn to come")
    assert [record.jitter_seconds for record in one.reconciler.get_history()] == [0.3]


def test_while_it_is_away_nobody_waits_for_it_at_every_call(fleet: Fleet) -> None:
    """It is tried again now and then; in between memory answers."""
    one = fleet.process(retry_s=600, refresh_ms=600_000)
    one.calls.admit("crm")
    fleet.redis.stop()
    one.fail(times=1)
    fleet.redis.start()
    for _ in range(100):
        one.calls.settle(one.calls.admit("crm"), [SUCCESS])
    assert fleet.shared() == {}, "it was asked"


def test_closed_checks_and_successes_cost_no_round_trip(fleet: Fleet) -> None:
    one = fleet.process(refresh_ms=600_000)
    one.calls.settle(one.calls.admit("crm"), [SUCCESS])
    client = connect(fleet.redis.url)
    before = client.info("stats")["total_commands_processed"]
    for _ in range(50):
        one.calls.settle(one.calls.admit("crm", most=3), [SUCCESS] * 3)
    asked = client.info("stats")["total_commands_processed"] - before
    assert asked == 1, "more than this question itself"


def test_memory_is_compared_with_redis_again_after_a_while(fleet: Fleet) -> None:
    one, two = fleet.process(refresh_ms=1), fleet.process()
    assert one.state() is BreakerState.CLOSED
    two.fail()
    eventually(lambda: one.calls.admit("crm").granted == 0, "the news to arrive")


def test_one_thread_waits_for_a_redis_that_hangs_and_the_others_go_by_memory(fleet: Fleet) -> None:
    one = fleet.process(refresh_ms=10, retry_s=0.2)
    one.calls.admit("crm")
    looks: list[int] = []
    over: list[bool] = []

    def work() -> None:
        while not over:
            looks.append(one.calls.admit("crm").granted)

    connect(fleet.redis.url).client_pause(3_600_000)
    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(looks) > 1_000, "calls to be let in although nobody gets an answer")
    over.append(True)
    fleet.redis.stop()  # for the one that waits
    for thread in threads:
        thread.join(PATIENCE)
    assert set(looks) == {1}


def test_many_threads_go_on_while_redis_stops_and_starts(fleet: Fleet) -> None:
    one = fleet.process(refresh_ms=1, retry_s=0.01)
    one.fail("open")
    errors: list[BaseException] = []
    over: list[bool] = []
    seen: set[int] = set()

    def work() -> None:
        try:
            while not over:
                one.calls.settle(one.calls.admit("well", most=2), [SUCCESS])
                seen.add(one.calls.admit("open").granted)
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        fleet.redis.stop()
        fleet.redis.start()
    eventually(lambda: fleet.shared() == {"resolver:open": "open"} or bool(errors), "all to be back")
    over.append(True)
    for thread in threads:
        thread.join(PATIENCE)
    assert (errors, seen) == ([], {0})


def test_without_a_memory_of_its_own_the_store_denies_rather_than_guesses(fleet: Fleet) -> None:
    calls = registry(RedisBreakerStore(connect(fleet.redis.url)))
    fleet.redis.stop()
    admission = calls.admit("crm")
    assert (admission.granted, admission.reason) == (0, STORE_UNAVAILABLE)
    assert list(calls.blocked([("crm", None)])) == ["crm"]


def test_records_that_were_made_up_for_are_forgotten_in_time(fleet: Fleet, now: ManualClock) -> None:
    log = OutageLog(fleet.db)
    one = fleet.process()
    one.calls.admit("crm")
    fleet.redis.stop()
    one.fail()
    (kept,) = log.records()
    assert kept == replace(one.shadow.get_all_records()[0])
    log.mark_as_synced(CRM, now())
    one.fail("mail", times=1)
    now.advance(seconds(86_400))
    with fleet.db.begin() as session:
        assert delete_old(session, seconds(3_600)) == 1
    assert log.unsynced_services() == {"resolver:mail"}


def test_the_outage_can_be_read_afterwards_by_any_process(fleet: Fleet, now: ManualClock) -> None:
    one = fleet.process()
    one.calls.admit("crm")
    fleet.redis.stop()
    one.fail()
    now.advance(seconds(30))
    fleet.redis.start()
    assert one.state() is BreakerState.OPEN
    with fleet.db.read() as session:
        found = read_outages(session, 3_600)
    assert (found["total_failures"], found["unsynced"], found["duration_seconds"]) == (1, 0, 30)
    assert [(each["service_name"], each["to"], each["synced"]) for each in found["timeline"]] == [
        (CRM, "open", True)
    ]
    assert [(each["service_name"], each["l1_state"], each["winner"]) for each in found["drift"]] == [
        (CRM, "open", "l1")
    ]


def test_the_process_s_shadow_log_is_connected_to_the_database(fleet: Fleet) -> None:
    ShadowLogger.reset_instance()
    open_store("redis", fleet.db, fleet.redis.url)
    one = fleet.process()
    one.calls.admit("crm")
    fleet.redis.stop()
    one.fail()
    assert [each.service_name for each in get_shadow_logger().get_unsynced_records()] == [CRM]
    ShadowLogger.reset_instance()


def test_the_store_that_the_settings_name_is_opened(fleet: Fleet) -> None:
    assert type(open_store("sql", fleet.db)).__name__ == "SqlBreakerStore"
    assert isinstance(open_store("redis", fleet.db, fleet.redis.url), LayeredBreakerStore)
    with pytest.raises(ConfigurationError, match="EFFACED_REDIS_URL"):
        open_store("redis", fleet.db)
    with pytest.raises(ConfigurationError, match="must be sql or redis"):
        open_store("mysql", fleet.db, fleet.redis.url)
