"""Breakers as CLI and API show them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from effaced.audit.notes import read_notes
from effaced.breakers.admission import Block, blocked, effective_state, free_trials
from effaced.breakers.control import host_of
from effaced.breakers.model import (
    HOST,
    RESOLVER,
    BreakerRole,
    BreakerState,
    CircuitBreakerStateData,
    host_name,
    resolver_name,
    split_name,
)
from effaced.breakers.registry import BreakerRegistry
from effaced.breakers.stores.base import new_row
from effaced.breakers.telemetry import Called, names_of_all, resolvers_of
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.errors import NotFound
from effaced.core.strict import suggest


@dataclass(frozen=True, slots=True)
class TrialBudget:
    """Trial calls of one role in half-open: how many at a time, and how many of them are free now."""

    limit: int
    free: int


@dataclass(frozen=True, slots=True)
class BreakerView:
    """A breaker now. `block` is what keeps calls away, which for a resolver may be its host's breaker.

    `last_known`: the store does not answer, so this is what was known last.
    """

    data: CircuitBreakerStateData
    state: BreakerState
    block: Block | None
    pinned: bool
    resolvers: tuple[str, ...]
    budget: Mapping[BreakerRole, TrialBudget]
    pin_reason: str | None = None
    last_known: bool = False

    @property
    def name(self) -> str:
        return self.data.service_name

    @property
    def blocked_by_host(self) -> str | None:
        """The host's breaker, if that is what keeps calls away."""
        return self.block.service_name if self.block and self.block.service_name != self.name else None

    def as_dict(self) -> dict[str, Any]:
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
            "blocked_until": clock.text(self.block.until if self.block else None),
            "blocked_by": self.block.reason if self.block else None,
            "blocked_by_host": self.blocked_by_host,
            "reason": data.reason,
            "failures": data.failure_count,
            "successes": data.success_count,
            "trials_under_way": len(data.slots),
            "trial_budget": {
                role.value: {"limit": each.limit, "free": each.free} for role, each in self.budget.items()
            },
            "opened_at": clock.text(data.opened_at) if data.state is not BreakerState.CLOSED else None,
            "last_failure_at": clock.text(data.last_failure_at),
            "cooldown_until": clock.text(data.cooldown_until) if data.is_cooling(clock.now()) else None,
            "pin": pin if self.pinned else None,
            "last_known": self.last_known,
        }


def read_views(
    session: Session,
    registry: BreakerRegistry,
    keyring: Keyring,
    called: Collection[Called],
    names: Collection[str] | None = None,
) -> list[BreakerView]:
    """These breakers, or all: of every resolver, every host, and what else is stored."""
    stored = {each.service_name: each for each in registry.store.load_all()}
    known = names_of_all(called)
    wanted = [*known, *(each for each in stored if each not in known)] if names is None else list(names)
    rows = {name: stored.get(name) or new_row(name) for name in (*wanted, *known)}
    now = registry.store.now()
    notes = _reasons(session, keyring, [row for row in rows.values() if row.is_pinned(now)])

    def view(row: CircuitBreakerStateData) -> BreakerView:
        host = host_of(row.service_name, called)
        policies = {role: registry.policy(row.service_name, role) for role in BreakerRole}
        return BreakerView(
            data=row,
            state=effective_state(row, now),
            block=blocked([*([rows[host]] if host else []), row], now),
            pinned=row.is_pinned(now),
            resolvers=tuple(resolvers_of(row.service_name, called)),
            budget={
                role: TrialBudget(policy.trial_calls, max(0, free_trials(row, policy, role, now)))
                for role, policy in policies.items()
            },
            pin_reason=notes.get(row.control_reason or "", row.control_reason),
            last_known=registry.store.is_away,
        )

    return [view(rows[name]) for name in wanted]


def find_name(text: str, called: Collection[Called], stored: Collection[str] = ()) -> str:
    """The name of a breaker given as `crm`, `resolver:crm` or `host:api.example`."""
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
    # The message does not repeat what was sent: over HTTP it may be anything.
    raise NotFound(f"No breaker has this name{suggest(text, words)}")


def _reasons(session: Session, keyring: Keyring, rows: Collection[CircuitBreakerStateData]) -> dict[str, str]:
    """The reasons of pins that are kept in notes; a reason that is a code is shown as it is."""
    ids = {}
    for row in rows:
        try:
            ids[UUID(row.control_reason or "")] = row.control_reason
        except ValueError:
            continue
    texts = read_notes(session, keyring, list(ids)) if ids else {}
    return {str(note_id): texts.get(note_id, "(erased)") for note_id in ids}
