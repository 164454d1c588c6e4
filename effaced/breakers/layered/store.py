"""A process's memory (L1) in front of a shared store (L2), for fleets that choose Redis.

In normal operation a call costs no round trip: L1 is refreshed from L2 every few hundred milliseconds, and
nothing is written. Every change is decided in L2, trials above all. During an outage of L2 each process keeps
its last known states: nothing closes, no trial starts, and changes are recorded in the shadow log. When L2 is
back they are reconciled after a random pause, and the more restrictive state wins.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from datetime import datetime
from functools import partial
from typing import TypeVar

from sqlalchemy.orm import Session

from effaced.breakers import transitions
from effaced.breakers.layered.drift import DriftReconciler, get_drift_reconciler
from effaced.breakers.layered.link import Link
from effaced.breakers.layered.outage_log import OutageLog
from effaced.breakers.layered.reconcile import Reconciliation, TransitionLog, as_stored, best_known
from effaced.breakers.layered.shadow import ShadowLogger, get_shadow_logger
from effaced.breakers.model import BreakerEvent, BreakerState, CircuitBreakerStateData, StoreUnavailable
from effaced.breakers.stores.base import (
    BreakerStore,
    Change,
    ChangeFunction,
    Rows,
    changed_rows,
    with_new_rows,
    write_log,
)
from effaced.breakers.stores.memory import MemoryBreakerStore
from effaced.core import clock
from effaced.core.db import dbtime

T = TypeVar("T")
# A change that L2 did not take: the row before, after, and the error.
_Missed = tuple[CircuitBreakerStateData, CircuitBreakerStateData, StoreUnavailable]
REFRESH_MS = 250


def _no_log(_names: Collection[str] | None) -> dict[str, CircuitBreakerStateData]:
    return {}


class LayeredBreakerStore(BreakerStore):
    """`log` says how breakers were left by their latest transitions, for when nothing else is known."""

    def __init__(
        self,
        shared: BreakerStore,
        *,
        log: TransitionLog | None = None,
        shadow: ShadowLogger | None = None,
        reconciler: DriftReconciler | None = None,
        outages: OutageLog | None = None,
        refresh_ms: float = REFRESH_MS,
        retry_s: float = 1.0,
    ) -> None:
        self._l1 = MemoryBreakerStore()
        self._l2 = shared
        self._now = shared.now
        self._read_log = log.read if log else _no_log
        self._log = log.write if log else None
        self._shadow = shadow or get_shadow_logger()
        self._reconciler = reconciler or get_drift_reconciler()
        self._outages = outages
        self._link = Link(refresh_ms / 1000, retry_s)

    def now(self) -> datetime:
        return self._now()

    @property
    def is_away(self) -> bool:
        return self._link.error is not None

    # --- reading ---

    def revision(self) -> int | None:
        return self._l1.revision() if clock.monotonic() < self._link.fresh_until else None

    def load(self, names: Collection[str]) -> dict[str, CircuitBreakerStateData]:
        link = self._link
        known = link.loaded.issuperset(names)
        # A thread that has rows to use does not wait for another thread's refresh: Redis may hang.
        if (not known or clock.monotonic() >= link.fresh_until) and link.lock.acquire(blocking=not known):
            try:
                self._refresh(names)
            finally:
                link.lock.release()
        return self._l1.load(names)

    def load_all(self) -> list[CircuitBreakerStateData]:
        with self._link.lock:
            if self._is_up():
                try:
                    found = self._l2.load_all()
                    self._copy_from_l2({row.service_name for row in found} | self._link.loaded)
                except StoreUnavailable as error:
                    self._link.lost(error)
            if self._link.error is not None:
                self._use_memory(self._link.loaded | self._read_log(None).keys())
            return self._l1.load_all()

    def _refresh(self, names: Collection[str]) -> None:
        """Read everything that this process has ever asked for, at once."""
        link = self._link
        unseen = set(names) - link.loaded
        if clock.monotonic() < link.fresh_until and not unseen:
            return  # another thread was faster
        if self._is_up():
            try:
                self._copy_from_l2(link.loaded | unseen)
                link.refreshed()
                return
            except StoreUnavailable as error:
                link.lost(error)
        self._use_memory(link.loaded | unseen)

    def _copy_from_l2(self, names: Collection[str]) -> None:
        """L1 becomes what L2 has. Rows that L2 lost are written back to it; deleted ones are dropped."""
        found = self._l2.load(names)
        missing = [name for name in names if name not in found]
        if own := self._l1.load(missing):
            self._l1.drop(self._l2.recently_deleted(own))
        if known := self._known(missing):
            found |= self._write_back(known)
        self._l1.put([row for name, row in found.items() if self._l1.load([name]).get(name) != row])
        self._link.loaded.update(names)

    def _write_back(self, known: Rows) -> dict[str, CircuitBreakerStateData]:
        def written(rows: Rows) -> Change[dict[str, CircuitBreakerStateData]]:
            # A row that another process wrote meanwhile is newer.
            after = {name: row if row.version else as_stored(known[name]) for name, row in rows.items()}
            return Change(list(after.values()), after)

        return self._l2.change(list(known), written)

    def _use_memory(self, names: Collection[str]) -> None:
        """Without L2: what this process knows, and what other processes have logged in the database."""
        known, own = self._known(names, idle=True), self._l1.load(names)
        self._l1.put([as_stored(row) for name, row in known.items() if row is not own.get(name)])
        self._link.loaded.update(names)

    def _known(self, names: Collection[str], *, idle: bool = False) -> dict[str, CircuitBreakerStateData]:
        """What is known without L2. Deleted breakers leave L1, and idle ones unless they are wanted."""
        if not names:
            return {}
        own, logged = self._l1.load(names), self._read_log(names)
        best = {name: best_known(own.get(name), logged.get(name)) for name in own.keys() | logged.keys()}
        known = {
            name: row for name, row in best.items() if row and (not _is_idle(row) or (idle and name in own))
        }
        self._l1.drop(own.keys() - known.keys())
        return known

    # --- changing ---

    def change(self, names: Collection[str], fn: ChangeFunction[T]) -> T:
        with self._link.lock:
            change, missed = self._change(names, fn)
        # After the lock, so that no thread waits for another one's database. Transitions come first: whoever
        # finds the shadow record then also finds the transition.
        write_log(self._log, change)
        for before, after, error in missed:
            self._shadow.record_sync_failure(
                after.service_name,
                after.state.value,
                error,
                adapter_type="redis",
                operation="update",
                l1_state=before.state.value,
            )
        return change.result

    def _change(self, names: Collection[str], fn: ChangeFunction[T]) -> tuple[Change[T], list[_Missed]]:
        if self._is_up():
            try:
                return self._change_shared(names, fn), []
            except StoreUnavailable as error:
                self._link.lost(error)
        return self._change_alone(names, fn)

    def _change_shared(self, names: Collection[str], fn: ChangeFunction[T]) -> Change[T]:
        def whole(rows: Rows) -> Change[Change[T]]:
            change = fn(self._completed(rows))
            return Change(change.rows, change, deleted=change.deleted)

        change = self._l2.change(names, whole)
        self._l1.put(change.rows)
        self._l1.drop(change.deleted)
        self._link.loaded.update(names)
        return change

    def _completed(self, rows: Rows) -> dict[str, CircuitBreakerStateData]:
        """A row that L2 does not have may be one that it lost."""
        lost = [name for name, row in rows.items() if not row.version]
        if not lost:
            return dict(rows)
        known = self._known(lost)
        return {name: known.get(name) or row for name, row in rows.items()}

    def _change_alone(self, names: Collection[str], fn: ChangeFunction[T]) -> tuple[Change[T], list[_Missed]]:
        error = self._link.error
        assert error is not None
        self._use_memory(names)
        before = with_new_rows(sorted(names), self._l1.load(names))
        change = fn(before)
        if change.deleted or any(_needs_l2(before[row.service_name], row) for row in change.rows):
            raise error
        changed = changed_rows(before, change)
        self._l1.put(changed)
        self._link.unsynced.update(row.service_name for row in changed)
        return change, [(before[row.service_name], row, error) for row in changed]

    def within(self, session: Session) -> BreakerStore:
        """The change itself can't be part of the transaction; its log is, and so is every read of the log:
        the connection may be the only one."""
        other = copy.copy(self)
        other._now = partial(dbtime.now, session)
        other._log = partial(transitions.write, session)
        other._read_log = partial(transitions.last_known, session)
        other._shadow = self._shadow.within(session)
        other._outages = self._outages and self._outages.within(session)
        return other

    # --- recovery ---

    def reconcile(self) -> int:
        """Reconcile what L2 did not take, here and in processes that have ended.

        Returns how many breakers.
        """
        with self._link.lock:
            return self._reconcile(0.0)

    def _is_up(self) -> bool:
        """Whether L2 may be used. After an outage, only once its changes are reconciled."""
        link = self._link
        if link.up:
            return True
        if clock.monotonic() < link.try_at:
            return False
        try:
            if link.error is not None and not link.answered:
                self._l2.load(["host:effaced"])  # only to see whether it answers
                link.answers(self._reconciler.get_jitter())
                if clock.monotonic() < link.try_at:
                    return False
            self._reconcile(link.pause)
        except StoreUnavailable as error:
            link.lost(error)
            return False
        link.recovered()
        return True

    def _reconcile(self, pause: float) -> int:
        parts = Reconciliation(
            self._l1, self._l2, self._read_log, self._log, self._reconciler, self._shadow, self._outages
        )
        names = self._link.unsynced | self._shadow.unsynced_services()
        return parts.run(names, pause, self._link.unsynced.discard)


def _needs_l2(before: CircuitBreakerStateData, after: CircuitBreakerStateData) -> bool:
    """Trials start and close a breaker only where all processes see it."""
    closed_by_trials = after.generation > before.generation and after.reason == BreakerEvent.TRIALS_SUCCEEDED
    return after.slots_given > before.slots_given or closed_by_trials


def _is_idle(row: CircuitBreakerStateData) -> bool:
    """Closed, with nothing to remember: as good as a breaker without a row."""
    now = clock.now()
    restricts = row.state is not BreakerState.CLOSED or row.is_pinned(now) or row.is_cooling(now)
    return not (restricts or row.failure_count or row.recent_failures)
