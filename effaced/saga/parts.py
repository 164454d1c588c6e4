"""What the runs of one runner share: its parts, and the signal that stops them."""

from __future__ import annotations

from dataclasses import dataclass

from effaced.core.crypto import Keyring
from effaced.resolvers.registry import ResolverRegistry
from effaced.saga.tell import AbandonedHook
from effaced.saga.writer import Ledger


class StopSignal:
    """Says to claim nothing more; what is under way is finished. Set, it is set for those made from it."""

    def __init__(self, parent: StopSignal | None = None) -> None:
        self._parent = parent
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def __bool__(self) -> bool:
        return self._is_set or bool(self._parent)


@dataclass(frozen=True, slots=True)
class Parts:
    """What every run of a runner works with."""

    registry: ResolverRegistry
    keyring: Keyring
    ledger: Ledger
    crash_limit: int
    batch_size: int
    hook: AbandonedHook | None
