"""The contract of a breaker store: `load`, `load_all` and one atomic `change`. All rules are above it.

`change` gives a function the current rows, exclusively, and stores what it returns; it may call the function
again if another writer was faster. So exactly one caller sees each transition, whatever the store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Generic, TypeVar

from sqlalchemy.orm import Session

from effaced.audit.append import Record
from effaced.breakers.machine import without_expired
from effaced.breakers.model import CircuitBreakerStateData, Transition
from effaced.core import clock
from effaced.core.log import get_logger

T = TypeVar("T")
Rows = Mapping[str, CircuitBreakerStateData]
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What a change function decided: rows to write (from `stamp`), names to delete, and its result.

    Transitions and audit records are written with it, or not at all.
    """

    rows: Sequence[CircuitBreakerStateData]
    result: T
    transitions: Sequence[Transition] = ()
    records: Sequence[Record] = ()
    deleted: Collection[str] = ()


ChangeFunction = Callable[[Rows], Change[T]]
# Writes transitions and audit records to the database.
WriteLog = Callable[[Sequence[Transition], Sequence[Record]], None]


class BreakerStore(ABC):
    """Breakers by name: `resolver:crm` and `host:api.example`."""

    @abstractmethod
    def load(self, names: Collection[str]) -> dict[str, CircuitBreakerStateData]:
        """Those of the breakers that exist."""

    @abstractmethod
    def load_all(self) -> list[CircuitBreakerStateData]:
        """All of them, by name."""

    @abstractmethod
    def change(self, names: Collection[str], fn: ChangeFunction[T]) -> T:
        """Let `fn` change those breakers, all or none. A breaker without a row is passed as a new one."""

    def now(self) -> datetime:
        """The current time for all who share the store."""
        return clock.now()

    def within(self, session: Session) -> BreakerStore:
        """The same store, in the caller's transaction as far as it can be."""
        return self

    def revision(self) -> int | None:
        """A number that stays the same while no breaker changes; None if that can't be known without I/O."""
        return None

    def recently_deleted(self, names: Collection[str]) -> set[str]:
        """Those of the names that were deleted a short while ago, for whoever keeps copies of rows."""
        return set()

    @property
    def is_away(self) -> bool:
        """Whether rows are only the last known ones, because the store behind does not answer."""
        return False


@lru_cache(maxsize=4_096)
def new_row(name: str) -> CircuitBreakerStateData:
    return CircuitBreakerStateData(name)


def with_new_rows(names: Collection[str], found: Rows) -> dict[str, CircuitBreakerStateData]:
    """All of these breakers; a new row for each that does not exist."""
    return {name: found.get(name) or new_row(name) for name in names}


def stamp(
    before: CircuitBreakerStateData, after: CircuitBreakerStateData, now: datetime
) -> CircuitBreakerStateData:
    """The row to write, with its next version; an unchanged row as it is."""
    if before == after and before.version:
        return before
    return replace(without_expired(after, now), version=before.version + 1, updated_at=now)


def changed_rows(before: Rows, change: Change[T]) -> list[CircuitBreakerStateData]:
    return [row for row in change.rows if row.version != before[row.service_name].version]


def write_log(write: WriteLog | None, change: Change[T]) -> None:
    """Log a change that a store without transactions has already made. A failure can't undo it."""
    if write is None or not (change.transitions or change.records):
        return
    try:
        write(change.transitions, change.records)
    except Exception as error:
        names = sorted({each.service_name for each in change.transitions})
        _log.error("breaker_transition_not_logged", breakers=names, error=type(error).__name__)
