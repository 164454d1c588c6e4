"""The repository in one process's memory: for tests, and for applications that keep nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.deadletters import sla
from effaced.deadletters.change import Change, changed_values
from effaced.deadletters.context import person
from effaced.deadletters.data import DLQCompressedEntry, FailedOperationData
from effaced.deadletters.interface import FailedOperationRepository
from effaced.deadletters.letter import Values, after_failed_try
from effaced.deadletters.memory_letters import LinkedWork as LinkedWork
from effaced.deadletters.memory_letters import MemoryLetters, counts, is_active, linked_to, matching
from effaced.deadletters.memory_summaries import MemorySummaries
from effaced.deadletters.rules import (
    ARCHIVED,
    FORCIBLE,
    OPEN,
    PENDING,
    REPLAYED,
    REPLAYING,
    RESOLVED,
    SETTLED,
    after_failed_replay,
    not_removable,
    purge_choice,
    scarred,
    status_of,
)


class InMemoryFailedOperationRepository(MemoryLetters, FailedOperationRepository):
    """One lock around everything. `linked_work` stands for the outbox that this store does not have."""

    def __init__(
        self,
        keyring: Keyring,
        *,
        linked_work: LinkedWork | None = None,
        sla_thresholds: Mapping[str, timedelta] = sla.THRESHOLDS,
    ) -> None:
        MemoryLetters.__init__(self, linked_work or LinkedWork())
        FailedOperationRepository.__init__(self, keyring)
        self._summaries = MemorySummaries()
        self._sla = sla_thresholds

    def get_by_id(self, id: str) -> FailedOperationData | None:
        with self._lock:
            found = self._one(id)
            return self._out(found) if found else None

    def get_pending_by_domain(self, domain: str, limit: int = 100) -> list[FailedOperationData]:
        return self.find_by_status(PENDING, domain, limit=limit)

    def get_pending_count_by_domain(self, domain: str) -> int:
        return self.count(status=PENDING, domain=domain)

    def update_status(
        self,
        id: str,
        status: str,
        resolution_type: str = "",
        resolution_note: str = "",
        resolved_by_id: int | str | None = None,
        recommended_action: str = "",
    ) -> bool:
        to = status_of(status)
        with self._lock:
            letter = self._one(id)
            if letter is None:
                return False
            self._refuse_undone(letter, to)
            by = person(resolved_by_id)
            wanted = Change(to, resolution=resolution_type, by=by, recommended=recommended_action)
            self._change(letter, wanted, resolution_note)
            return True

    def increment_retry_count(self, id: str) -> bool:
        with self._lock:
            letter = self._one(id)
            if letter is None:
                return False
            now = clock.now()
            letter.update(retry_count=letter["retry_count"] + 1, last_retry_at=now, updated_at=now)
            return True

    def mark_as_resolved(
        self,
        id: str,
        resolution_type: str,
        resolution_note: str = "",
        resolved_by_id: int | str | None = None,
    ) -> bool:
        return self.update_status(id, RESOLVED, resolution_type, resolution_note, resolved_by_id)

    def get_expired_operations(self, before_date: datetime, limit: int = 100) -> list[FailedOperationData]:
        return self._expired(lambda at: at < before_date)[:limit]

    def bulk_update_status(self, ids: list[str], status: str) -> int:
        to = status_of(status)
        with self._lock:
            chosen = {each["id"]: each for id in ids if (each := self._one(id)) is not None}
            may = [each for each in chosen.values() if to not in SETTLED or not self._not_done(each)]
            for letter in may:
                self._change(letter, Change(to))
            return len(may)

    def find_by_status(
        self, status: str, domain: str | None = None, failure_type: str | None = None, limit: int = 100
    ) -> list[FailedOperationData]:
        return self._oldest(matching(status, domain, failure_type), limit)

    def find(
        self,
        *,
        status: str | None = None,
        domain: str | None = None,
        failure_type: str | None = None,
        offset: int = 0,
        limit: int = 100,
    ) -> list[FailedOperationData]:
        found = self._oldest(matching(status, domain, failure_type))
        return found[::-1][offset : offset + limit]

    def count(
        self, *, status: str | None = None, domain: str | None = None, failure_type: str | None = None
    ) -> int:
        return len(self._where(matching(status, domain, failure_type)))

    def count_created_in_window(self, start: datetime, end: datetime) -> int:
        return len(self._where(lambda each: start <= each["created_at"] <= end))

    def find_replayable(
        self,
        max_retries: int,
        domain: str | None = None,
        failure_type: str | None = None,
        limit: int = 100,
    ) -> list[FailedOperationData]:
        fits = matching(PENDING, domain, failure_type)
        return self._oldest(lambda each: fits(each) and each["retry_count"] < each["max_retries"], limit)

    def find_sla_breached(
        self, current_time: datetime, sla_thresholds: dict[str, timedelta]
    ) -> list[FailedOperationData]:
        return self._oldest(
            lambda each: (
                each["status"] in OPEN
                and sla.late_at(each["domain"], each["created_at"], sla_thresholds) <= current_time
            )
        )

    def find_expired(self, current_time: datetime) -> list[FailedOperationData]:
        return self._expired(lambda at: at <= current_time)

    def get_statistics(self) -> dict[str, Any]:
        with self._lock:
            everything, active = list(self._letters.values()), self._where(is_active)
            late = self.find_sla_breached(clock.now(), dict(self._sla))
        return {
            "total": len(everything),
            "active": len(active),
            "by_status": counts("status", everything),
            "by_domain": counts("domain", active),
            "by_failure_type": counts("failure_type", active),
            "sla_breached": dict(Counter(each.domain for each in late)),
            "oldest_active_at": min((each["created_at"] for each in active), default=None),
        }

    def get_facet_counts(
        self, *, status: str | None = None, domain: str | None = None
    ) -> dict[str, dict[str, int]]:
        return {
            "by_status": counts("status", self._where(matching(domain=domain))),
            "by_domain": counts("domain", self._where(matching(status=status))),
        }

    def try_acquire_for_replay(
        self, id: str, max_retries: int, force: bool = False
    ) -> FailedOperationData | None:
        with self._lock:
            letter = self._one(id)
            if letter is None or letter["status"] not in (FORCIBLE if force else (PENDING,)):
                return None
            if not force and letter["retry_count"] >= letter["max_retries"]:
                return None
            now, count = clock.now(), letter["retry_count"]
            if force:
                letter.update(marks=scarred(letter["marks"], count))
            letter.update(
                changed_values(Change(REPLAYING)),
                retry_count=1 if force else count + 1,
                acquired=letter["acquired"] + 1,
                last_retry_at=now,
            )
            return self._out(letter)

    def complete_replay(
        self,
        id: str,
        success: bool,
        resolution_type: str = "",
        note: str = "",
        resolved_by_id: int | str | None = None,
        error_details: dict[str, Any] | None = None,
        *,
        acquired: int,
    ) -> bool:
        with self._lock:
            letter = self._one(id)
            if letter is None or (letter["status"], letter["acquired"]) != (REPLAYING, acquired):
                return False
            if success:
                self._refuse_undone(letter, RESOLVED)
                by = person(resolved_by_id)
                self._change(letter, Change(RESOLVED, resolution=resolution_type or REPLAYED, by=by), note)
                return True
            context = after_failed_try(letter, error_details)
            to = after_failed_replay(letter["retry_count"], letter["max_retries"])
            letter.update(changed_values(Change(to)), context=context)
            return True

    def release_stale_replaying(self, older_than_minutes: int = 30) -> int:
        since = clock.now() - timedelta(minutes=older_than_minutes)
        with self._lock:
            stale = self._where(
                lambda each: (
                    each["status"] is REPLAYING
                    and each["updated_at"] <= since
                    and linked_to(each) not in self._linked_work.under_way
                )
            )
            for letter in stale:
                to = after_failed_replay(letter["retry_count"], letter["max_retries"])
                letter.update(status=to, updated_at=clock.now())
            return len(stale)

    def archive_old_resolved(self, older_than_days: int = 30) -> int:
        since = clock.now() - timedelta(days=older_than_days)
        with self._lock:
            done = self._where(lambda each: self._archivable(each, since))
            for letter in done:
                self._change(letter, Change(ARCHIVED))
            return len(done)

    def purge_archived(self, ids: list[str] | None = None, older_than_days: int | None = None) -> int:
        purge_choice(ids, older_than_days)
        with self._lock:
            chosen: list[Values] = []
            if ids is not None:
                chosen = [each for id in dict.fromkeys(ids) if (each := self._one(id)) is not None]
                if others := [each for each in chosen if not self._removable(each)]:
                    raise not_removable(len(others))
            elif older_than_days is not None:
                chosen = self._purgeable(older_than_days)
            return self._remove(chosen)

    def get_cleanup_stats(self) -> dict[str, Any]:
        month_ago = clock.now() - timedelta(days=30)
        with self._lock:
            return {
                "total": len(self._letters),
                "by_status": counts("status", self._letters.values()),
                "resolved_older_than_30_days": len(
                    self._where(lambda each: self._archivable(each, month_ago))
                ),
                "archived_older_than_90_days": len(self._purgeable(90)),
            }

    def count_archived_older_than(self, older_than_days: int) -> int:
        return len(self._purgeable(older_than_days))

    def count_all(self) -> int:
        return len(self._where(is_active))

    def count_by_domain(self, domain: str) -> int:
        fits = matching(domain=domain)
        return len(self._where(lambda each: is_active(each) and fits(each)))

    def get_oldest_ids(self, count: int, domain: str | None = None) -> list[str]:
        return [each.id for each in self._oldest(matching(domain=domain), max(0, count))]

    def delete(self, entry_id: str) -> bool:
        return self.purge_archived(ids=[entry_id]) == 1

    def evict_oldest(self, count: int, domain: str | None = None) -> int:
        with self._lock:
            return self._remove(self._evictable(count, domain))

    def compress_and_evict_oldest(self, count: int, domain: str | None = None) -> int:
        with self._lock:
            chosen = self._evictable(count, domain)
            self._summaries.sum_up(chosen)
            return self._remove(chosen)

    def store_compressed_entry(self, entry: DLQCompressedEntry) -> bool:
        with self._lock:
            return self._summaries.store(entry)

    def get_compressed_entries(
        self, domain: str | None = None, status: str | None = None, limit: int = 100
    ) -> list[DLQCompressedEntry]:
        with self._lock:
            return self._summaries.find(domain, status)[:limit]

    def get_compressed_summary(self) -> dict[str, Any]:
        with self._lock:
            return self._summaries.totals()

    def update_compressed_status(self, entry_id: str, new_status: str) -> bool:
        with self._lock:
            return self._summaries.move(entry_id, new_status)
