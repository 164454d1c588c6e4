"""ShadowLogger: changes that a shared store did not take during an outage, for recovery and for forensics.

Of an error only the class name is kept. Connected to the database, the log is that of all processes: a forked
job's memory ends with it, and another process finishes what it left.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime
from threading import RLock
from typing import Any, ClassVar

from sqlalchemy.orm import Session

from effaced.breakers.layered.outage_log import MOST_RECORDS, L2SyncFailureRecord, OutageLog
from effaced.breakers.model import BreakerState
from effaced.core import clock
from effaced.core.arguments import checked
from effaced.core.errors import Problem, Refused
from effaced.core.log import get_logger

_log = get_logger(__name__)


@checked
class ShadowLogger:
    """The newest `max_entries` records, in memory and, once connected, in the database. Thread-safe."""

    _instance: ClassVar[ShadowLogger | None] = None

    def __init__(self, max_entries: int = MOST_RECORDS, outages: OutageLog | None = None) -> None:
        self._lock = RLock()
        self._records: deque[L2SyncFailureRecord] = deque()
        self._outages = outages
        self.set_max_entries(max_entries)

    @classmethod
    def reset_instance(cls) -> None:
        """Make `get_shadow_logger` create a new instance."""
        ShadowLogger._instance = None

    def connect(self, outages: OutageLog) -> ShadowLogger:
        """Keep records in this database, and read those of all processes from it."""
        self._outages = outages
        return self

    def within(self, session: Session) -> ShadowLogger:
        """The same log; its database records are written in the caller's transaction."""
        other = copy(self)
        other._outages = self._outages and self._outages.within(session)
        return other

    def set_max_entries(self, max_entries: int) -> None:
        """Keep this many in memory; the oldest are dropped at once."""
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
        """Record a change that was not synced. `l1_state` is the state in this process before it."""
        l1_state = intended_state if l1_state is None else l1_state
        for field, state in (("intended_state", intended_state), ("l1_state", l1_state)):
            if state.lower() not in list(BreakerState):
                message = f"must be one of {', '.join(BreakerState)}"
                raise Refused(f"{field} {message}.", problems=[Problem(field, message)])
        record = L2SyncFailureRecord(
            service_name=service_name,
            intended_state=intended_state,
            failure_time=clock.now(),
            error_message=getattr(error, "error", None) or type(error).__name__,
            l1_state_at_failure=l1_state,
            adapter_type=adapter_type,
            operation=operation,
        )
        with self._lock:
            self._records.append(record)
            self._trim()
        if self._outages is not None:
            try:
                self._outages.add(record)
            except Exception as failed:
                _log.error("shadow_record_not_kept", breaker=service_name, error=type(failed).__name__)

    def get_unsynced_records(self) -> list[L2SyncFailureRecord]:
        return [record for record in self.get_all_records() if not record.synced_after_recovery]

    def get_all_records(self) -> list[L2SyncFailureRecord]:
        """Oldest first: those in the database if connected, else those in memory."""
        if self._outages is not None:
            return self._outages.records()
        with self._lock:
            return list(self._records)

    def unsynced_services(self) -> set[str]:
        """Breakers with changes to reconcile, including those that other processes left."""
        with self._lock:
            own = {record.service_name for record in self._records if not record.synced_after_recovery}
        return own | (self._outages.unsynced_services() if self._outages is not None else set())

    def mark_as_synced(self, service_name: str, *, up_to: datetime | None = None) -> int:
        """Mark a breaker's records, up to a moment, once their write is confirmed.

        Returns how many there were.
        """
        limit, at, marked = up_to or clock.now(), clock.now(), 0
        with self._lock:
            for index, record in enumerate(self._records):
                mine = record.service_name == service_name and record.failure_time <= limit
                if mine and not record.synced_after_recovery:
                    self._records[index] = replace(record, synced_after_recovery=True, recovery_time=at)
                    marked += 1
        kept = self._outages.mark_as_synced(service_name, limit) if self._outages is not None else 0
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
        """Forget what is in memory. What is in the database stays."""
        with self._lock:
            self._records.clear()

    def get_records_by_service(self, service_name: str) -> list[L2SyncFailureRecord]:
        return [record for record in self.get_all_records() if record.service_name == service_name]

    def get_records_by_time_range(
        self, start_time: datetime, end_time: datetime
    ) -> list[L2SyncFailureRecord]:
        """Both ends are included."""
        return [record for record in self.get_all_records() if start_time <= record.failure_time <= end_time]

    def analyze_l2_failures(self) -> dict[str, Any]:
        return analyze_failures(self.get_all_records())

    def _trim(self) -> None:
        while len(self._records) > self._max:
            self._records.popleft()


def analyze_failures(records: Sequence[L2SyncFailureRecord]) -> dict[str, Any]:
    """The outage as a timeline: its duration, the breakers concerned, and the changes that were missed."""
    records = sorted(records, key=lambda record: record.failure_time)
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


def get_shadow_logger() -> ShadowLogger:
    """The process's instance, connected to the database where breakers are in Redis."""
    if ShadowLogger._instance is None:
        ShadowLogger._instance = ShadowLogger()
    return ShadowLogger._instance
