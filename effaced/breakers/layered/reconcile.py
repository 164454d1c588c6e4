"""Reconciles a process's memory with a shared store after an outage."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from effaced.breakers import machine
from effaced.breakers.layered.drift import DriftReconciler, DriftReconciliationResult, judge
from effaced.breakers.layered.outage_log import OutageLog
from effaced.breakers.layered.shadow import ShadowLogger
from effaced.breakers.model import (
    COOLDOWN_ENDED,
    RESTRICTION,
    RETRY_AFTER,
    BreakerEvent,
    CircuitBreakerStateData,
    Transition,
)
from effaced.breakers.stores.base import BreakerStore, Change, Rows, WriteLog, stamp, write_log
from effaced.breakers.stores.memory import MemoryBreakerStore
from effaced.core import clock

# Reads breakers as their latest transitions in the database left them.
ReadLog = Callable[[Collection[str] | None], dict[str, CircuitBreakerStateData]]


@dataclass(frozen=True, slots=True)
class TransitionLog:
    """The log of transitions in the database: how breakers were left, and writing it."""

    read: ReadLog
    write: WriteLog


@dataclass(frozen=True, slots=True)
class _Resolved:
    row: CircuitBreakerStateData
    was: CircuitBreakerStateData
    known: CircuitBreakerStateData | None
    transition: Transition | None = None


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The parts: a process's memory, the shared store, the log of transitions, and the records."""

    memory: MemoryBreakerStore
    shared: BreakerStore
    read_log: ReadLog
    log: WriteLog | None
    reconciler: DriftReconciler
    shadow: ShadowLogger
    outages: OutageLog | None

    def run(self, names: Collection[str], pause: float, synced: Callable[[str], None]) -> int:
        """Reconcile these breakers one by one. Each is marked only once the shared store has confirmed it."""
        if not names:
            return 0
        moment, now = clock.now(), self.shared.now()
        own, logged = self.memory.load(names), self.read_log(names)
        for name in sorted(names):
            resolved = self.shared.change(
                [name], _reconciling_change(name, own.get(name), logged.get(name), now)
            )
            if resolved.known is not None:
                self._record(pause, resolved.known, resolved.was)
                made = [resolved.transition] if resolved.transition else []
                write_log(self.log, Change([], None, made))
            if resolved.row.version:
                self.memory.put([resolved.row])
            synced(name)
            self.shadow.mark_as_synced(name, up_to=moment)
        return len(names)

    def _record(self, pause: float, known: CircuitBreakerStateData, was: CircuitBreakerStateData) -> None:
        def record() -> None:
            made = self.reconciler.reconcile_and_record(
                known.service_name, known.state.value, _state(was), known.updated_at, was.updated_at
            )
            if self.outages is not None:
                self.outages.add_drift(made)

        self.reconciler.after_pause(pause, record)


def best_known(
    own: CircuitBreakerStateData | None, logged: CircuitBreakerStateData | None
) -> CircuitBreakerStateData | None:
    """Of a process's own row and the log's: the more restrictive, then the newer. None if it was deleted.

    If both are of the same transition, the process's own row has more detail. What a person did since then
    wins over both.
    """
    if logged is not None and logged.reason == BreakerEvent.DELETED:
        return own if own is not None and _newer_than(own, logged) else None
    if own is None or logged is None:
        return own or logged
    if _same_transition(own, logged):
        return machine.longer_cooldown(own, logged)
    if _manual_since(logged, own):
        return logged
    never = datetime.min.replace(tzinfo=UTC)
    return max(own, logged, key=lambda row: (RESTRICTION[row.state], row.updated_at or never))


def _manual_since(logged: CircuitBreakerStateData, row: CircuitBreakerStateData) -> bool:
    """Whether the last transition was made by a person, and the row is from before it."""
    if logged.reason not in machine.MANUAL or _same_transition(logged, row):
        return False
    return not _newer_than(row, logged, or_equal=True) or logged.generation > row.generation


def _newer_than(
    row: CircuitBreakerStateData, logged: CircuitBreakerStateData, *, or_equal: bool = False
) -> bool:
    if row.updated_at is None or logged.updated_at is None:
        return False
    return row.updated_at > logged.updated_at or (or_equal and row.updated_at == logged.updated_at)


def _same_transition(one: CircuitBreakerStateData, other: CircuitBreakerStateData) -> bool:
    if one.generation != other.generation:
        return False
    # A hold and its end are logged with the generation in which they are.
    reasons = {one.reason, other.reason}
    return len(reasons) == 1 or not reasons.isdisjoint((RETRY_AFTER, COOLDOWN_ENDED))


def _reconciling_change(
    name: str,
    own: CircuitBreakerStateData | None,
    logged: CircuitBreakerStateData | None,
    now: datetime,
) -> Callable[[Rows], Change[_Resolved]]:
    """Decides between the row of the shared store, this process's own and what the log says of it."""

    def resolve(rows: Rows) -> Change[_Resolved]:
        current = rows[name]
        # If the shared store has the row itself, the log of the transition that led to it adds nothing.
        known = best_known(own, None if logged and _same_transition(logged, current) else logged)
        if known is None:
            return Change([], _Resolved(current, current, None))
        if not current.version:
            row = as_stored(known)
            return Change([row], _Resolved(row, current, known))
        if logged is not None and _manual_since(logged, current):
            row = stamp(current, machine.replace_with(current, known), now)
            return Change([row], _Resolved(row, current, None))
        if judge(known.state, _state(current), known.updated_at, current.updated_at) is not _L1_WON:
            # Whichever row wins: a cooldown that a vendor asked for applies to all.
            row = stamp(current, machine.longer_cooldown(current, known), now)
            return Change([row], _Resolved(row, current, known))
        if RESTRICTION[known.state] > RESTRICTION[current.state]:
            step = machine.adopt(current, known, now)
        else:
            step = machine.Step(_updated(current, known))
        row = stamp(current, step.data, now)
        return Change([row], _Resolved(row, current, known, step.transition))

    return resolve


_L1_WON = DriftReconciliationResult.L1_WON


def _state(current: CircuitBreakerStateData) -> str:
    """Empty for a row that does not exist."""
    return current.state.value if current.version else ""


def _updated(current: CircuitBreakerStateData, known: CircuitBreakerStateData) -> CircuitBreakerStateData:
    """The same state with newer details. Trials stay, except those that ended during the outage."""
    in_progress = {slot.number for slot in known.slots}
    slots = tuple(
        each for each in current.slots if each.number > known.slots_given or each.number in in_progress
    )
    newer = replace(
        known,
        version=current.version,
        generation=max(current.generation, known.generation),
        slots=slots,
        slots_given=max(current.slots_given, known.slots_given),
    )
    return machine.longer_cooldown(newer, current)


def as_stored(row: CircuitBreakerStateData) -> CircuitBreakerStateData:
    """As a row that has been written: version 0 means that it never was."""
    return row if row.version else replace(row, version=1)
