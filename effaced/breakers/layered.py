"""A process's own memory (L1) before a store that all share (L2): Redis, for fleets that choose it.

While all is well a call costs no round trip: L1 is refreshed from L2 every few hundred milliseconds, and
nothing is written. Whatever changes a breaker is decided in L2, trials above all. While L2 is away every
process keeps to what it last knew: nothing closes, no trial starts, changes are noted in the shadow log.
When it is back they are made up for after a random pause, and the more restrictive state wins.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from datetime import datetime
from functools import partial
from typing import TypeVar

from sqlalchemy.orm import Session

from effaced.breakers import transitions
from effaced.breakers.change import Change, Changing, Rows, new_rows, to_write
from effaced.breakers.drift import DriftReconciler, get_drift_reconciler
from effaced.breakers.link import Link
from effaced.breakers.makeup import Remembered, better, exists, make_up
from effaced.breakers.memory import InMemoryCircuitBreakerStateRepository, Keep, told
from effaced.breakers.model import BreakerEvent, BreakerState, CircuitBreakerStateData, StoreUnavailable
from effaced.breakers.repository import CircuitBreakerStateRepository
from effaced.breakers.shadow import ShadowLogger, get_shadow_logger
from effaced.core import clock, dbtime

T = TypeVar("T")
# What L2 did not take: the row before, after, and why.
_Missed = tuple[CircuitBreakerStateData, CircuitBreakerStateData, StoreUnavailable]
REFRESH_MS = 250


def _nothing(_names: Collection[str] | None) -> dict[str, CircuitBreakerStateData]:
    return {}


class LayeredCircuitBreakerStateRepository(CircuitBreakerStateRepository):
    """`remembered` gives breakers as their latest transitions left them, for who knows nothing else."""

    def __init__(
        self,
        shared: CircuitBreakerStateRepository,
        *,
        remembered: Remembered = _nothing,
        keep: Keep | None = None,
        shadow: ShadowLogger | None = None,
        reconciler: DriftReconciler | None = None,
        refresh_ms: float = REFRESH_MS,
        retry_s: float = 1.0,
    ) -> None:
        self._l1 = InMemoryCircuitBreakerStateRepository()
        self._l2 = shared
        self._now = shared.now
        self._remembered = remembered
        self._keep = keep
        self._shadow = shadow or get_shadow_logger()
        self._reconciler = reconciler or get_drift_reconciler()
        self._link = Link(refresh_ms / 1000, retry_s)

    def now(self) -> datetime:
        return self._now()

    # --- reading ---

    def edition(self) -> int | None:
        return self._l1.edition() if clock.monotonic() < self._link.fresh_until else None

    def load(self, names: Collection[str]) -> dict[str, CircuitBreakerStateData]:
        link = self._link
        known = link.seen.issuperset(names)
        # Who knows something to go by does not wait for another thread's look: Redis may hang.
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
                    self._take_in({row.service_name for row in found} | self._link.seen)
                except StoreUnavailable as error:
                    self._link.lose(error)
            if self._link.error is not None:
                self._recall(self._link.seen | self._remembered(None).keys())
            return self._l1.load_all()

    @property
    def away(self) -> bool:
        return self._link.error is not None

    def _refresh(self, names: Collection[str]) -> None:
        """Everything that this process has ever asked for, in one look."""
        link = self._link
        unseen = set(names) - link.seen
        if clock.monotonic() < link.fresh_until and not unseen:
            return  # another thread was faster
        if self._is_up():
            try:
                self._take_in(link.seen | unseen)
                link.refreshed()
                return
            except StoreUnavailable as error:
                link.lose(error)
        self._recall(link.seen | unseen)

    def _take_in(self, names: Collection[str]) -> None:
        """L1 as L2 has it. What L2 has lost is given back to it."""
        found = self._l2.load(names)
        missing = [name for name in names if name not in found]
        if known := self._known(missing):
            found |= self._give_back(known)
        self._l1.put([row for name, row in found.items() if self._l1.load([name]).get(name) != row])
        self._link.seen.update(names)

    def _give_back(self, known: Rows) -> dict[str, CircuitBreakerStateData]:
        def written(rows: Rows) -> Change[dict[str, CircuitBreakerStateData]]:
            # Somebody else may have been faster: theirs is the newer.
            after = {name: row if row.version else exists(known[name]) for name, row in rows.items()}
            return Change(list(after.values()), after)

        return self._l2.change(list(known), written)

    def _recall(self, names: Collection[str]) -> None:
        """Without L2: what this process knows, and what others have had the database remember."""
        known, own = self._known(names), self._l1.load(names)
        self._l1.put([exists(row) for name, row in known.items() if row is not own.get(name)])
        self._link.seen.update(names)

    def _known(self, names: Collection[str]) -> dict[str, CircuitBreakerStateData]:
        """What is known without L2. Of others, that something is closed need not be remembered."""
        if not names:
            return {}
        own, memory = self._l1.load(names), self._remembered(names)
        best = {name: better(own.get(name), memory.get(name)) for name in own.keys() | memory.keys()}
        return {name: row for name, row in best.items() if row and (name in own or _keeps_away(row))}

    # --- changing ---

    def change(self, names: Collection[str], fn: Changing[T]) -> T:
        with self._link.lock:
            change, missed = self._change(names, fn)
        # Past the lock: who waits for the database must not have others wait for him. The move comes first,
        # so that whoever finds what was missed also finds where it led.
        told(self._keep, change.transitions, change.records)
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

    def _change(self, names: Collection[str], fn: Changing[T]) -> tuple[Change[T], list[_Missed]]:
        if self._is_up():
            try:
                return self._change_shared(names, fn), []
            except StoreUnavailable as error:
                self._link.lose(error)
        return self._change_alone(names, fn)

    def _change_shared(self, names: Collection[str], fn: Changing[T]) -> Change[T]:
        def whole(rows: Rows) -> Change[Change[T]]:
            change = fn(self._completed(rows))
            return Change(change.rows, change)

        change = self._l2.change(names, whole)
        self._l1.put(change.rows)
        self._link.seen.update(names)
        return change

    def _completed(self, rows: Rows) -> dict[str, CircuitBreakerStateData]:
        """A row that L2 does not have may be one that it has lost."""
        lost = [name for name, row in rows.items() if not row.version]
        if not lost:
            return dict(rows)
        known = self._known(lost)
        return {name: known.get(name) or row for name, row in rows.items()}

    def _change_alone(self, names: Collection[str], fn: Changing[T]) -> tuple[Change[T], list[_Missed]]:
        error = self._link.error
        assert error is not None
        self._recall(names)
        before = new_rows(sorted(names), self._l1.load(names))
        change = fn(before)
        if any(_is_for_all(before[row.service_name], row) for row in change.rows):
            raise error
        changed = to_write(before, change)
        self._l1.put(changed)
        self._link.behind.update(row.service_name for row in changed)
        return change, [(before[row.service_name], row, error) for row in changed]

    def delete(self, name: str) -> bool:
        with self._link.lock:
            gone = self._l2.delete(name)
            return self._l1.delete(name) or gone

    def within(self, session: Session) -> CircuitBreakerStateRepository:
        """What is told of a change is told in that transaction; the change itself can't wait for it.

        What has to be looked up is looked up there as well: the connection may be the only one.
        """
        other = copy.copy(self)
        other._now = partial(dbtime.now, session)
        other._keep = partial(transitions.keep, session)
        other._remembered = partial(transitions.remembered, session)
        other._shadow = self._shadow.within(session)
        return other

    # --- coming back ---

    def reconcile(self) -> int:
        """Make up for what L2 did not take, here and in processes that have ended; for how many breakers."""
        with self._link.lock:
            return self._make_up(0.0)

    def _is_up(self) -> bool:
        """Whether L2 may be used. After an outage only when its changes have been made up for."""
        link = self._link
        if link.up:
            return True
        if clock.monotonic() < link.try_at:
            return False
        try:
            if link.error is not None and not link.answered:
                self._l2.load(["host:effaced"])  # does anybody answer?
                link.answer(self._reconciler.get_jitter())
                if clock.monotonic() < link.try_at:
                    return False
            self._make_up(link.pause)
        except StoreUnavailable as error:
            link.lose(error)
            return False
        link.recovered()
        return True

    def _make_up(self, pause: float) -> int:
        wanted = self._link.behind | self._shadow.unsynced_services()
        return make_up(
            wanted,
            own=self._l1,
            shared=self._l2,
            remembered=self._remembered,
            reconciler=self._reconciler,
            shadow=self._shadow,
            keep=self._keep,
            pause=pause,
            done=self._link.behind.discard,
        )


def _is_for_all(before: CircuitBreakerStateData, after: CircuitBreakerStateData) -> bool:
    """Trials start, and close a breaker, where all can see it: who is alone can't tell how others fare."""
    closed_by_trials = after.generation > before.generation and after.reason == BreakerEvent.TRIALS_SUCCEEDED
    return after.slots_given > before.slots_given or closed_by_trials


def _keeps_away(row: CircuitBreakerStateData) -> bool:
    return row.state is not BreakerState.CLOSED or row.is_pinned(clock.now())
