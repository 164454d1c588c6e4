"""What a function makes of breakers that it has to itself for a moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Generic, TypeVar

from effaced.audit.append import Record
from effaced.breakers.machine import tidied
from effaced.breakers.model import CircuitBreakerStateData, Transition

T = TypeVar("T")
Rows = Mapping[str, CircuitBreakerStateData]


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """The rows as they shall be, each from `stamp`; what is to be told of it; and the answer."""

    rows: Sequence[CircuitBreakerStateData]
    result: T
    transitions: Sequence[Transition] = ()
    records: Sequence[Record] = ()


Changing = Callable[[Rows], Change[T]]


def stamp(
    before: CircuitBreakerStateData, after: CircuitBreakerStateData, now: datetime
) -> CircuitBreakerStateData:
    """The row as it is written: with its next version, unless it is there and as it was."""
    if before == after and before.version:
        return before
    return replace(tidied(after, now), version=before.version + 1, updated_at=now)


def to_write(before: Rows, change: Change[T]) -> list[CircuitBreakerStateData]:
    """Those of the rows that have changed."""
    return [row for row in change.rows if row.version != before[row.service_name].version]


def new_rows(names: Sequence[str], found: Rows) -> dict[str, CircuitBreakerStateData]:
    """All of those breakers; who is not there yet is new."""
    return {name: found.get(name) or new_row(name) for name in names}


@lru_cache(maxsize=4_096)
def new_row(name: str) -> CircuitBreakerStateData:
    return CircuitBreakerStateData(name)
