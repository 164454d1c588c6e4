"""Resolves differences between a process's memory (L1) and the shared store (L2) after an outage.

The more restrictive state wins; of equal states the newer.
"""

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
# The jitter before the reconciliation in progress.
_jitter_applied: ContextVar[float] = ContextVar("jitter_applied", default=0.0)


class DriftReconciliationResult(StrEnum):
    """Which row wins."""

    L1_WON = "l1_won"
    L2_WON = "l2_won"
    NO_DRIFT = "no_drift"


@dataclass(frozen=True, slots=True)
class DriftReconciliationRecord:
    """One difference and its resolution. `winner` is `l1`, `l2`, or `both` if they agreed."""

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
    """Decides which row wins, spreads a fleet's return by a random pause, and keeps a history."""

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
        """A pause, uniformly distributed between the minimum and the maximum."""
        return random.uniform(*self._jitter)  # noqa: S311

    def reconcile(
        self,
        service_name: str,
        l1_state: str,
        l2_state: str,
        l1_updated_at: datetime | None = None,
        l2_updated_at: datetime | None = None,
    ) -> tuple[str, DriftReconciliationResult]:
        """The winning state and the result. An empty `l2_state` stands for a missing row."""
        record = self.reconcile_and_record(service_name, l1_state, l2_state, l1_updated_at, l2_updated_at)
        winner = l2_state if record.result is DriftReconciliationResult.L2_WON else l1_state
        return winner.lower(), record.result

    def reconcile_and_record(
        self,
        service_name: str,
        l1_state: str,
        l2_state: str,
        l1_updated_at: datetime | None,
        l2_updated_at: datetime | None,
    ) -> DriftReconciliationRecord:
        """The same, for a caller that keeps the record."""
        result = judge(l1_state, l2_state, l1_updated_at, l2_updated_at)
        record = DriftReconciliationRecord(
            service_name,
            l1_state,
            l2_state,
            l1_updated_at,
            l2_updated_at,
            _WINNERS[result],
            result,
            jitter_seconds=_jitter_applied.get(),
        )
        with self._lock:
            self._history.append(record)
        if self._on_reconciled is not None:
            try:
                self._on_reconciled(record)
            except Exception as error:
                _log.warning("drift_hook_failed", error=type(error).__name__)
        return record

    def schedule_reconciliation_sync(self, service_name: str, do_reconcile: Callable[[], None]) -> float:
        """Pause, then reconcile. Returns the pause, which the records include."""
        pause = self.get_jitter()
        if pause > 0:
            self._sleep(pause)
        self.after_pause(pause, do_reconcile)
        return pause

    async def schedule_reconciliation_async(
        self, service_name: str, do_reconcile: Callable[[], None]
    ) -> float:
        """The same without blocking the event loop."""
        pause = self.get_jitter()
        if pause > 0:
            await asyncio.sleep(pause)
        self.after_pause(pause, do_reconcile)
        return pause

    def after_pause(self, pause: float, do_reconcile: Callable[[], None]) -> None:
        """Reconcile now: the caller has paused for that long already."""
        token = _jitter_applied.set(pause)
        try:
            do_reconcile()
        finally:
            _jitter_applied.reset(token)

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
        """Make `get_drift_reconciler` create a new instance."""
        DriftReconciler._instance = None


def judge(
    l1_state: str, l2_state: str, l1_updated_at: datetime | None = None, l2_updated_at: datetime | None = None
) -> DriftReconciliationResult:
    """Which state wins. Letter case does not matter."""
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
    """The process's instance."""
    if DriftReconciler._instance is None:
        DriftReconciler._instance = DriftReconciler()
    return DriftReconciler._instance
