"""What a process knows of its breakers: which calls were admitted, and the state as last read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from effaced.breakers import admission as rules
from effaced.breakers.admission import Hold
from effaced.breakers.model import (
    RESTRICTION,
    BreakerRole,
    BreakerState,
    CircuitBreakerStateData,
    host_name,
    require_name,
    resolver_name,
)
from effaced.breakers.outcomes import SUCCESS, Outcome
from effaced.core.arguments import require_type

ONE_SUCCESS = (SUCCESS,)


class Admission(NamedTuple):
    """How many calls may be made now. If none, `reason`, `service_name` and `blocked_until` say why."""

    granted: int
    role: BreakerRole
    trial: bool = False
    blocked_until: datetime | None = None
    reason: str = ""
    service_name: str = ""
    holds: tuple[Hold, ...] = ()
    revision: int | None = None
    """The store's revision at which all breakers were healthy, if the store has revisions."""
    healthy: bool = False
    """Whether all breakers were closed and without failures."""


Permit = Admission


@dataclass(frozen=True, slots=True)
class KnownState:
    """The state as this process last knew it. `blocked_until` is None if a call may be made."""

    state: BreakerState
    blocked_until: datetime | None = None
    reason: str = ""


@lru_cache(maxsize=4_096)
def names_of(resolver: str | None, host: str | None) -> tuple[str, ...]:
    """Host first: that is the order of decisions. Checked once: this is asked for every batch of calls."""
    require_type("resolver", resolver, str | None)
    require_type("host", host, str | None)
    names = (*([host_name(host)] if host else ()), *([resolver_name(resolver)] if resolver else ()))
    if not names:
        raise ValueError("name a host, a resolver, or both")
    return tuple(map(require_name, names))


def none_failed(outcomes: Sequence[Outcome]) -> bool:
    if outcomes is ONE_SUCCESS:
        return True
    for outcome in outcomes:  # noqa: SIM110 (runs at every flush)
        if outcome is not SUCCESS and outcome.failed:
            return False
    return True


def is_unrestricted(row: CircuitBreakerStateData) -> bool:
    return row.state is BreakerState.CLOSED and row.pinned is None and row.cooldown_until is None


def is_healthy(row: CircuitBreakerStateData) -> bool:
    return row.state is BreakerState.CLOSED and row.failure_count == 0 and not row.slots


def known_state_of(
    rows: Sequence[CircuitBreakerStateData], block: rules.Block | None, now: datetime
) -> KnownState:
    state = max((rules.effective_state(row, now) for row in rows), key=lambda each: RESTRICTION[each])
    return KnownState(state, block.until, block.reason) if block else KnownState(state)
