"""Making up for what a shared store did not take while it was away."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from effaced.breakers import machine
from effaced.breakers.change import Change, Rows, stamp
from effaced.breakers.drift import DriftReconciler, DriftReconciliationResult, judge
from effaced.breakers.memory import InMemoryCircuitBreakerStateRepository, Keep, told
from effaced.breakers.model import RESTRICTION, CircuitBreakerStateData, Transition
from effaced.breakers.repository import CircuitBreakerStateRepository
from effaced.breakers.shadow import ShadowLogger
from effaced.core import clock

Remembered = Callable[[Collection[str] | None], dict[str, CircuitBreakerStateData]]


@dataclass(frozen=True, slots=True)
class _Resolved:
    row: CircuitBreakerStateData
    was: CircuitBreakerStateData
    known: CircuitBreakerStateData | None
    transition: Transition | None = None


def make_up(
    names: Collection[str],
    *,
    own: InMemoryCircuitBreakerStateRepository,
    shared: CircuitBreakerStateRepository,
    remembered: Remembered,
    reconciler: DriftReconciler,
    shadow: ShadowLogger,
    keep: Keep | None,
    pause: float,
    done: Callable[[str], None],
) -> int:
    """Bring both together, breaker by breaker. One is marked only when the shared store has confirmed it."""
    if not names:
        return 0
    moment, now, mine, memory = clock.now(), shared.now(), own.load(names), remembered(names)
    for name in sorted(names):
        resolved = shared.change([name], _resolving(name, mine.get(name), memory.get(name), now))
        if resolved.known is not None:
            _record(reconciler, pause, resolved.known, resolved.was)
            told(keep, [resolved.transition] if resolved.transition else [], [])
        if resolved.row.version:
            own.put([resolved.row])
        done(name)
        shadow.mark_as_synced(name, up_to=moment)
    return len(names)


def better(
    own: CircuitBreakerStateData | None, memory: CircuitBreakerStateData | None
) -> CircuitBreakerStateData | None:
    """Of what a process knows and what the database remembers: the more restrictive, then the newer.

    Where both tell of the same move a process's own row does, which has more to tell; what a person has
    done since then comes before both.
    """
    if own is None or memory is None:
        return own or memory
    if _same_move(own, memory):
        return own
    if _is_word(memory, own):
        return memory
    never = datetime.min.replace(tzinfo=UTC)
    return max(own, memory, key=lambda row: (RESTRICTION[row.state], row.updated_at or never))


def _is_word(memory: CircuitBreakerStateData, row: CircuitBreakerStateData) -> bool:
    """Whether the last move was a person's, and the row is from before it."""
    if memory.reason not in machine.MANUAL or _same_move(memory, row):
        return False
    newer = row.updated_at is None or (memory.updated_at is not None and memory.updated_at > row.updated_at)
    return newer or memory.generation > row.generation


def _same_move(one: CircuitBreakerStateData, other: CircuitBreakerStateData) -> bool:
    return (one.generation, one.reason) == (other.generation, other.reason)


def _resolving(
    name: str,
    mine: CircuitBreakerStateData | None,
    memory: CircuitBreakerStateData | None,
    now: datetime,
) -> Callable[[Rows], Change[_Resolved]]:
    def resolved(rows: Rows) -> Change[_Resolved]:
        current = rows[name]
        # Who has the row itself need not be reminded of the move that led to it.
        known = better(mine, None if memory and _same_move(memory, current) else memory)
        if known is None:
            return Change([], _Resolved(current, current, None))
        if not current.version:
            row = exists(known)
            return Change([row], _Resolved(row, current, known))
        if memory is not None and _is_word(memory, current):
            row = stamp(current, machine.obey(current, known), now)
            return Change([row], _Resolved(row, current, None))
        if _judged(known, current) is not DriftReconciliationResult.L1_WON:
            # Whoever is right: what a vendor has asked for was asked of all.
            row = stamp(current, machine.cooled(current, known), now)
            return Change([row], _Resolved(row, current, known))
        if RESTRICTION[known.state] > RESTRICTION[current.state]:
            step = machine.adopt(current, known, now)
        else:
            step = machine.Step(_newer(current, known))
        row = stamp(current, step.data, now)
        return Change([row], _Resolved(row, current, known, step.transition))

    return resolved


def _judged(known: CircuitBreakerStateData, current: CircuitBreakerStateData) -> DriftReconciliationResult:
    return judge(known.state, _state(current), known.updated_at, current.updated_at)


def _state(current: CircuitBreakerStateData) -> str:
    return current.state.value if current.version else ""


def _record(
    reconciler: DriftReconciler, pause: float, known: CircuitBreakerStateData, was: CircuitBreakerStateData
) -> None:
    def record() -> None:
        reconciler.reconcile(
            known.service_name, known.state.value, _state(was), known.updated_at, was.updated_at
        )

    reconciler.after_pause(pause, record)


def _newer(current: CircuitBreakerStateData, known: CircuitBreakerStateData) -> CircuitBreakerStateData:
    """The same state, as it was known more recently. Trials stay but those that have ended meanwhile."""
    under_way = {slot.number for slot in known.slots}
    slots = tuple(
        each for each in current.slots if each.number > known.slots_given or each.number in under_way
    )
    newer = replace(
        known,
        version=current.version,
        generation=max(current.generation, known.generation),
        slots=slots,
        slots_given=max(current.slots_given, known.slots_given),
    )
    return machine.cooled(newer, current)


def exists(row: CircuitBreakerStateData) -> CircuitBreakerStateData:
    """As a row that has been written: version 0 is one that has not."""
    return row if row.version else replace(row, version=1)
