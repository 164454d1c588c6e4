"""A person steers a breaker, and says why: pins, resets, and work that has waited is rung for."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy.orm import Session

from effaced.audit.notes import write_note
from effaced.breakers.model import Transition
from effaced.breakers.registry import BreakerRegistry
from effaced.core.crypto import Keyring
from effaced.doorbell import ring_after_commit


def force_open(
    session: Session,
    registry: BreakerRegistry,
    keyring: Keyring,
    name: str,
    *,
    actor: str,
    reason: str,
    seconds: float | None = None,
) -> Transition:
    """Let nothing through for a while. What waits keeps its attempts."""
    note = write_note(session, keyring, reason, author=actor)
    return registry.force_open(name, actor=actor, seconds=seconds, note=note, session=session)


def force_close(
    session: Session,
    registry: BreakerRegistry,
    keyring: Keyring,
    name: str,
    *,
    actor: str,
    reason: str,
    seconds: float | None = None,
    resolvers: Collection[str] = (),
) -> Transition:
    """Let everything through for a while, and ring for these resolvers."""
    note = write_note(session, keyring, reason, author=actor)
    made = registry.force_close(name, actor=actor, seconds=seconds, note=note, session=session)
    ring_after_commit(session, resolvers)
    return made


def reset(
    session: Session,
    registry: BreakerRegistry,
    keyring: Keyring,
    name: str,
    *,
    actor: str,
    reason: str,
    resolvers: Collection[str] = (),
) -> Transition:
    """Have it begin anew, and ring for these resolvers."""
    note = write_note(session, keyring, reason, author=actor)
    made = registry.reset(name, actor=actor, note=note, session=session)
    ring_after_commit(session, resolvers)
    return made
