"""How long a system asked to be left alone, on the same rows as its breaker and so in the same stores.

Stored as a moment on the calendar, which all machines share; used as a moment on this process's own
steady clock, which nobody can set.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from effaced.breakers.change import Change, Rows, stamp
from effaced.breakers.model import host_name, resolver_name, split_name
from effaced.breakers.repository import CircuitBreakerStateRepository
from effaced.core import clock


class CooldownStore:
    """Cooldowns by host; `resolver:crm` names a resolver instead."""

    def __init__(self, repository: CircuitBreakerStateRepository) -> None:
        self._repository = repository

    def get_until(self, host: str) -> float | None:
        """The end in seconds of `clock.monotonic()`, or None if there is none or it is over."""
        found = self._repository.load([_name(host)]).get(_name(host))
        if found is None or found.cooldown_until is None:
            return None
        left = (found.cooldown_until - self._repository.now()).total_seconds()
        return clock.monotonic() + left if left > 0 else None

    def set_until(self, host: str, until_monotonic: float, reason: str) -> None:
        """Leave it alone until that moment of `clock.monotonic()`. `reason` is a code."""
        name = _name(host)

        def cooled(rows: Rows) -> Change[None]:
            now = self._repository.now()
            until = now + timedelta(seconds=until_monotonic - clock.monotonic())
            after = replace(rows[name], cooldown_until=until, cooldown_reason=reason[:64])
            return Change([stamp(rows[name], after, now)], None)

        self._repository.change([name], cooled)

    def clear(self, host: str) -> None:
        self._clear(_name(host), only_expired=False)

    def prune_expired(self) -> int:
        """Remove those that are over; how many there were."""
        ended = [row.service_name for row in self._repository.load_all() if row.cooldown_until is not None]
        return sum(self._clear(name, only_expired=True) for name in ended)

    def _clear(self, name: str, *, only_expired: bool) -> bool:
        def cleared(rows: Rows) -> Change[bool]:
            row, now = rows[name], self._repository.now()
            if row.cooldown_until is None or (only_expired and row.cooldown_until > now):
                return Change([], False)
            after = replace(row, cooldown_until=None, cooldown_reason=None)
            return Change([stamp(row, after, now)], True)

        return self._repository.change([name], cleared)


def _name(host: str) -> str:
    scope, key = split_name(host)
    return host_name(key) if scope == "host" else resolver_name(key)
