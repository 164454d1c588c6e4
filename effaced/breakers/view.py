"""Breakers as people and programs are shown them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from effaced.audit.notes import read_notes
from effaced.breakers.admission import blocked, effective_state
from effaced.breakers.change import new_row
from effaced.breakers.model import (
    HOST,
    RESOLVER,
    BreakerState,
    CircuitBreakerStateData,
    Transition,
    host_name,
    resolver_name,
    split_name,
)
from effaced.breakers.repository import CircuitBreakerStateRepository
from effaced.breakers.telemetry import Called, names_of_all, resolvers_of
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.errors import NotFound
from effaced.core.strict import suggest


@dataclass(frozen=True, slots=True)
class BreakerView:
    """A breaker as it is judged now. `blocked_until` is None if calls, or trials, may go out."""

    data: CircuitBreakerStateData
    state: BreakerState
    blocked_until: datetime | None
    blocked_by: str | None
    pinned: bool
    resolvers: tuple[str, ...]
    pin_reason: str | None = None

    @property
    def name(self) -> str:
        return self.data.service_name

    def told(self) -> dict[str, Any]:
        data, (scope, key) = self.data, split_name(self.name)
        pin = {
            "state": data.pinned and data.pinned.value,
            "by": data.controlled_by,
            "until": clock.text(data.expires_at),
            "reason": self.pin_reason,
        }
        return {
            "name": self.name,
            "scope": scope,
            "key": key,
            "resolvers": list(self.resolvers),
            "state": self.state.value,
            "blocked_until": clock.text(self.blocked_until),
            "blocked_by": self.blocked_by,
            "reason": data.reason,
            "failures": data.failure_count,
            "successes": data.success_count,
            "trials_under_way": len(data.slots),
            "opened_at": clock.text(data.opened_at) if data.state is not BreakerState.CLOSED else None,
            "last_failure_at": clock.text(data.last_failure_at),
            "cooldown_until": clock.text(data.cooldown_until) if data.is_cooling(clock.now()) else None,
            "pin": pin if self.pinned else None,
        }


def look(
    session: Session,
    repository: CircuitBreakerStateRepository,
    keyring: Keyring,
    called: Collection[Called],
    names: Collection[str] | None = None,
) -> list[BreakerView]:
    """These breakers, or all there are or could be: of every resolver, every host, and what is stored."""
    stored = {each.service_name: each for each in repository.load_all()}
    known = names_of_all(called)
    wanted = [*known, *(each for each in stored if each not in known)] if names is None else list(names)
    rows = [stored.get(name) or new_row(name) for name in wanted]
    now = repository.now()
    notes = _reasons(session, keyring, [row for row in rows if row.is_pinned(now)])
    return [_view(row, called, notes, now) for row in rows]


def find_name(text: str, called: Collection[Called], stored: Collection[str] = ()) -> str:
    """The breaker that somebody means: `crm`, `resolver:crm` or `host:api.example`."""
    scope, found, key = text.partition(":")
    name = text
    if found and scope in (HOST, RESOLVER):
        name = host_name(key) if scope == HOST else text
    elif not found:
        name = resolver_name(text)
    known = names_of_all(called)
    if name in known or name in stored:
        return name
    words = [each.removeprefix(f"{RESOLVER}:") for each in known]
    # What was sent is not repeated: over HTTP it may be anything.
    raise NotFound(f"No breaker has this name{suggest(text, words)}")


def told_move(move: Transition) -> dict[str, Any]:
    """A move for programs."""
    return {
        "breaker": move.service_name,
        "scope": move.scope,
        "key": move.key,
        "old": move.old.value,
        "new": move.new.value,
        "reason": move.reason,
        "at": clock.text(move.at),
        "reset_timeout_s": move.reset_timeout_s,
        "retry_at": clock.text(move.retry_at),
        "pinned_until": clock.text(move.pinned_until),
        "actor": move.actor,
    }


def _view(
    row: CircuitBreakerStateData, called: Collection[Called], notes: Mapping[str, str], now: datetime
) -> BreakerView:
    block = blocked([row], now)
    return BreakerView(
        data=row,
        state=effective_state(row, now),
        blocked_until=block.until if block else None,
        blocked_by=block.reason if block else None,
        pinned=row.is_pinned(now),
        resolvers=tuple(resolvers_of(row.service_name, called)),
        pin_reason=notes.get(row.control_reason or "", row.control_reason),
    )


def _reasons(session: Session, keyring: Keyring, rows: Collection[CircuitBreakerStateData]) -> dict[str, str]:
    """What people typed when they pinned; a code stands for itself, a forgotten note for nothing."""
    ids = {}
    for row in rows:
        try:
            ids[UUID(row.control_reason or "")] = row.control_reason
        except ValueError:
            continue
    texts = read_notes(session, keyring, list(ids)) if ids else {}
    return {str(note_id): texts.get(note_id, "(erased)") for note_id in ids}
