"""Replays, archive, purge and summaries: statements D7 to D12."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs
from waiting import PATIENCE

from effaced.core.clock import ManualClock
from effaced.core.errors import Conflict, Refused
from effaced.deadletters.data import DLQCompressedEntry
from effaced.model import OutboxStatus, new_id

from .conftest import START, Store

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def logs() -> Iterator[list[dict[str, object]]]:
    with capture_logs() as entries:
        yield entries


def take(store: Store, letter_id: str, *, force: bool = False) -> int:
    """Acquire, and the number under which it is ours."""
    taken = store.letters.try_acquire_for_replay(letter_id, 2, force=force)
    assert taken is not None
    return taken.acquired


class TestD7Acquire:
    def test_turns_to_replaying_and_counts(self, store: Store, now: ManualClock) -> None:
        letter_id = store.create()
        now.advance(HOUR)
        taken = store.letters.try_acquire_for_replay(letter_id, 2)
        assert taken is not None
        assert (taken.status, taken.retry_count, taken.last_retry_at) == ("replaying", 1, START + HOUR)
        assert taken == store.get(letter_id)
        assert store.letters.try_acquire_for_replay(letter_id, 2) is None

    def test_the_stored_cap_decides_whatever_is_asked(self, store: Store) -> None:
        at_cap, patient = store.create(retry_count=2), store.create(retry_count=2, max_retries=3)
        assert store.letters.try_acquire_for_replay(at_cap, 99) is None
        assert store.letters.try_acquire_for_replay(patient, 0) is not None

    @pytest.mark.parametrize(
        "status", ["reviewing", "requires_review", "resolved", "permanently_failed", "rejected", "archived"]
    )
    def test_only_of_pending_ones(self, store: Store, status: str) -> None:
        letter_id = store.create()
        store.bring(letter_id, status)
        assert store.letters.try_acquire_for_replay(letter_id, 2) is None
        assert store.status(letter_id) == status

    @pytest.mark.parametrize("force", [False, True])
    def test_of_many_who_try_at_once_one_gets_it(self, store: Store, force: bool) -> None:
        letter_id = store.create()
        together, won = threading.Barrier(8), []

        def race() -> None:
            together.wait(PATIENCE)
            won.append(store.letters.try_acquire_for_replay(letter_id, 2, force=force))

        threads = [threading.Thread(target=race) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert (len(won), sum(each is not None for each in won)) == (8, 1)
        assert store.get(letter_id).acquired == 1


class TestD7Force:
    @pytest.mark.parametrize("status", ["pending", "requires_review"])
    def test_starts_the_budget_again_and_keeps_the_scar(self, store: Store, status: str) -> None:
        letter_id = store.create(retry_count=2)
        store.letters.update_status(letter_id, status)
        taken = store.letters.try_acquire_for_replay(letter_id, 2, force=True)
        assert taken is not None
        assert (taken.status, taken.retry_count) == ("replaying", 1)
        assert taken.metadata == {"previous_total_retries": 2, "force_redrive_count": 1}
        assert store.get(letter_id) == taken

    def test_scars_add_up_and_other_marks_stay(self, store: Store) -> None:
        letter_id = store.create(retry_count=2, metadata={"failed_replays": 2})
        for _ in range(2):
            number = take(store, letter_id, force=True)
            store.letters.complete_replay(letter_id, False, acquired=number)
        assert store.get(letter_id).metadata == {
            "previous_total_retries": 3,
            "force_redrive_count": 2,
            "failed_replays": 2,
        }

    @pytest.mark.parametrize(
        "status", ["reviewing", "replaying", "resolved", "permanently_failed", "rejected", "archived"]
    )
    def test_is_refused_of_others(self, store: Store, status: str) -> None:
        letter_id = store.create()
        store.bring(letter_id, status)
        before = store.get(letter_id)
        assert store.letters.try_acquire_for_replay(letter_id, 2, force=True) is None
        assert store.get(letter_id) == before

    def test_a_poisonous_one_comes_to_review_again(self, store: Store) -> None:
        letter_id = store.create(retry_count=2)
        store.letters.complete_replay(letter_id, False, acquired=take(store, letter_id, force=True))
        assert store.status(letter_id) == "pending"
        store.letters.complete_replay(letter_id, False, acquired=take(store, letter_id))
        assert store.status(letter_id) == "requires_review"


class TestD8Complete:
    def test_well_is_resolved(self, store: Store) -> None:
        letter_id = store.create()
        number = take(store, letter_id)
        assert store.letters.complete_replay(letter_id, True, "fixed", "a new token", 7, acquired=number)
        found = store.get(letter_id)
        assert (found.status, found.resolution_type, found.resolved_by_id) == ("resolved", "fixed", "7")
        assert (found.resolution_note, found.resolved_at) == ("a new token", START)

    def test_badly_is_pending_below_the_cap_and_for_review_at_it(self, store: Store) -> None:
        letter_id = store.create()
        details = {"attempts": 8, "status_code": 503}
        assert store.letters.complete_replay(
            letter_id, False, error_details=details, acquired=take(store, letter_id)
        )
        found = store.get(letter_id)
        assert (found.status, found.snapshot_data["attempts"]) == ("pending", 8)
        assert found.response_data == {"status_code": 503}
        store.letters.complete_replay(letter_id, False, acquired=take(store, letter_id))
        assert store.status(letter_id) == "requires_review"

    def test_badly_keeps_what_earlier_failures_said(self, store: Store) -> None:
        letter_id = store.create(
            error_code="http_503",
            snapshot_data={"attempts": 3, "operation": "erase"},
            response_data={"status_code": 503, "latency_ms": 12},
        )
        details = {"attempts": 8, "status_code": 500}
        number = take(store, letter_id)
        store.letters.complete_replay(letter_id, False, error_details=details, acquired=number)
        found = store.get(letter_id)
        about = {"domain": "external_call", "error": "Timeout", "code": "http_503"}
        assert found.snapshot_data == {
            "attempts": 8,
            "operation": "erase",
            "failures": [
                {**about, "attempts": 3, "status_code": 503},
                {**about, "attempts": 8, "status_code": 500},
            ],
        }
        assert found.response_data == {"status_code": 500, "latency_ms": 12}

    @pytest.mark.parametrize("success", [True, False])
    def test_under_an_old_number_changes_nothing(self, store: Store, now: ManualClock, success: bool) -> None:
        """Released as stale and taken by somebody else, by force: the count is 1 again, the number is not."""
        letter_id = store.create()
        late = take(store, letter_id)
        now.advance(HOUR)
        assert store.letters.release_stale_replaying() == 1
        number = take(store, letter_id, force=True)
        before = store.get(letter_id)
        assert before.retry_count == 1
        assert store.letters.complete_replay(letter_id, success, note="late", acquired=late) is False
        assert store.get(letter_id) == before
        assert store.letters.complete_replay(letter_id, True, acquired=number) is True

    def test_twice_counts_once(self, store: Store) -> None:
        letter_id = store.create()
        number = take(store, letter_id)
        assert store.letters.complete_replay(letter_id, False, acquired=number)
        assert not store.letters.complete_replay(letter_id, True, acquired=number)
        assert store.status(letter_id) == "pending"

    def test_of_one_that_nobody_took_is_false(self, store: Store) -> None:
        letter_id = store.create()
        assert not store.letters.complete_replay(letter_id, True, acquired=0)
        assert store.status(letter_id) == "pending"

    def test_well_is_refused_while_the_erasure_is_missing(self, store: Store) -> None:
        entry_id = str(store.entry(OutboxStatus.ABANDONED))
        letter_id = store.create(entity_type="entry", entity_id=entry_id)
        number = take(store, letter_id)
        with pytest.raises(Conflict):
            store.letters.complete_replay(letter_id, True, acquired=number)
        assert store.status(letter_id) == "replaying"


class TestD9Stale:
    def test_is_pending_below_the_cap_and_for_review_at_it(self, store: Store, now: ManualClock) -> None:
        below, at_cap = store.create(), store.create(retry_count=1)
        for each in (below, at_cap):
            take(store, each)
        now.advance(timedelta(minutes=30))
        assert store.letters.release_stale_replaying() == 2
        assert (store.status(below), store.status(at_cap)) == ("pending", "requires_review")

    def test_is_not_before_its_time(self, store: Store, now: ManualClock) -> None:
        letter_id = store.create()
        take(store, letter_id)
        now.advance(timedelta(minutes=29))
        assert store.letters.release_stale_replaying() == 0
        assert store.letters.release_stale_replaying(older_than_minutes=29) == 1
        assert store.status(letter_id) == "pending"

    @pytest.mark.parametrize("status", ["scheduled", "pending", "failed", "in_flight"])
    def test_is_not_while_the_entry_goes_its_way(self, store: Store, now: ManualClock, status: str) -> None:
        entry_id = str(store.entry(OutboxStatus(status)))
        letter_id = store.create(entity_type="entry", entity_id=entry_id)
        take(store, letter_id)
        now.advance(90 * DAY)
        assert store.letters.release_stale_replaying() == 0
        assert store.status(letter_id) == "replaying"

    def test_is_when_the_entry_has_ended(self, store: Store, now: ManualClock) -> None:
        entry_id = str(store.entry(OutboxStatus.ABANDONED))
        letter_id = store.create(entity_type="entry", entity_id=entry_id)
        take(store, letter_id)
        now.advance(HOUR)
        assert store.letters.release_stale_replaying() == 1


class TestD10ArchiveAndPurge:
    def test_archiving_keeps_the_rows(self, store: Store, now: ManualClock) -> None:
        old, rejected, young = store.create(), store.create(), store.create()
        store.letters.mark_as_resolved(old, "by_hand", "done")
        store.letters.update_status(rejected, "rejected")
        pending = store.create()
        now.advance(30 * DAY)
        store.letters.mark_as_resolved(young, "by_hand")
        assert store.letters.archive_old_resolved() == 2
        found = store.get(old)
        assert (found.status, found.archived_at) == ("archived", START + 30 * DAY)
        assert (found.resolution_type, found.resolution_note) == ("by_hand", "done")
        assert [store.status(each) for each in (rejected, young, pending)] == [
            "archived",
            "resolved",
            "pending",
        ]
        assert store.letters.count() == 4

    def test_purging_by_both_is_a_value_error_and_by_neither_nothing(self, store: Store) -> None:
        letter_id = store.archived()
        with pytest.raises(ValueError, match="not both"):
            store.letters.purge_archived(ids=[letter_id], older_than_days=0)
        with pytest.raises(ValueError, match="older_than_days"):
            store.letters.purge_archived(older_than_days=-1)
        assert store.letters.purge_archived() == 0
        assert store.letters.purge_archived(ids=[]) == 0
        assert store.letters.count() == 1

    def test_purging_older_than_zero_days_takes_all_archived(self, store: Store) -> None:
        kept = store.create()
        for _ in range(3):
            store.archived()
        assert store.letters.purge_archived(older_than_days=0) == 3
        assert [each.id for each in store.letters.find()] == [kept]

    def test_purging_one_that_is_not_archived_is_a_value_error_and_removes_nothing(
        self, store: Store
    ) -> None:
        archived, pending = store.archived(), store.create()
        with pytest.raises(ValueError, match="not archived"):
            store.letters.purge_archived(ids=[archived, pending])
        assert store.letters.count() == 2
        assert store.letters.purge_archived(ids=[archived]) == 1

    def test_the_preview_counts_what_the_purge_removes(self, store: Store, now: ManualClock) -> None:
        """By when it was archived, not by when it was resolved."""
        letter_id = store.create()
        store.letters.mark_as_resolved(letter_id, "by_hand")
        now.advance(100 * DAY)
        store.letters.archive_old_resolved()
        for age, due in ((0, 1), (1, 0)):
            assert store.letters.count_archived_older_than(age) == due
        now.advance(10 * DAY)
        for age in (11, 10):
            due = store.letters.count_archived_older_than(age)
            assert store.letters.purge_archived(older_than_days=age) == due
        assert store.letters.count() == 0


class TestD11Figures:
    def test_statistics(self, store: Store, now: ManualClock) -> None:
        store.create("external_call", "Timeout")
        now.advance(25 * HOUR)
        store.create("message", "Refused")
        store.letters.update_status(store.create("message", "Refused"), "resolved")
        assert store.letters.get_statistics() == {
            "total": 3,
            "active": 2,
            "by_status": {"pending": 2, "resolved": 1},
            "by_domain": {"external_call": 1, "message": 1},
            "by_failure_type": {"Timeout": 1, "Refused": 1},
            "sla_breached": {"external_call": 1},
            "oldest_active_at": START,
        }

    def test_statistics_of_nothing(self, store: Store) -> None:
        found = store.letters.get_statistics()
        assert (found["total"], found["by_status"], found["oldest_active_at"]) == (0, {}, None)

    def test_cleanup_statistics(self, store: Store, now: ManualClock) -> None:
        store.archived()
        store.letters.update_status(store.create(), "resolved")
        now.advance(90 * DAY)
        store.letters.update_status(store.create(), "resolved")
        assert store.letters.get_cleanup_stats() == {
            "total": 3,
            "by_status": {"archived": 1, "resolved": 2},
            "resolved_older_than_30_days": 1,
            "archived_older_than_90_days": 1,
        }

    def test_count_all_counts_what_is_active(self, store: Store) -> None:
        for status in (
            "pending",
            "reviewing",
            "replaying",
            "requires_review",
            "permanently_failed",
            "resolved",
            "rejected",
            "archived",
        ):
            store.bring(store.create("message"), status)
        store.create("external_call")
        assert store.letters.count_all() == 6
        assert store.letters.count_by_domain("message") == 5

    def test_oldest_ids(self, store: Store, now: ManualClock) -> None:
        ids = []
        for domain in ("message", "external_call", "message"):
            ids.append(store.create(domain))
            now.advance(HOUR)
        assert store.letters.get_oldest_ids(2) == ids[:2]
        assert store.letters.get_oldest_ids(9, "message") == [ids[0], ids[2]]
        assert store.letters.get_oldest_ids(0) == []

    def test_delete_removes_an_archived_one_and_refuses_others(self, store: Store) -> None:
        letter_id = store.archived()
        assert store.letters.delete(letter_id) is True
        assert store.letters.delete(letter_id) is False
        with pytest.raises(ValueError, match="not archived"):
            store.letters.delete(store.create())
        assert store.letters.count() == 1


class TestD12Evict:
    def test_takes_the_oldest_archived_ones_and_no_others(
        self, store: Store, now: ManualClock, logs: list[dict[str, object]]
    ) -> None:
        pending = store.create()
        archived = []
        for domain in ("message", "external_call", "message"):
            now.advance(HOUR)
            archived.append(store.archived(domain=domain))
        assert store.letters.evict_oldest(1) == 1
        assert store.letters.get_by_id(archived[0]) is None
        assert store.letters.evict_oldest(1, "message") == 1
        assert store.letters.get_by_id(archived[2]) is None
        assert logs == []
        assert store.letters.evict_oldest(5) == 1
        assert [each.id for each in store.letters.find()] == [pending]

    def test_fewer_than_none_is_a_value_error(self, store: Store) -> None:
        for evict in (store.letters.evict_oldest, store.letters.compress_and_evict_oldest):
            with pytest.raises(ValueError, match="count"):
                evict(-1)

    def test_rings_the_alarm_instead_of_evicting_what_is_unresolved(
        self, store: Store, logs: list[dict[str, object]]
    ) -> None:
        store.create()
        for evict in (store.letters.evict_oldest, store.letters.compress_and_evict_oldest):
            logs.clear()
            assert evict(3) == 0
            assert logs == [
                {
                    "event": "dead_letters_not_evicted",
                    "log_level": "error",
                    "asked": 3,
                    "evicted": 0,
                    "unresolved": 1,
                }
            ]
        assert store.letters.count() == 1


class TestD12Compress:
    def test_leaves_a_summary_of_each_kind(self, store: Store, now: ManualClock) -> None:
        for error_code in ("http_500", "http_400", "http_500"):
            store.archived(error_code=error_code)
            now.advance(HOUR)
        store.create(error_code="http_500")
        assert store.letters.compress_and_evict_oldest(10) == 3
        assert store.letters.count() == 1
        found = {each.error_code: each for each in store.letters.get_compressed_entries()}
        assert {code: each.count for code, each in found.items()} == {"http_500": 2, "http_400": 1}
        both = found["http_500"]
        assert (both.first_seen, both.last_seen) == (START, START + 2 * HOUR)
        assert (both.domain, both.failure_type, both.status) == ("external_call", "Timeout", "active")
        assert both.compressed_at == START + 3 * HOUR

    def test_adds_to_the_active_summary_and_begins_anew_after_a_stale_one(
        self, store: Store, now: ManualClock
    ) -> None:
        for _ in range(2):
            store.archived()
            store.letters.compress_and_evict_oldest(1)
            now.advance(HOUR)
        (summary,) = store.letters.get_compressed_entries()
        assert (summary.count, summary.first_seen, summary.last_seen) == (2, START, START + HOUR)
        assert store.letters.update_compressed_status(summary.id, "stale")
        store.archived()
        store.letters.compress_and_evict_oldest(1)
        counts = [(each.status, each.count) for each in store.letters.get_compressed_entries()]
        assert sorted(counts) == [("active", 1), ("stale", 2)]

    def test_goes_from_active_to_stale_to_archived_with_stamps_and_never_back(
        self, store: Store, now: ManualClock
    ) -> None:
        store.archived()
        store.letters.compress_and_evict_oldest(1)
        (summary,) = store.letters.get_compressed_entries()
        move = store.letters.update_compressed_status
        assert not move(summary.id, "active")
        now.advance(HOUR)
        assert move(summary.id, "stale")
        assert not move(summary.id, "stale")
        now.advance(HOUR)
        assert move(summary.id, "archived")
        for status in ("active", "stale", "archived"):
            assert not move(summary.id, status)
        (ended,) = store.letters.get_compressed_entries(status="archived")
        assert (ended.stale_at, ended.archived_at) == (START + HOUR, START + 2 * HOUR)
        with pytest.raises(ValueError, match="stale"):
            move(summary.id, "gone")

    def test_stored_ones_are_found_by_domain_and_status_and_summed_up(self, store: Store) -> None:
        entry = DLQCompressedEntry(
            id=str(new_id()),
            domain="message",
            failure_type="Refused",
            error_code="",
            count=5,
            first_seen=START,
            last_seen=START + HOUR,
            compressed_at=START + HOUR,
        )
        assert store.letters.store_compressed_entry(entry)
        assert not store.letters.store_compressed_entry(entry)
        assert not store.letters.store_compressed_entry(replace(entry, id="no id"))
        more = replace(entry, id=str(new_id()), count=2, last_seen=START + 2 * HOUR)
        assert store.letters.store_compressed_entry(more)
        old = replace(entry, id=str(new_id()), domain="verification", count=1, status="archived")
        assert store.letters.store_compressed_entry(old)
        (found,) = store.letters.get_compressed_entries(domain="message", status="active")
        assert (found.id, found.count, found.last_seen) == (entry.id, 7, START + 2 * HOUR)
        assert len(store.letters.get_compressed_entries(limit=1)) == 1
        assert store.letters.get_compressed_summary() == {
            "entries": 2,
            "letters": 8,
            "by_status": {"active": 7, "archived": 1},
            "by_domain": {"message": 7, "verification": 1},
        }

    def test_takes_no_text_that_may_be_personal(self, store: Store) -> None:
        entry = DLQCompressedEntry(
            str(new_id()), "message", "anna@people.example", "", 1, START, START, START
        )
        with pytest.raises(Refused, match="failure_type") as refused:
            store.letters.store_compressed_entry(entry)
        assert "anna" not in str(refused.value)
