"""A dead letter over work that was not done stays open, in every store, through every call."""

from __future__ import annotations

from datetime import timedelta

import pytest

from effaced.core.clock import ManualClock
from effaced.core.errors import Conflict
from effaced.model import DeadLetterDomain

from .conftest import Store, Work

DAY = timedelta(days=1)
CLOSED = ("resolved", "rejected", "archived")
UNFINISHED = (Work.NOT_DONE, Work.UNDER_WAY)
every_domain = pytest.mark.parametrize("domain", list(DeadLetterDomain))


def take(store: Store, letter_id: str) -> int:
    taken = store.letters.try_acquire_for_replay(letter_id, 2)
    assert taken is not None
    return taken.acquired


@every_domain
@pytest.mark.parametrize("work", UNFINISHED)
class TestWorkThatIsNotDone:
    @pytest.mark.parametrize("status", CLOSED)
    def test_update_status_refuses_to_close(self, store: Store, domain: str, work: Work, status: str) -> None:
        letter_id, _ = store.linked(domain, work)
        with pytest.raises(Conflict):
            store.letters.update_status(letter_id, status, "by_hand", "no longer needed", 7)
        assert (store.status(letter_id), store.get(letter_id).resolution_type) == ("pending", "")

    def test_mark_as_resolved_refuses(self, store: Store, domain: str, work: Work) -> None:
        letter_id, _ = store.linked(domain, work)
        with pytest.raises(Conflict):
            store.letters.mark_as_resolved(letter_id, "by_hand")
        assert store.status(letter_id) == "pending"

    @pytest.mark.parametrize("status", CLOSED)
    def test_a_bulk_update_closes_only_the_others(
        self, store: Store, domain: str, work: Work, status: str
    ) -> None:
        open_id, _ = store.linked(domain, work)
        done_id, _ = store.linked(domain, Work.DONE)
        if status == "archived":
            store.bring(done_id, "resolved")
        assert store.letters.bulk_update_status([open_id, done_id], status) == 1
        assert (store.status(open_id), store.status(done_id)) == ("pending", status)

    def test_a_replay_is_not_completed_as_a_success(self, store: Store, domain: str, work: Work) -> None:
        letter_id, _ = store.linked(domain, work)
        number = take(store, letter_id)
        with pytest.raises(Conflict):
            store.letters.complete_replay(letter_id, True, acquired=number)
        assert store.status(letter_id) == "replaying"

    def test_a_resolution_stored_beforehand_opens_no_door(
        self, store: Store, domain: str, work: Work
    ) -> None:
        letter_id, _ = store.linked(domain, work)
        for status in ("pending", "permanently_failed"):
            store.letters.update_status(letter_id, status, "by_hand")
            with pytest.raises(Conflict):
                store.letters.update_status(letter_id, "resolved")
            assert store.letters.bulk_update_status([letter_id], "resolved") == 0

    def test_a_resolved_one_is_not_archived(
        self, store: Store, now: ManualClock, domain: str, work: Work
    ) -> None:
        letter_id, link = store.linked(domain, Work.DONE)
        store.letters.mark_as_resolved(letter_id, "fixed")
        store.set_work(domain, link, work)
        now.advance(60 * DAY)
        assert store.letters.archive_old_resolved() == 0
        assert store.letters.get_cleanup_stats()["resolved_older_than_30_days"] == 0
        assert store.status(letter_id) == "resolved"

    def test_an_archived_one_is_not_removed(
        self, store: Store, now: ManualClock, domain: str, work: Work
    ) -> None:
        letter_id, link = store.linked(domain, Work.DONE)
        store.bring(letter_id, "archived")
        store.set_work(domain, link, work)
        now.advance(60 * DAY)
        for removed in (store.letters.evict_oldest, store.letters.compress_and_evict_oldest):
            assert removed(10) == 0
        assert store.letters.count_archived_older_than(1) == 0
        assert store.letters.purge_archived(older_than_days=1) == 0
        with pytest.raises(ValueError, match="not done"):
            store.letters.purge_archived(ids=[letter_id])
        with pytest.raises(ValueError, match="not done"):
            store.letters.delete(letter_id)
        assert store.status(letter_id) == "archived"


@every_domain
class TestStaleReplays:
    def test_one_whose_work_is_under_way_is_not_released(
        self, store: Store, now: ManualClock, domain: str
    ) -> None:
        letter_id, _ = store.linked(domain, Work.UNDER_WAY)
        take(store, letter_id)
        now.advance(90 * DAY)
        assert store.letters.release_stale_replaying() == 0
        assert store.status(letter_id) == "replaying"

    def test_one_whose_work_has_ended_is_released(self, store: Store, now: ManualClock, domain: str) -> None:
        letter_id, _ = store.linked(domain, Work.NOT_DONE)
        take(store, letter_id)
        now.advance(DAY)
        assert store.letters.release_stale_replaying() == 1
        assert store.status(letter_id) == "pending"


@every_domain
@pytest.mark.parametrize("status", CLOSED)
def test_work_that_is_done_can_be_closed_archived_and_removed(
    store: Store, now: ManualClock, domain: str, status: str
) -> None:
    letter_id, _ = store.linked(domain, Work.DONE)
    store.bring(letter_id, status)
    now.advance(60 * DAY)
    store.letters.archive_old_resolved()
    assert store.letters.count_archived_older_than(0) == 1
    assert store.letters.purge_archived(older_than_days=0) == 1
    assert store.letters.get_by_id(letter_id) is None
