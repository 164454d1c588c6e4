"""Everything that happens to breakers, once: each function is one atomic change of a store.

The engine, CLI, API, console and the seed-named classes all call these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from effaced.audit.append import Record
from effaced.audit.events import (
    BreakerDeleted,
    BreakerForcedClosed,
    BreakerForcedOpen,
    BreakerReset,
    BreakerUnpinned,
    Event,
)
from effaced.audit.notes import NoteRef, note_fields
from effaced.breakers import machine
from effaced.breakers.admission import Hold, Verdict, admit, record
from effaced.breakers.machine import Step
from effaced.breakers.model import (
    BreakerRole,
    BreakerState,
    CircuitBreakerStateData,
    Transition,
)
from effaced.breakers.outcomes import Outcome
from effaced.breakers.policy import BreakerPolicy
from effaced.breakers.stores.base import BreakerStore, Change, Rows, stamp
from effaced.core.errors import Conflict, Problem, Refused

PIN_MINUTES = 90
LONGEST_PIN = timedelta(days=30)
_CODE = re.compile(r"[A-Za-z0-9_.:\-]{0,64}")
_ACTOR = re.compile(r"system|cli|(officer|api_key):[0-9A-Za-z\-]{1,64}")
Recorded = tuple[Sequence[CircuitBreakerStateData], tuple[Transition, ...]]


# --- calls ---


def start_trials(
    store: BreakerStore, names: Sequence[str], policies: Sequence[BreakerPolicy], role: BreakerRole, most: int
) -> Verdict:
    """Take trial slots in all of these breakers, or in none."""

    def started(rows: Rows) -> Change[Verdict]:
        now = store.now()
        verdict = admit([rows[name] for name in names], policies, role, now, most)
        after = [stamp(rows[row.service_name], row, now) for row in verdict.rows]
        return Change(after, replace(verdict, rows=tuple(after)), verdict.transitions)

    return store.change(names, started)


@dataclass(frozen=True, slots=True)
class Results:
    """The outcomes of admitted calls: of which holds, by which policies, and how many calls were not made."""

    holds: Sequence[Hold]
    policies: Sequence[BreakerPolicy]
    outcomes: Sequence[Outcome]
    unused: int = 0
    jitter: float = 0.0

    def applied(self, rows: Rows, now: datetime) -> Change[Recorded]:
        """The change that counting them makes; its result are the rows as written, and the transitions."""
        after, made = list[CircuitBreakerStateData](), list[Transition]()
        for hold, policy in zip(self.holds, self.policies, strict=True):
            before = rows[hold.service_name]
            row, transitions = record(
                before, policy, hold, self.outcomes, now, unused=self.unused, jitter=self.jitter
            )
            after.append(stamp(before, row, now) if row != before else before)
            made += transitions
        return Change(after, (after, tuple(made)), made)


def record_results(store: BreakerStore, results: Results) -> Recorded:
    """Count outcomes and free slots; the rows as written, and the transitions that this call made."""
    names = [hold.service_name for hold in results.holds]
    return store.change(names, lambda rows: results.applied(rows, store.now()))


# --- one breaker ---


def change_one(
    store: BreakerStore, name: str, step: Callable[[CircuitBreakerStateData, datetime], Step]
) -> Step:
    """Change one breaker; the step with the row as it was written."""

    def applied(rows: Rows) -> Change[Step]:
        now = store.now()
        made = step(rows[name], now)
        after = stamp(rows[name], made.data, now)
        return Change([after], Step(after, made.transition), [made.transition] if made.transition else [])

    return store.change([name], applied)


def set_cooldown(
    store: BreakerStore, name: str, policy: BreakerPolicy, wait: timedelta, reason: str
) -> Transition | None:
    """Allow no call for that long, up to the policy's cap. `reason` is a code."""
    require_code(reason)
    return change_one(store, name, lambda row, now: machine.hold(row, policy, wait, now, reason)).transition


def end_cooldown(store: BreakerStore, name: str) -> Transition | None:
    """End it early; None if there is none that has not ended."""
    return change_one(store, name, machine.release).transition if store.load([name]) else None


def _prune_cooldown(store: BreakerStore, name: str) -> bool:
    """False if there is none, or if it has not ended."""

    def pruned(rows: Rows) -> Change[bool]:
        row, now = rows[name], store.now()
        if row.cooldown_until is None or row.is_cooling(now):
            return Change([], False)
        return Change([stamp(row, machine.end_cooldown(row), now)], True)

    return store.change([name], pruned)


def prune_cooldowns(store: BreakerStore) -> int:
    """Remove the cooldowns that have ended. Returns how many."""
    now = store.now()
    rows = [row for row in store.load_all() if row.cooldown_until is not None and not row.is_cooling(now)]
    return sum(_prune_cooldown(store, row.service_name) for row in rows)


def restart_waits(store: BreakerStore, names: Collection[str] | None = None) -> int:
    """Restart waits that began in the future, because the clock was set back; in how many breakers."""
    now = store.now()
    rows = store.load_all() if names is None else store.load(names).values()
    affected = [row.service_name for row in rows if machine.after_clock_set_back(row, now) != row]
    for name in affected:
        change_one(store, name, lambda row, now: Step(machine.after_clock_set_back(row, now)))
    return len(affected)


