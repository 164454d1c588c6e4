"""Two places disagree about a breaker: which one is right. The more restrictive; of equals the newer."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from threading import Lock
from typing import Any, ClassVar

from effaced.breakers.model import RESTRICTION, BreakerState
from effaced.core import clock
from effaced.core.log import get_logger

_log = get_logger(__name__)
_HISTORY = 1_000
# The pause that was made before the reconciliation that is under way.
_waited: ContextVar[float] = ContextVar("waited", default=0.0)


class DriftReconciliationResult(StrEnum):
    """Whose row holds from now on. L1 is a process's own memory, L2 the shared store."""

    L1_WON = "l1_won"
    L2_WON = "l2_won"
    NO_DRIFT = "no_drift"


@dataclass(frozen=True, slots=True)
class DriftReconciliationRecord:
    """One disagreement and how it ended. `winner` is `l1`, `l2`, or `both` where they agreed."""

    service_name: str
    l1_state: str
    l2_state: str
    l1_updated_at: datetime | None
    l2_updated_at: datetime | None
    winner: str
    result: DriftReconciliationResult
    reconciled_at: datetime = field(default_factory=clock.now)
    jitter_seconds: float = 0.0


_WINNERS = {
    DriftReconciliationResult.L1_WON: "l1",
    DriftReconciliationResult.L2_WON: "l2",
    DriftReconciliationResult.NO_DRIFT: "both",
}


class DriftReconciler:
    """Judges, waits a little so that a fleet does not rush back all at once, and remembers what it did."""

    _instance: ClassVar[DriftReconciler | None] = None

    def __init__(
        self,
        min_jitter_seconds: float = 0.0,
        max_jitter_seconds: float = 5.0,
        on_reconciled: Callable[[DriftReconciliationRecord], None] | None = None,
        *,
        max_history: int = _HISTORY,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not 0 <= min_jitter_seconds <= max_jitter_seconds:
            raise ValueError("min_jitter_seconds must be at least 0 and at most max_jitter_seconds")
        self._jitter = min_jitter_seconds, max_jitter_seconds
        self._on_reconciled = on_reconciled
        self._sleep = sleep
        self._history: deque[DriftReconciliationRecord] = deque(maxlen=max_history)
        self._lock = Lock()

    def get_jitter(self) -> float:
        """A pause between the least and the longest, any as likely as any other."""
        return random.uniform(*self._jitter)  # noqa: S311

    def reconcile(
        self,
        service_name: str,
        l1_state: str,
        l2_state: str,
        l1_updated_at: datetime | None = None,
        l2_updated_at: datetime | None = None,
    ) -> tuple[str, DriftReconciliationResult]:
        """The state that holds, and whose it is. An empty `l2_state` stands for a row that is missing."""
        result = judge(l1_state, l2_state, l1_updated_at, l2_updated_at)
        self._remember(
            DriftReconciliationRecord(
                service_name,
                l1_state,
                l2_state,
                l1_updated_at,
                l2_updated_at,
                _WINNERS[result],
                result,
                jitter_seconds=_waited.get(),
            )
        )
        return (l2_state if result is DriftReconciliationResult.L2_WON else l1_state).lower(), result

    def schedule_reconciliation_sync(self, service_name: str, do_reconcile: Callable[[], None]) -> float:
        """Pause, then reconcile. Returns the pause, which is also in the records that are made."""
        pause = self.get_jitter()
        if pause > 0:
            self._sleep(pause)
        self._after(pause, do_reconcile)
        return pause

    async def schedule_reconciliation_async(
        self, service_name: str, do_reconcile: Callable[[], None]
    ) -> float:
        """The same without holding up the event loop."""
        pause = self.get_jitter()
        if pause > 0:
            await asyncio.sleep(pause)
        self._after(pause, do_reconcile)
        return pause

    def after_pause(self, pause: float, do_reconcile: Callable[[], None]) -> None:
        """Reconcile now: the caller has waited that long already, doing other things."""
        self._after(pause, do_reconcile)

    def get_history(self) -> list[DriftReconciliationRecord]:
        with self._lock:
            return list(self._history)

    def get_stats(self) -> dict[str, Any]:
        history = self.get_history()
        return {
            "total": len(history),
            "by_result": dict(Counter(record.result.value for record in history)),
            "by_winner": dict(Counter(record.winner for record in history)),
            "last_reconciled_at": history[-1].reconciled_at if history else None,
        }

    def clear_history(self) -> None:
        with self._lock:
            self._history.clear()

    @classmethod
    def reset_instance(cls) -> None:
        """Let `get_drift_reconciler` make a new one."""
        DriftReconciler._instance = None

    def _after(self, pause: float, do_reconcile: Callable[[], None]) -> None:
        token = _waited.set(pause)
        try:
            do_reconcile()
        finally:
            _waited.reset(token)

    def _remember(self, record: DriftReconciliationRecord) -> None:
        with self._lock:
            self._history.append(record)
        if self._on_reconciled is None:
            return
        try:
            self._on_reconciled(record)
        except Exception as error:
            _log.warning("reconciled_hook_failed", error=type(error).__name__)


def judge(
    l1_state: str, l2_state: str, l1_updated_at: datetime | None = None, l2_updated_at: datetime | None = None
) -> DriftReconciliationResult:
    """Who is right. Words count whatever their case."""
    if not l2_state:
        return DriftReconciliationResult.L1_WON
    first, second = RESTRICTION[BreakerState(l1_state.lower())], RESTRICTION[BreakerState(l2_state.lower())]
    if first != second:
        return DriftReconciliationResult.L1_WON if first > second else DriftReconciliationResult.L2_WON
    if l1_updated_at == l2_updated_at:
        return DriftReconciliationResult.NO_DRIFT
    if l2_updated_at is None or (l1_updated_at is not None and l1_updated_at > l2_updated_at):
        return DriftReconciliationResult.L1_WON
    return DriftReconciliationResult.L2_WON


def get_drift_reconciler() -> DriftReconciler:
    """This process's own."""
    if DriftReconciler._instance is None:
        DriftReconciler._instance = DriftReconciler()
    return DriftReconciler._instance
