"""The summaries of the in-memory repository. Its lock is held around every call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from effaced.core import clock
from effaced.deadletters.context import as_uuid, code
from effaced.deadletters.data import DLQCompressedEntry, DLQCompressedStatus
from effaced.deadletters.letter import Values
from effaced.deadletters.rules import domain_of
from effaced.deadletters.summaries import BEFORE, STAMP, compressed_status
from effaced.model import new_id


class MemorySummaries:
    """One active entry per kind."""

    def __init__(self) -> None:
        self._entries: dict[str, DLQCompressedEntry] = {}

    def sum_up(self, letters: Iterable[Values]) -> None:
        for each in letters:
            self.store(
                DLQCompressedEntry(
                    id=str(new_id()),
                    domain=each["domain"].value,
                    failure_type=each["failure_type"],
                    error_code=each["error_code"],
                    count=1,
                    first_seen=each["created_at"],
                    last_seen=each["created_at"],
                    compressed_at=clock.now(),
                )
            )

    def store(self, entry: DLQCompressedEntry) -> bool:
        if as_uuid(entry.id) is None or entry.count < 1 or entry.id in self._entries:
            return False
        domain_of(entry.domain)
        code("failure_type", entry.failure_type, 255, needed=True)
        code("error_code", entry.error_code, 64)
        there = self._active(entry) if compressed_status(entry.status) is DLQCompressedStatus.ACTIVE else None
        self._entries[there.id if there else entry.id] = _added(there, entry) if there else entry
        return True

    def find(self, domain: str | None, status: str | None) -> list[DLQCompressedEntry]:
        domain = domain_of(domain).value if domain is not None else None
        status = compressed_status(status).value if status is not None else None
        found = [
            each
            for each in self._entries.values()
            if domain in (None, each.domain) and status in (None, each.status)
        ]
        found.sort(key=lambda each: each.id)
        return sorted(found, key=lambda each: each.last_seen, reverse=True)

    def totals(self) -> dict[str, Any]:
        by_status: Counter[str] = Counter()
        by_domain: Counter[str] = Counter()
        for each in self._entries.values():
            by_status[str(each.status)] += each.count
            by_domain[each.domain] += each.count
        return {
            "entries": len(self._entries),
            "letters": sum(by_status.values()),
            "by_status": dict(by_status),
            "by_domain": dict(by_domain),
        }

    def move(self, entry_id: str, to: str) -> bool:
        status, there = compressed_status(to), self._entries.get(str(as_uuid(entry_id)))
        if there is None or there.status not in BEFORE.get(status, ()):
            return False
        stamp: dict[str, Any] = {STAMP[status]: clock.now()}
        self._entries[there.id] = replace(there, status=status, **stamp)
        return True

    def _active(self, like: DLQCompressedEntry) -> DLQCompressedEntry | None:
        kind = (like.domain, like.failure_type, like.error_code, DLQCompressedStatus.ACTIVE)
        found = (
            each
            for each in self._entries.values()
            if (each.domain, each.failure_type, each.error_code, each.status) == kind
        )
        return next(found, None)


def _added(there: DLQCompressedEntry, more: DLQCompressedEntry) -> DLQCompressedEntry:
    return replace(
        there,
        count=there.count + more.count,
        first_seen=min(there.first_seen, more.first_seen),
        last_seen=max(there.last_seen, more.last_seen),
        compressed_at=more.compressed_at,
    )
