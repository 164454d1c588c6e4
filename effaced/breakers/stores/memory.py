"""Breakers in the memory of one process, behind a lock."""

from __future__ import annotations

from collections.abc import Collection
from threading import RLock
from typing import TypeVar

from effaced.breakers.model import CircuitBreakerStateData
from effaced.breakers.stores.base import (
    BreakerStore,
    ChangeFunction,
    WriteLog,
    changed_rows,
    with_new_rows,
    write_log,
)

T = TypeVar("T")


class MemoryBreakerStore(BreakerStore):
    """For tests, and for a single process. `log` is passed every transition, in order."""

    def __init__(self, log: WriteLog | None = None) -> None:
        self._rows: dict[str, CircuitBreakerStateData] = {}
        self._lock = RLock()
        self._revision = 0
        self._log = log

    def revision(self) -> int | None:
        return self._revision

    def load(self, names: Collection[str]) -> dict[str, CircuitBreakerStateData]:
        # No lock: rows are immutable, and only replaced.
        rows = self._rows
        return {name: rows[name] for name in names if name in rows}

    def load_all(self) -> list[CircuitBreakerStateData]:
        with self._lock:
            return [self._rows[name] for name in sorted(self._rows)]

    def change(self, names: Collection[str], fn: ChangeFunction[T]) -> T:
        with self._lock:
            before = with_new_rows(sorted(names), self._rows)
            change = fn(before)
            self.put(changed_rows(before, change))
            self.drop(change.deleted)
            write_log(self._log, change)
        return change.result

    def put(self, rows: Collection[CircuitBreakerStateData]) -> None:
        """Replace these rows with copies from another store."""
        if rows:
            with self._lock:
                self._rows |= {row.service_name: row for row in rows}
                self._revision += 1

    def drop(self, names: Collection[str]) -> None:
        if names:
            with self._lock:
                self._rows = {name: row for name, row in self._rows.items() if name not in names}
                self._revision += 1
