"""CooldownStore: how long a system must not be called, kept in the row of its breaker and so in any store.

Stored as wall-clock time, which all machines share; used as a moment on this process's monotonic clock,
which nobody can set.
"""

from __future__ import annotations

from datetime import timedelta

from effaced.breakers import operations
from effaced.breakers.model import canonical_name
from effaced.breakers.stores.base import BreakerStore
from effaced.core import clock


class CooldownStore:
    """Cooldowns by host; `resolver:crm` names a resolver instead."""

    def __init__(self, store: BreakerStore) -> None:
        self._store = store

    def get_until(self, host: str) -> float | None:
        """The end in seconds of `clock.monotonic()`, or None if there is none or it has passed."""
        name = canonical_name(host)
        operations.restart_waits(self._store, [name])
        row, now = self._store.load([name]).get(name), self._store.now()
        if row is None or row.cooldown_until is None or not row.is_cooling(now):
            return None
        return clock.monotonic() + (row.cooldown_until - now).total_seconds()

    def set_until(self, host: str, until_monotonic: float, reason: str) -> None:
        """Allow no call before that moment of `clock.monotonic()`. `reason` is a code."""
        until = self._store.now() + timedelta(seconds=until_monotonic - clock.monotonic())
        operations.set_cooldown(self._store, canonical_name(host), until, reason)

    def clear(self, host: str) -> None:
        operations.end_cooldown(self._store, canonical_name(host))

    def prune_expired(self) -> int:
        """Remove the cooldowns that have ended. Returns how many."""
        return operations.prune_cooldowns(self._store)
