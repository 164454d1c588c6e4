"""What a shared store did not take while it was away, so that it is made up for and can be told.

Of an error the class name is kept and nothing else. A keeper holds the records in the database as well:
a forked job's memory ends with it, and another process has to finish what it left.
"""

from __future__ import annotations

from collections import Counter, deque
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from threading import RLock
from typing import Any, ClassVar, Protocol

from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.core.log import get_logger

_log = get_logger(__name__)
MAX_ENTRIES = 1_000


@dataclass(frozen=True, slots=True)
class L2SyncFailureRecord:
    """One change that did not get through. `error_message` is the error's class name."""

    service_name: str
    intended_state: str
    failure_time: datetime
    error_message: str
    l1_state_at_failure: str
    adapter_type: str = "unknown"
    operation: str = "sync"
    synced_after_recovery: bool = False
    recovery_time: datetime | None = None


class ShadowKeeper(Protocol):
    """Where records outlive the process."""

    def add(self, record: L2SyncFailureRecord) -> None: ...

    def unsynced(self) -> list[L2SyncFailureRecord]: ...

    def mark(self, service_name: str, up_to: datetime) -> int:
        """Mark what failed up to that moment; how many there were."""

    def within(self, session: Session) -> ShadowKeeper:
        """The same in the caller's transaction."""


class ShadowLogger:
    """The newest `max_entries` records of this process. May be used by many threads."""

    _instance: ClassVar[ShadowLogger | None] = None

    def __init__(self, max_entries: int = MAX_ENTRIES, keeper: ShadowKeeper | None = None) -> None:
        self._lock = RLock()
        self._records: deque[L2SyncFailureRecord] = deque()
        self._keeper = keeper
        self.set_max_entries(max_entries)

    @classmethod
    def reset_instance(cls) -> None:
        """Let `get_shadow_logger` make a new one."""
        ShadowLogger._instance = None

    def within(self, session: Session) -> ShadowLogger:
        """The same records; what is kept of them, in the caller's transaction."""
        other = copy(self)
        other._keeper = self._keeper and self._keeper.within(session)
        return other

    def set_max_entries(self, max_entries: int) -> None:
        """Keep so many, beginning now: the oldest go at once."""
        if max_entries < 1:
            raise ValueError("max_entries must be at least 1")
        with self._lock:
            self._max = max_entries
            self._trim()

    def record_sync_failure(
        self,
        service_name: str,
        intended_state: str,
        error: Exception,
        adapter_type: str = "unknown",
        operation: str = "sync",
        *,
        l1_state: str | None = None,
    ) -> None:
        """Note a change that did not get through. `l1_state` is what this process had before it."""
        record = L2SyncFailureRecord(
            service_name=service_name,
            intended_state=intended_state,
            failure_time=clock.now(),
            error_message=getattr(error, "error", None) or type(error).__name__,
            l1_state_at_failure=l1_state if l1_state is not None else intended_state,
            adapter_type=adapter_type,
            operation=operation,
        )
        with self._lock:
            self._records.append(record)
            self._trim()
        if self._keeper is not None:
            try:
                self._keeper.add(record)
            except Exception as trouble:
                _log.error("shadow_record_not_kept", breaker=service_name, error=type(trouble).__name__)

    def get_unsynced_records(self) -> list[L2SyncFailureRecord]:
        return [record for record in self.get_all_records() if not record.synced_after_recovery]

    def get_all_records(self) -> list[L2SyncFailureRecord]:
        with self._lock:
            return list(self._records)

    def unsynced_services(self) -> set[str]:
        """Breakers with something to make up for, also what other processes have left behind."""
        kept = self._keeper.unsynced() if self._keeper is not None else []
        return {record.service_name for record in (*self.get_unsynced_records(), *kept)}

    def mark_as_synced(self, service_name: str, *, up_to: datetime | None = None) -> int:
        """Mark a breaker's records, up to a moment, once their write is confirmed; how many there were."""
        limit = up_to or clock.now()
        with self._lock:
            marked = self._mark(
                lambda record: record.service_name == service_name and record.failure_time <= limit
            )
        kept = self._keeper.mark(service_name, limit) if self._keeper is not None else 0
        return max(marked, kept)

    def mark_all_as_synced(self) -> int:
        return sum(self.mark_as_synced(name) for name in sorted(self.unsynced_services()))

    def get_stats(self) -> dict[str, Any]:
        records = self.get_all_records()
        unsynced = sum(not record.synced_after_recovery for record in records)
        return {
            "total": len(records),
            "unsynced": unsynced,
            "synced": len(records) - unsynced,
            "max_entries": self._max,
            "by_service": dict(Counter(record.service_name for record in records)),
        }

    def clear(self) -> None:
        with self._lock:
            self._records.clear()

    def get_records_by_service(self, service_name: str) -> list[L2SyncFailureRecord]:
        return [record for record in self.get_all_records() if record.service_name == service_name]

    def get_records_by_time_range(
        self, start_time: datetime, end_time: datetime
    ) -> list[L2SyncFailureRecord]:
        """Both ends belong to it."""
        return [record for record in self.get_all_records() if start_time <= record.failure_time <= end_time]

    def analyze_l2_failures(self) -> dict[str, Any]:
        """The outage as a story: how long, whom it concerned, and what would have been written when."""
        records = sorted(self.get_all_records(), key=lambda record: record.failure_time)
        if not records:
            return {"total_failures": 0, "services": {}, "errors": {}, "timeline": []}
        first, last = records[0].failure_time, records[-1].failure_time
        recovered = [record.recovery_time for record in records if record.recovery_time is not None]
        return {
            "total_failures": len(records),
            "unsynced": sum(not record.synced_after_recovery for record in records),
            "first_failure_at": first,
            "last_failure_at": last,
            "recovered_at": max(recovered, default=None),
            "duration_seconds": (max([last, *recovered]) - first).total_seconds(),
            "services": {
                name: [
                    (record.l1_state_at_failure, record.intended_state)
                    for record in records
                    if record.service_name == name
                ]
                for name in sorted({record.service_name for record in records})
            },
            "errors": dict(Counter(record.error_message for record in records)),
            "timeline": [
                {
                    "at": record.failure_time,
                    "service_name": record.service_name,
                    "from": record.l1_state_at_failure,
                    "to": record.intended_state,
                    "operation": record.operation,
                    "synced": record.synced_after_recovery,
                }
                for record in records
            ],
        }

    def _mark(self, wanted: Any) -> int:
        at, marked = clock.now(), 0
        for index, record in enumerate(self._records):
            if not record.synced_after_recovery and wanted(record):
                self._records[index] = replace(record, synced_after_recovery=True, recovery_time=at)
                marked += 1
        return marked

    def _trim(self) -> None:
        while len(self._records) > self._max:
            self._records.popleft()


def get_shadow_logger() -> ShadowLogger:
    """This process's own."""
    if ShadowLogger._instance is None:
        ShadowLogger._instance = ShadowLogger()
    return ShadowLogger._instance
