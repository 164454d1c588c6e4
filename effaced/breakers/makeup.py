"""Making up for what a shared store did not take while it was away."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime

from effaced import clock
from effaced.breakers import machine
from effaced.breakers.change import Change, Rows, stamp
from effaced.breakers.drift import DriftReconciler, DriftReconciliationResult, judge
from effaced.breakers.memory import InMemoryCircuitBreakerStateRepository, Keep, told
from effaced.breakers.model import RESTRICTION, CircuitBreakerStateData, Transition
from effaced.breakers.repository import CircuitBreakerStateRepository
from effaced.breakers.shadow import ShadowLogger

Remembered = Callable[[Collection[str] | None], dict[str, CircuitBreakerStateData]]


@dataclass(frozen=True, slots=True)
class _Resolved:
    row: CircuitBreakerStateData
    was: CircuitBreakerStateData
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
    moment, mine, memory = clock.now(), own.load(names), remembered(names)
    for name in sorted(names):
        known = _the_one([row for row in (mine.get(name), memory.get(name)) if row is not None])
        resolved = shared.change([name], _resolving(name, known))
        if known is not None:
            _record(reconciler, pause, known, resolved.was)
            told(keep, [resolved.transition] if resolved.transition else [], [])
        if resolved.row.version:
            own.put([resolved.row])
        done(name)
        shadow.mark_as_synced(name, up_to=moment)
    return len(names)


def _the_one(rows: list[CircuitBreakerStateData]) -> CircuitBreakerStateData | None:
    """Of what this process knows and what the database remembers: the more restrictive, then the newer."""
    never = datetime.min.replace(tzinfo=clock.now().tzinfo)
    return max(rows, key=lambda row: (RESTRICTION[row.state], row.updated_at or never), default=None)


def _resolving(name: str, known: CircuitBreakerStateData | None) -> Callable[[Rows], Change[_Resolved]]:
    def resolved(rows: Rows) -> Change[_Resolved]:
        current, now = rows[name], clock.now()
        if known is None or _judged(known, current) is not DriftReconciliationResult.L1_WON:
            return Change([], _Resolved(current, current))
        if not current.version:
            row = exists(known)
            return Change([row], _Resolved(row, current))
        if RESTRICTION[known.state] > RESTRICTION[current.state]:
            step = machine.adopt(current, known, now)
        else:
            step = machine.Step(_newer(current, known))
        row = stamp(current, step.data, now)
        return Change([row], _Resolved(row, current, step.transition))

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
    """The same state, as it was known more recently. Trials that are under way stay."""
    return replace(
        known,
        version=current.version,
        generation=max(current.generation, known.generation),
        slots=current.slots,
        slots_given=max(current.slots_given, known.slots_given),
        cooldown_until=max(filter(None, (current.cooldown_until, known.cooldown_until)), default=None),
        cooldown_reason=known.cooldown_reason or current.cooldown_reason,
    )


def exists(row: CircuitBreakerStateData) -> CircuitBreakerStateData:
    """As a row that has been written: version 0 is one that has not."""
    return row if row.version else replace(row, version=1)
