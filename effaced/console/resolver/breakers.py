"""Breakers as pages show them: the state in a word, until when, and whose hand is on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from sqlalchemy.orm import Session

from effaced.accounts.actors import names_of
from effaced.audit.notes import read_notes
from effaced.breakers import transitions
from effaced.breakers.admission import effective_state
from effaced.breakers.model import BreakerState, CircuitBreakerStateData
from effaced.breakers.stores.base import new_row
from effaced.console.current import runtime
from effaced.console.words import Circuit
from effaced.core import clock
from effaced.triage.systems import breakers_of

Rows = Mapping[str, CircuitBreakerStateData]
_PLAIN = {
    BreakerState.CLOSED: Circuit.CLOSED,
    BreakerState.OPEN: Circuit.OPEN,
    BreakerState.HALF_OPEN: Circuit.TRIAL,
}
_HELD = {BreakerState.OPEN: Circuit.HELD_OPEN, BreakerState.CLOSED: Circuit.HELD_CLOSED}


@dataclass(frozen=True, slots=True)
class BreakerView:
    """One breaker. `until` is when its wait, its pin or a vendor's pause is over; `by` holds it, and why.

    `since` is when it ceased to be closed: a failed trial opens it anew, and that is not it. `failures` are
    in a row, calls of every kind together; `opens_at` is how many of them open it, where that is one number.
    """

    name: str
    circuit: Circuit
    blocks: bool
    until: datetime | None
    since: datetime | None
    failures: int
    opens_at: int | None = None
    by: str | None = None
    why: str | None = None

    @property
    def key(self) -> str:
        """The name without its scope: the resolver or the host."""
        return self.name.partition(":")[2]

    @property
    def held(self) -> bool:
        return self.circuit in (Circuit.HELD_OPEN, Circuit.HELD_CLOSED)

    @property
    def is_counting(self) -> bool:
        """Whether it is closed and has failures that count towards opening it."""
        return self.circuit is Circuit.CLOSED and self.failures > 0


def load_breakers() -> Rows:
    """All breakers in one look; as last known, if their store does not answer."""
    return {row.service_name: row for row in runtime().breakers.store.load_all()}


def not_closed(rows: Rows) -> list[str]:
    """The configured systems whose breaker, or whose host's, is not closed: what the overview counts."""
    now = clock.now()
    return [
        each.name
        for each in runtime().registry
        if any(
            effective_state(rows[name], now) is not BreakerState.CLOSED
            for name in breakers_of(each)
            if name in rows
        )
    ]


@dataclass(frozen=True, slots=True)
class _Pins:
    """Names of those who hold breakers, and the reasons that they gave."""

    names: Mapping[str, str]
    reasons: Mapping[UUID, str]


def breaker_views(session: Session, rows: Rows, names: Iterable[str]) -> dict[str, BreakerView]:
    """These breakers, with the names and reasons of whoever holds one: a fixed number of queries."""
    wanted = {name: rows.get(name) or new_row(name) for name in names}
    pins = _read_pins(session, [row for row in wanted.values() if row.is_pinned(clock.now())])
    away = [name for name, row in wanted.items() if row.state is not BreakerState.CLOSED]
    since = transitions.not_closed_since(session, away) if away else {}
    views = {name: _view(row, pins, since.get(name)) for name, row in wanted.items()}
    return views | _with_thresholds(session, views)


def _read_pins(session: Session, held: Iterable[CircuitBreakerStateData]) -> _Pins:
    held = list(held)
    notes = [note for row in held if (note := _note(row)) is not None]
    return _Pins(
        names_of(session, [row.controlled_by for row in held if row.controlled_by]),
        read_notes(session, runtime().keyring, notes) if notes else {},
    )


def _with_thresholds(session: Session, views: Mapping[str, BreakerView]) -> dict[str, BreakerView]:
    """The closed ones that count failures, with the number of failures that opens them."""
    counting = {name: each for name, each in views.items() if each.is_counting}
    if not counting:
        return {}
    policies = runtime().breaker_policies_in_force(session)
    return {name: replace(each, opens_at=policies.opens_at(name)) for name, each in counting.items()}


def _view(row: CircuitBreakerStateData, pins: _Pins, since: datetime | None) -> BreakerView:
    now = clock.now()
    if row.pinned is not None and row.is_pinned(now):
        note = _note(row)
        return BreakerView(
            row.service_name,
            _HELD[row.pinned],
            row.pinned is BreakerState.OPEN,
            row.expires_at,
            since,
            row.failure_count,
            by=pins.names.get(row.controlled_by or ""),
            why=pins.reasons.get(note) if note else None,
        )
    if row.is_cooling(now):
        return BreakerView(
            row.service_name, Circuit.COOLING, True, row.cooldown_until, None, row.failure_count
        )
    is_open = row.state is BreakerState.OPEN
    until = row.retry_at if is_open and row.retry_at and row.retry_at > now else None
    return BreakerView(row.service_name, _PLAIN[row.state], is_open, until, since, row.failure_count)


def _note(row: CircuitBreakerStateData) -> UUID | None:
    """What people type is kept in a note; a pin by a program has a code instead."""
    try:
        return UUID(row.control_reason or "")
    except ValueError:
        return None
