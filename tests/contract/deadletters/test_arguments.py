"""Every store refuses the same arguments, by their names, before anything is read or written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from effaced.core.errors import Refused
from effaced.deadletters.data import DLQCompressedEntry
from effaced.deadletters.interface import FailedOperationRepository
from effaced.model import new_id

from .conftest import START, Store

Call = Callable[[FailedOperationRepository], object]
NAIVE = datetime(2026, 3, 2, 9)  # noqa: DTZ001 - that is what is refused
SUMMARY = DLQCompressedEntry(str(new_id()), "message", "Refused", "", 1, START, START, START)


def summary(**changed: Any) -> Call:
    return lambda letters: letters.store_compressed_entry(replace(SUMMARY, **changed))


REFUSED: dict[str, tuple[str, Call]] = {
    "expires_at without zone": ("expires_at", lambda of: of.create("message", "Refused", expires_at=NAIVE)),
    "expires_at too late": (
        "expires_at",
        lambda of: of.create("message", "Refused", expires_at=datetime.max.replace(tzinfo=START.tzinfo)),
    ),
    "before_date without zone": ("before_date", lambda of: of.get_expired_operations(NAIVE)),
    "find_expired without zone": ("current_time", lambda of: of.find_expired(NAIVE)),
    "find_sla_breached without zone": ("current_time", lambda of: of.find_sla_breached(NAIVE, {})),
    "find_sla_breached of an unknown domain": (
        "sla_thresholds",
        lambda of: of.find_sla_breached(START, {"bogus": timedelta(hours=1)}),
    ),
    "find_sla_breached after less than no time": (
        "sla_thresholds",
        lambda of: of.find_sla_breached(START, {"message": timedelta(hours=-1)}),
    ),
    "find_sla_breached after no time": (
        "sla_thresholds",
        lambda of: of.find_sla_breached(START, {"message": timedelta(0)}),
    ),
    "find_sla_breached after longer than a year": (
        "sla_thresholds",
        lambda of: of.find_sla_breached(START, {"message": timedelta(days=366)}),
    ),
    "start without zone": ("start", lambda of: of.count_created_in_window(NAIVE, START)),
    "end without zone": ("end", lambda of: of.count_created_in_window(START, NAIVE)),
    "first_seen without zone": ("first_seen", summary(first_seen=NAIVE)),
    "stale_at without zone": ("stale_at", summary(status="stale", stale_at=NAIVE)),
    "find limit": ("limit", lambda of: of.find(limit=-1)),
    "find offset": ("offset", lambda of: of.find(offset=-1)),
    "find_by_status limit": ("limit", lambda of: of.find_by_status("pending", limit=-1)),
    "get_pending_by_domain limit": ("limit", lambda of: of.get_pending_by_domain("message", limit=-1)),
    "get_expired_operations limit": ("limit", lambda of: of.get_expired_operations(START, limit=-1)),
    "find_replayable limit": ("limit", lambda of: of.find_replayable(2, limit=-1)),
    "get_compressed_entries limit": ("limit", lambda of: of.get_compressed_entries(limit=-1)),
    "limit that no database can count to": ("limit", lambda of: of.find(limit=2**63)),
    "get_oldest_ids count": ("count", lambda of: of.get_oldest_ids(-1)),
    "evict_oldest count": ("count", lambda of: of.evict_oldest(-1)),
    "compress_and_evict_oldest count": ("count", lambda of: of.compress_and_evict_oldest(-1)),
    "summary count": ("count", summary(count=2**31)),
    "retry_count": ("retry_count", lambda of: of.create("message", "Refused", retry_count=-1)),
    "max_retries": ("max_retries", lambda of: of.create("message", "Refused", max_retries=101)),
    "release older_than_minutes": ("older_than_minutes", lambda of: of.release_stale_replaying(-1)),
    "archive older_than_days": ("older_than_days", lambda of: of.archive_old_resolved(-1)),
    "purge older_than_days": ("older_than_days", lambda of: of.purge_archived(older_than_days=-1)),
    "count older_than_days": ("older_than_days", lambda of: of.count_archived_older_than(10**9)),
    "create empty domain": ("domain", lambda of: of.create("", "Refused")),
    "create empty failure_type": ("failure_type", lambda of: of.create("message", "")),
    "create empty entity_id": (
        "entity_id",
        lambda of: of.create("message", "Refused", entity_type="entry", entity_id=""),
    ),
    "create next_action_hint": (
        "next_action_hint",
        lambda of: of.create("message", "Refused", next_action_hint="call Anna"),
    ),
    "find empty status": ("status", lambda of: of.find(status="")),
    "find empty domain": ("domain", lambda of: of.find(domain="")),
    "find failure_type of no class": ("failure_type", lambda of: of.find(failure_type="a\0b")),
    "count unknown status": ("status", lambda of: of.count(status="done")),
    "facets empty domain": ("domain", lambda of: of.get_facet_counts(domain="")),
    "count_by_domain empty": ("domain", lambda of: of.count_by_domain("")),
    "bulk_update_status empty": ("status", lambda of: of.bulk_update_status([], "")),
    "compressed status": ("status", lambda of: of.get_compressed_entries(status="")),
    "resolution_type of an unknown id": (
        "resolution_type",
        lambda of: of.update_status("no id", "resolved", "she called"),
    ),
    "resolution_type of a replay that failed": (
        "resolution_type",
        lambda of: of.complete_replay("no id", False, "she called", acquired=1),
    ),
    "error_details of an unknown id": (
        "error_details.message",
        lambda of: of.complete_replay("no id", False, error_details={"message": "x"}, acquired=1),
    ),
    "compressed status of an unknown id": ("status", lambda of: of.update_compressed_status("no id", "")),
}


@pytest.mark.parametrize("which", REFUSED)
def test_an_argument_that_can_not_be_meant_is_refused_by_its_name(store: Store, which: str) -> None:
    argument, call = REFUSED[which]
    with pytest.raises(Refused) as refused:
        call(store.letters)
    assert isinstance(refused.value, ValueError)
    assert [each.where for each in refused.value.problems] == [argument]
    assert (store.letters.count(), store.letters.get_compressed_entries()) == (0, [])


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("resolved_by_id", {"resolved_by_id": "Anna Berg"}),
        ("resolution_note", {"resolution_note": "   "}),
        ("resolution_note", {"resolution_note": "a" * 2_001}),
        ("resolution_type", {"resolution_type": "she called"}),
        ("recommended_action", {"recommended_action": "call Anna"}),
    ],
)
def test_a_change_with_such_an_argument_changes_nothing(
    store: Store, argument: str, given: dict[str, Any]
) -> None:
    letter_id = store.create()
    before = store.get(letter_id)
    with pytest.raises(Refused) as refused:
        store.letters.update_status(letter_id, "resolved", **given)
    assert isinstance(refused.value, ValueError)
    assert [each.where for each in refused.value.problems] == [argument]
    assert store.get(letter_id) == before


def test_a_failure_type_that_is_empty_finds_nothing(store: Store) -> None:
    store.create()
    assert (store.letters.find(failure_type=""), store.letters.count(failure_type="")) == ([], 0)


def test_a_limit_of_zero_finds_nothing(store: Store) -> None:
    store.create(expires_at=START)
    letters = store.letters
    assert letters.find(limit=0) == letters.find_by_status("pending", limit=0) == []
    assert letters.get_expired_operations(START + timedelta(1), limit=0) == letters.get_oldest_ids(0) == []


def test_a_moment_in_another_zone_is_the_same_moment(store: Store) -> None:
    there = START.astimezone(ZoneInfo("Asia/Tokyo"))
    letter = store.letters.create("message", "Refused", expires_at=there)
    assert letter.expires_at == store.get(letter.id).expires_at == START
    assert store.letters.count_created_in_window(there, there) == 1
