"""FailedOperationRepository: dead letters for applications that embed effaced.

Names and arguments are those that callers of such repositories know. Where a call could lose an erasure or
keep something personal, it is stricter: see docs/reference/deadletters.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from typing import Any

from effaced.core.arguments import checked
from effaced.deadletters.data import DLQCompressedEntry, FailedOperationData
from effaced.deadletters.rules import MAX_RETRIES, PENDING, RESOLVED


@checked
class FailedOperationRepository(ABC):
    """A store of dead letters.

    Ids are opaque strings; a malformed one matches nothing. An argument that can't be meant (an unknown
    status, a negative limit, a moment without a time zone) is refused by its name, with a ValueError. What
    the state of a dead letter does not allow is a Conflict.
    """

    @abstractmethod
    def create(
        self,
        domain: str,
        failure_type: str,
        error_message: str = "",
        error_code: str = "",
        entity_type: str | None = None,
        entity_id: str | None = None,
        entity_refs: dict[str, Any] | None = None,
        user_id: int | str | None = None,
        snapshot_data: dict[str, Any] | None = None,
        request_data: dict[str, Any] | None = None,
        response_data: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        retry_count: int = 0,
        max_retries: int = MAX_RETRIES,
        next_action_hint: str = "",
        recommended_action: str = "",
        expires_at: datetime | None = None,
    ) -> FailedOperationData:
        """A new dead letter, pending. A Conflict if there is already one for the same work.

        `user_id` is kept as a keyed hash, data by listed keys only; an `error_message` is refused.
        """

    @abstractmethod
    def get_by_id(self, id: str) -> FailedOperationData | None: ...

    def get_pending_by_domain(self, domain: str, limit: int = 100) -> list[FailedOperationData]:
        """Oldest first."""
        return self.find_by_status(PENDING, domain, limit=limit)

    def get_pending_count_by_domain(self, domain: str) -> int:
        return self.count(status=PENDING, domain=domain)

    @abstractmethod
    def update_status(
        self,
        id: str,
        status: str,
        resolution_type: str = "",
        resolution_note: str = "",
        resolved_by_id: int | str | None = None,
        recommended_action: str = "",
    ) -> bool:
        """Whether there is such a dead letter. Empty texts keep what is stored.

        A Conflict if its status can't become that one, or its work was not done and would be closed.
        """

    @abstractmethod
    def increment_retry_count(self, id: str) -> bool: ...

    def mark_as_resolved(
        self,
        id: str,
        resolution_type: str,
        resolution_note: str = "",
        resolved_by_id: int | str | None = None,
    ) -> bool:
        return self.update_status(id, RESOLVED, resolution_type, resolution_note, resolved_by_id)

    @abstractmethod
    def get_expired_operations(self, before_date: datetime, limit: int = 100) -> list[FailedOperationData]:
        """Those that expire before that moment, the first to expire first."""

    @abstractmethod
    def bulk_update_status(self, ids: list[str], status: str) -> int:
        """How many were changed: those that `update_status` would not refuse."""

    @abstractmethod
    def find_by_status(
        self, status: str, domain: str | None = None, failure_type: str | None = None, limit: int = 100
    ) -> list[FailedOperationData]:
        """Oldest first."""

    @abstractmethod
    def find(
        self,
        *,
        status: str | None = None,
        domain: str | None = None,
        failure_type: str | None = None,
        offset: int = 0,
        limit: int = 100,
    ) -> list[FailedOperationData]:
        """Newest first, of every status unless one is named."""

    @abstractmethod
    def count(
        self, *, status: str | None = None, domain: str | None = None, failure_type: str | None = None
    ) -> int: ...

    @abstractmethod
    def count_created_in_window(self, start: datetime, end: datetime) -> int:
        """Both ends belong to the window, and every status counts."""

    @abstractmethod
    def find_replayable(
        self,
        max_retries: int,
        domain: str | None = None,
        failure_type: str | None = None,
        limit: int = 100,
    ) -> list[FailedOperationData]:
        """Pending and below the cap. The stored cap decides, whatever `max_retries` says."""

    @abstractmethod
    def find_sla_breached(
        self, current_time: datetime, sla_thresholds: dict[str, timedelta]
    ) -> list[FailedOperationData]:
        """Open for longer than their domain's threshold, or 24 hours; oldest first.

        An unknown domain, or a threshold of no time, is a ValueError.
        """

    @abstractmethod
    def find_expired(self, current_time: datetime) -> list[FailedOperationData]:
        """The first to expire first; those that never expire are left out."""

    @abstractmethod
    def get_statistics(self) -> dict[str, Any]: ...

    @abstractmethod
    def get_facet_counts(
        self, *, status: str | None = None, domain: str | None = None
    ) -> dict[str, dict[str, int]]:
        """`by_status` under the chosen domain, `by_domain` under the chosen status."""

    @abstractmethod
    def try_acquire_for_replay(
        self, id: str, max_retries: int, force: bool = False
    ) -> FailedOperationData | None:
        """Acquire a dead letter for a replay; of many callers one gets it. The stored cap decides."""

    @abstractmethod
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
        """Whether it counted: only under the number `acquired` that acquiring returned.

        A Conflict if it succeeded and its work was not done.
        """

    @abstractmethod
    def release_stale_replaying(self, older_than_minutes: int = 30) -> int: ...

    @abstractmethod
    def archive_old_resolved(self, older_than_days: int = 30) -> int: ...

    @abstractmethod
    def purge_archived(self, ids: list[str] | None = None, older_than_days: int | None = None) -> int:
        """Remove archived dead letters for good. With neither argument none; with both a ValueError."""

    @abstractmethod
    def get_cleanup_stats(self) -> dict[str, Any]: ...

    @abstractmethod
    def count_archived_older_than(self, older_than_days: int) -> int:
        """How many a purge with the same number would remove."""

    @abstractmethod
    def count_all(self) -> int:
        """Without those that are resolved, rejected or archived."""

    @abstractmethod
    def count_by_domain(self, domain: str) -> int:
        """Without those that are resolved, rejected or archived."""

    @abstractmethod
    def get_oldest_ids(self, count: int, domain: str | None = None) -> list[str]: ...

    def delete(self, entry_id: str) -> bool:
        """Remove one archived dead letter; a ValueError if it is not archived."""
        return self.purge_archived(ids=[entry_id]) == 1

    @abstractmethod
    def evict_oldest(self, count: int, domain: str | None = None) -> int:
        """Remove the oldest archived dead letters. If there are too few, that is logged as an error."""

    @abstractmethod
    def compress_and_evict_oldest(self, count: int, domain: str | None = None) -> int:
        """The same, with a summary of each kind left behind."""

    @abstractmethod
    def store_compressed_entry(self, entry: DLQCompressedEntry) -> bool: ...

    @abstractmethod
    def get_compressed_entries(
        self, domain: str | None = None, status: str | None = None, limit: int = 100
    ) -> list[DLQCompressedEntry]:
        """Last seen first."""

    @abstractmethod
    def get_compressed_summary(self) -> dict[str, Any]: ...

    @abstractmethod
    def update_compressed_status(self, entry_id: str, new_status: str) -> bool:
        """active, stale, archived: forwards only. Whether it changed."""
