"""L4: the log of what a shared store did not take."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import pytest
from breaker_cast import NOON, seconds

from effaced.breakers.layered.shadow import ShadowLogger, get_shadow_logger
from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.errors import Refused


@pytest.fixture
def now() -> Iterator[ManualClock]:
    with clock.pretend(NOON) as pretended:
        yield pretended


@pytest.fixture
def shadow(now: ManualClock) -> ShadowLogger:
    return ShadowLogger()


def note(shadow: ShadowLogger, name: str = "crm", state: str = "open") -> None:
    shadow.record_sync_failure(
        name, state, ConnectionError("redis://user:secret@host"), "redis", "update", l1_state="closed"
    )


def test_a_record_has_everything_but_the_error_s_words(shadow: ShadowLogger) -> None:
    note(shadow)
    (record,) = shadow.get_all_records()
    assert (
        record.service_name,
        record.intended_state,
        record.l1_state_at_failure,
        record.error_message,
        record.adapter_type,
        record.operation,
        record.failure_time,
        record.synced_after_recovery,
        record.recovery_time,
    ) == ("crm", "open", "closed", "ConnectionError", "redis", "update", NOON, False, None)
    assert "secret" not in repr(record)


def test_a_state_that_no_breaker_has_is_refused(shadow: ShadowLogger) -> None:
    with pytest.raises(Refused, match="intended_state must be one of closed, open, half_open"):
        note(shadow, state="bogus")
    with pytest.raises(Refused, match="l1_state must be one of"):
        shadow.record_sync_failure("crm", "OPEN", ConnectionError(), l1_state="bogus")
    assert shadow.get_all_records() == []


def test_it_is_bounded_and_trimmed_at_once(shadow: ShadowLogger) -> None:
    for number in range(5):
        note(shadow, str(number))
    shadow.set_max_entries(3)
    assert [record.service_name for record in shadow.get_all_records()] == ["2", "3", "4"]
    note(shadow, "5")
    assert [record.service_name for record in shadow.get_all_records()] == ["3", "4", "5"]
    with pytest.raises(ValueError, match="max_entries"):
        shadow.set_max_entries(0)


def test_marking_counts_once(shadow: ShadowLogger, now: ManualClock) -> None:
    note(shadow)
    note(shadow)
    note(shadow, "mail")
    now.advance(seconds(5))
    assert [shadow.mark_as_synced("crm"), shadow.mark_as_synced("crm")] == [2, 0]
    assert [record.service_name for record in shadow.get_unsynced_records()] == ["mail"]
    assert shadow.get_records_by_service("crm")[0].recovery_time == NOON + seconds(5)
    assert [shadow.mark_all_as_synced(), shadow.mark_all_as_synced()] == [1, 0]


def test_what_failed_after_the_write_that_is_confirmed_is_not_marked_with_it(
    shadow: ShadowLogger, now: ManualClock
) -> None:
    note(shadow)
    confirmed = clock.now()
    now.advance(seconds(1))
    note(shadow)
    assert shadow.mark_as_synced("crm", up_to=confirmed) == 1
    assert len(shadow.get_unsynced_records()) == 1


def test_records_are_found_by_service_and_by_time_with_both_ends(
    shadow: ShadowLogger, now: ManualClock
) -> None:
    for name in ("a", "b", "c", "d"):
        note(shadow, name)
        now.advance(seconds(1))
    found = shadow.get_records_by_time_range(NOON + seconds(1), NOON + seconds(2))
    assert [record.service_name for record in found] == ["b", "c"]
    assert [record.service_name for record in shadow.get_records_by_service("d")] == ["d"]


def test_the_outage_is_told_as_a_story(shadow: ShadowLogger, now: ManualClock) -> None:
    note(shadow, "crm", "closed")
    now.advance(seconds(10))
    note(shadow, "crm", "open")
    now.advance(seconds(20))
    shadow.mark_as_synced("crm")
    told = shadow.analyze_l2_failures()
    assert (2, 0, 30.0, NOON, NOON + seconds(30)) == (
        told["total_failures"],
        told["unsynced"],
        told["duration_seconds"],
        told["first_failure_at"],
        told["recovered_at"],
    )
    assert told["services"] == {"crm": [("closed", "closed"), ("closed", "open")]}
    assert [each["to"] for each in told["timeline"]] == ["closed", "open"]
    assert told["errors"] == {"ConnectionError": 2}
    assert shadow.get_stats() | {"max_entries": 0} == {
        "total": 2, "unsynced": 0, "synced": 2, "max_entries": 0, "by_service": {"crm": 2},
    }  # fmt: skip
    shadow.clear()
    assert shadow.analyze_l2_failures()["total_failures"] == 0


def test_many_threads_lose_nothing(shadow: ShadowLogger) -> None:
    threads = [Thread(target=lambda: [note(shadow) for _ in range(50)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shadow.mark_as_synced("crm") == 400


def test_there_is_one_per_process_until_it_is_reset() -> None:
    first = get_shadow_logger()
    assert first is get_shadow_logger()
    ShadowLogger.reset_instance()
    assert first is not get_shadow_logger()
