"""Manual control of breakers, always with a reason: pin, unpin, reset, delete. For CLI, API and console."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy.orm import Session

from effaced.audit.notes import write_note
from effaced.breakers.admission import blocked
from effaced.breakers.model import RESOLVER, Transition, host_name, split_name
from effaced.breakers.registry import BreakerRegistry
from effaced.breakers.telemetry import Called, names_of_all, resolvers_of
from effaced.core.crypto import Keyring
from effaced.core.errors import Conflict, NotFound
from effaced.doorbell import ring_after_commit


@dataclass(frozen=True, slots=True)
class BreakerControl:
    """In the caller's transaction, by one actor. Resolvers that may be called again are rung for."""

    session: Session
    registry: BreakerRegistry
    keyring: Keyring
    called: Collection[Called]
    actor: str

    def force_open(self, name: str, *, reason: str, seconds: float | None = None) -> Transition:
        """Let no call through for a while. What waits keeps its attempts."""
        note = write_note(self.session, self.keyring, reason, author=self.actor)
        return self.registry.force_open(
            name, actor=self.actor, seconds=seconds, note=note, session=self.session
        )

    def force_close(self, name: str, *, reason: str, seconds: float | None = None) -> Transition:
        """Let every call through for a while."""
        note = write_note(self.session, self.keyring, reason, author=self.actor)
        made = self.registry.force_close(
            name, actor=self.actor, seconds=seconds, note=note, session=self.session
        )
        self._ring(name)
        return made

    def unpin(self, name: str, *, reason: str) -> Transition:
        """Remove a pin and keep the state. Conflict if there is none."""
        note = write_note(self.session, self.keyring, reason, author=self.actor)
        made = self.registry.unpin(name, actor=self.actor, note=note, session=self.session)
        self._ring(name)
        return made

    def reset(self, name: str, *, reason: str, include_host: bool = False) -> list[Transition]:
        """Close it and clear everything; with `include_host` the breaker of the resolver's host too."""
        note = write_note(self.session, self.keyring, reason, author=self.actor)
        host = host_of(name, self.called) if include_host else None
        names = [name, *([host] if host else [])]
        made = [
            self.registry.reset(each, actor=self.actor, note=note, session=self.session) for each in names
        ]
        for each in names:
            self._ring(each)
        return made

    def delete(self, name: str, *, reason: str) -> Transition:
        """Delete the breaker of a system that is not configured any more."""
        if name in names_of_all(self.called):
            raise Conflict("The breaker's system is still configured. Reset the breaker instead.")
        note = write_note(self.session, self.keyring, reason, author=self.actor)
        made = self.registry.delete(name, actor=self.actor, note=note, session=self.session)
        if made is None:
            raise NotFound("No breaker has this name.")
        return made

    def _ring(self, name: str) -> None:
        ring_after_commit(self.session, resolvers_of(name, self.called))


def host_of(name: str, called: Collection[Called]) -> str | None:
    """The breaker of the host that a resolver calls; None for a host's own, and for resolvers without one."""
    scope, key = split_name(name)
    host = next((each.host for each in called if scope == RESOLVER and each.resolver == key), None)
    return host_name(host) if host else None


def blocking_host(registry: BreakerRegistry, name: str, called: Collection[Called]) -> str | None:
    """The host's breaker that blocks this resolver besides its own; None if it does not."""
    host = host_of(name, called)
    if host is None:
        return None
    rows = list(registry.store.load([host]).values())
    return host if blocked(rows, registry.store.now()) else None
