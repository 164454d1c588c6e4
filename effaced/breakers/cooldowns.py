"""CooldownStore: how long a system must not be called, kept in the row of its breaker and so in any store.

Stored as wall-clock time, which all machines share; used as a moment on this process's monotonic clock,
which nobody can set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from effaced.breakers import operations
from effaced.breakers.model import Transition, canonical_name, require_name
from effaced.breakers.outcomes import wait_of
from effaced.breakers.policy import BreakerPolicy
from effaced.breakers.stores.base import BreakerStore
from effaced.core import clock
from effaced.core.arguments import checked


@checked
class CooldownStore:
    """Cooldowns by host; `resolver:crm` names a resolver instead.

    `policy` is the policy in force, by default the built-in one; `on_transitions` is called with every
    transition.
    """

    def __init__(
        self,
        store: BreakerStore,
        *,
        policy: Callable[[str], BreakerPolicy] | None = None,
        on_transitions: Callable[[Sequence[Transition]], None] | None = None,
    ) -> None:
        self._store = store
        self._policy = policy
        self._on_transitions = on_transitions

    def get_until(self, host: str) -> float | None:
        """The end in seconds of `clock.monotonic()`, or None if there is none or it has passed."""
        name = _name(host)
        operations.restart_waits(self._store, [name])
        row, now = self._store.load([name]).get(name), self._store.now()
        if row is None or row.cooldown_until is None or not row.is_cooling(now):
            return None
        return clock.monotonic() + (row.cooldown_until - now).total_seconds()

    def set_until(self, host: str, until_monotonic: float, reason: str) -> None:
        """Allow no call before that moment of `clock.monotonic()`, as after a Retry-After: for the policy's
        `retry_after_cap_s` at most, and a longer cooldown that is running stays. `reason` is a code."""
        name = _name(host)
        wait = wait_of("until_monotonic", until_monotonic - clock.monotonic())
        policy = self._policy(name) if self._policy else BreakerPolicy()
        self._announce(operations.set_cooldown(self._store, name, policy, wait, reason))

    def clear(self, host: str) -> None:
        """End it early, if there is one."""
        self._announce(operations.end_cooldown(self._store, _name(host)))

    def prune_expired(self) -> int:
        """Remove the cooldowns that have ended. Returns how many."""
        return operations.prune_cooldowns(self._store)

    def _announce(self, made: Transition | None) -> None:
        if made and self._on_transitions:
            self._on_transitions([made])


def _name(host: str) -> str:
    return require_name(canonical_name(host))
