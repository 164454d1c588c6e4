"""What the runs of one runner share, and the signal that stops them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session, sessionmaker

from effaced.core.crypto import Keyring
from effaced.resolvers.registry import ResolverRegistry
from effaced.saga.abandoned_hook import AbandonedHook
from effaced.saga.claims import Claims
from effaced.saga.gate import Gate
from effaced.saga.rules import RuleBook
from effaced.saga.settle import OnComplete


class StopSignal:
    """Says to claim nothing more; calls under way are finished. Setting one sets those made from it."""

    def __init__(self, parent: StopSignal | None = None) -> None:
        self._parent = parent
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def __bool__(self) -> bool:
        return self._is_set or bool(self._parent)


@dataclass(frozen=True, slots=True)
class RunContext:
    """What every run of a runner works with: the database, the systems, the rules and the limits."""

    registry: ResolverRegistry
    keyring: Keyring
    sessions: sessionmaker[Session]
    claims: Claims
    gate: Gate
    book: RuleBook
    on_complete: OnComplete
    crash_limit: int
    batch_size: int
    hook: AbandonedHook | None
