"""What every part of the registry stands on: the store, the policies in force, and what was last heard."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, Self

from sqlalchemy.orm import Session

from effaced.breakers.admission import Hold
from effaced.breakers.change import new_row
from effaced.breakers.inforce import Overrides, PoliciesInForce
from effaced.breakers.listeners import BreakerListener, Telling
from effaced.breakers.model import (
    BreakerRole,
    CircuitBreakerStateData,
    Transition,
    host_name,
    resolver_name,
)
from effaced.breakers.policy import BreakerPolicies, BreakerPolicy
from effaced.breakers.repository import CircuitBreakerStateRepository


class Admission(NamedTuple):
    """How many calls may be made now. None of them: `reason`, `service_name` and `blocked_until` say why."""

    granted: int
    role: BreakerRole
    trial: bool = False
    blocked_until: datetime | None = None
    reason: str = ""
    service_name: str = ""
    holds: tuple[Hold, ...] = ()
    edition: int | None = None
    """The edition of the store in which nothing was the matter, if it tells."""
    calm: bool = False
    """Whether nothing was the matter then."""


Permit = Admission


class Ground:
    """One per process. `overrides` gives changed policy fields by breaker, and is asked every few seconds."""

    def __init__(
        self,
        repository: CircuitBreakerStateRepository,
        policies: BreakerPolicies | None = None,
        listeners: Sequence[BreakerListener] = (),
        on_transition: Callable[[Transition], None] | None = None,
        overrides: Callable[[], Overrides] | None = None,
        *,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.repository = repository
        self._policies = PoliciesInForce(policies or BreakerPolicies(), overrides)
        self._telling = Telling(listeners, on_transition)
        self._chance = chance
        self._doors: dict[tuple[str | None, str | None, BreakerRole, int], Admission] = {}
        self._known: dict[str, CircuitBreakerStateData] = {}

    def within(self, session: Session) -> Self:
        """The same in the caller's transaction, as far as the store can: a look costs no other one."""
        other = copy(self)
        other.repository = self.repository.within(session)
        return other

    def policy(self, service_name: str, role: BreakerRole = BreakerRole.ERASE) -> BreakerPolicy:
        """The policy in force."""
        return self._policies.named(service_name, role)

    def update_host_policy(self, host: str, **fields: Any) -> BreakerPolicy:
        """Change a host's policy in this process. Its breaker keeps its state."""
        return self._policies.update(host_name(host), fields)

    def update_policy(self, service_name: str, **fields: Any) -> BreakerPolicy:
        return self._policies.update(service_name, fields)

    def _load(self, names: Collection[str]) -> list[CircuitBreakerStateData]:
        found = self.repository.load(names)
        self._known.update(found)
        return [found.get(name) or new_row(name) for name in names]

    def _last(self, names: Sequence[str]) -> list[CircuitBreakerStateData]:
        return [self._known.get(name) or new_row(name) for name in names]

    def _note(self, rows: Iterable[CircuitBreakerStateData]) -> None:
        for row in rows:
            self._known[row.service_name] = row

    def _policies_of(self, names: Sequence[str], role: BreakerRole) -> list[BreakerPolicy]:
        return [self.policy(name, role) for name in names]


@lru_cache(maxsize=4_096)
def names_of(resolver: str | None, host: str | None) -> tuple[str, ...]:
    """Host first: that is the order of decisions."""
    names = (*([host_name(host)] if host else ()), *([resolver_name(resolver)] if resolver else ()))
    if not names:
        raise ValueError("a breaker is that of a host, of a resolver, or both")
    return names