# --- manual control: each is an audit event, written with the change ---


def pin(
    store: BreakerStore,
    name: str,
    state: BreakerState,
    *,
    until: datetime | None,
    actor: str,
    note: NoteRef | None = None,
    code: str = "",
) -> tuple[CircuitBreakerStateData, Transition]:
    """Hold it open or closed, whatever the outcomes of calls; the row before, and the transition.

    Without `until` it holds until somebody unpins or resets it.
    """
    require_code(code)
    reason = str(note.note_id) if note else code or None
    type_ = BreakerForcedOpen if state is BreakerState.OPEN else BreakerForcedClosed

    def forced(row: CircuitBreakerStateData, now: datetime) -> Step:
        return machine.force(row, state, now, until=until, actor=actor, reason=reason)

    def event(row: CircuitBreakerStateData) -> Event:
        return type_(breaker=name, previous=row.state.value, until=until, **note_fields(note))

    return _manually(store, name, actor, forced, event)


def unpin(
    store: BreakerStore, name: str, *, actor: str, note: NoteRef | None = None, preserve_reason: bool = False
) -> tuple[CircuitBreakerStateData, Transition]:
    """Remove the pin and nothing else. Conflict if it is not pinned."""

    def unpinned(row: CircuitBreakerStateData, now: datetime) -> Step:
        if row.pinned is None:
            raise Conflict("The breaker is not pinned.")
        return machine.unpin(row, now, actor=actor, preserve_reason=preserve_reason)

    def event(row: CircuitBreakerStateData) -> Event:
        return BreakerUnpinned(breaker=name, previous=row.state.value, **note_fields(note))

    return _manually(store, name, actor, unpinned, event)


def reset(
    store: BreakerStore, name: str, *, actor: str, note: NoteRef | None = None
) -> tuple[CircuitBreakerStateData, Transition]:
    """Close it and clear counters, pin and cooldown."""

    def event(row: CircuitBreakerStateData) -> Event:
        return BreakerReset(breaker=name, previous=row.state.value, **note_fields(note))

    return _manually(store, name, actor, lambda row, now: machine.reset(row, now, actor=actor), event)


def delete(
    store: BreakerStore, name: str, *, actor: str, note: NoteRef | None = None
) -> tuple[CircuitBreakerStateData, Transition] | None:
    """Delete it; None if it does not exist. Its transitions stay, so that no process restores it."""
    if name not in store.load([name]):
        return None

    def event(row: CircuitBreakerStateData) -> Event:
        return BreakerDeleted(breaker=name, previous=row.state.value, **note_fields(note))

    def deleted(row: CircuitBreakerStateData, now: datetime) -> Step:
        return machine.delete(row, now, actor=actor)

    return _manually(store, name, actor, deleted, event, deleted=[name])


def pin_until(
    now: datetime, seconds: float | None, until: datetime | None, *, field: str = "until"
) -> datetime:
    """The end of a pin: 90 minutes from now if neither is given, and at most 30 days.

    `field` is what the caller calls `until`.
    """
    if seconds is not None and until is not None:
        raise _refused(field, "give seconds or until, not both")
    if seconds is not None:
        if not 0 < seconds <= LONGEST_PIN.total_seconds():
            raise _refused("seconds", f"must be over 0 and at most {LONGEST_PIN.total_seconds():.0f}")
        return now + timedelta(seconds=seconds)
    if until is None:
        return now + timedelta(minutes=PIN_MINUTES)
    if until.tzinfo is None:
        raise _refused(field, "must have a time zone")
    if not now < until <= now + LONGEST_PIN:
        raise _refused(field, "must be in the future and at most 30 days away")
    return until


def require_code(reason: str) -> None:
    """Free text belongs in a note, which can be erased."""
    if not _CODE.fullmatch(reason):
        said = "must be a code or a note's id; free text belongs in a note"
        raise Refused(f"The reason {said}.", problems=[Problem("reason", said, code="malformed")])


def _manually(
    store: BreakerStore,
    name: str,
    actor: str,
    step: Callable[[CircuitBreakerStateData, datetime], Step],
    event: Callable[[CircuitBreakerStateData], Event],
    *,
    deleted: Collection[str] = (),
) -> tuple[CircuitBreakerStateData, Transition]:
    _require_actor(actor)

    def changed(rows: Rows) -> Change[tuple[CircuitBreakerStateData, Transition]]:
        row, now = rows[name], store.now()
        made = step(row, now)
        assert made.transition is not None
        after = [] if deleted else [stamp(row, made.data, now)]
        records = [Record(event(row), actor=actor)]
        return Change(after, (row, made.transition), [made.transition], records, deleted)

    return store.change([name], changed)


def _require_actor(actor: str) -> None:
    if not _ACTOR.fullmatch(actor):
        raise _refused("actor", "expected system, cli, officer:ID or api_key:ID")


def _refused(field: str, message: str) -> Refused:
    return Refused(f"The breaker was not changed: {field} {message}.", problems=[Problem(field, message)])
