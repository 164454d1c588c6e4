"""Breakers of one process, behind a lock."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from threading import RLock
from typing import TypeVar

from effaced.audit.append import Record
from effaced.breakers.change import Changing, new_rows, to_write
from effaced.breakers.model import CircuitBreakerStateData, Transition
from effaced.breakers.repository import CircuitBreakerStateRepository
from effaced.core.log import get_logger

T = TypeVar("T")
Keep = Callable[[Sequence[Transition], Sequence[Record]], None]
_log = get_logger(__name__)


class InMemoryCircuitBreakerStateRepository(CircuitBreakerStateRepository):
    """For tests, and for one process alone. `keep` is told every transition, in the order of the moves."""

    def __init__(self, keep: Keep | None = None) -> None:
        self._rows: dict[str, CircuitBreakerStateData] = {}
        self._lock = RLock()
        self._edition = 0
        self._keep = keep

    def edition(self) -> int | None:
        return self._edition

    def load(self, names: Collection[str]) -> dict[str, CircuitBreakerStateData]:
        # No lock: rows are never changed, only replaced.
        rows = self._rows
        return {name: rows[name] for name in names if name in rows}

    def load_all(self) -> list[CircuitBreakerStateData]:
        with self._lock:
            return [self._rows[name] for name in sorted(self._rows)]

    def change(self, names: Collection[str], fn: Changing[T]) -> T:
        with self._lock:
            before = new_rows(sorted(names), self._rows)
            change = fn(before)
            self.put(to_write(before, change))
            told(self._keep, change.transitions, change.records)
        return change.result

    def delete(self, name: str) -> bool:
        with self._lock:
            self._edition += 1
            return self._rows.pop(name, None) is not None

    def put(self, rows: Collection[CircuitBreakerStateData]) -> None:
        """Have these rows as they are: what another store says."""
        if rows:
            with self._lock:
                self._rows |= {row.service_name: row for row in rows}
                self._edition += 1


def told(keep: Keep | None, transitions: Sequence[Transition], records: Sequence[Record]) -> None:
    """Hand over what happened. It has happened: whoever can't write it down changes nothing about that."""
    if keep is None or not (transitions or records):
        return
    try:
        keep(transitions, records)
    except Exception as error:
        names = sorted({each.service_name for each in transitions})
        _log.error("breaker_transition_not_kept", breakers=names, error=type(error).__name__)
