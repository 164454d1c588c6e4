"""Which runs may make calls in this process at the same time.

An entry whose runner died may end the next one too. It is called with nothing else under way in the
process, in no resolver and no thread, so that a crash can be nobody's fault but its own.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol

from effaced.core import clock

# How long to wait for exclusive use of the process before crashed entries are put off.
_PATIENCE = 60.0
# How long to wait before asking again for a lock that was not free.
RETRY_AFTER = 0.02


class Holder(Protocol):
    """A run. One that is lost will never release the lock by itself."""

    @property
    def is_lost(self) -> bool: ...


class CallLock:
    """Shared by many runs, or held by one exclusively. Those that wait for exclusive use come first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sharing: set[Holder] = set()
        self._waiting: set[Holder] = set()
        self._exclusive: Holder | None = None

    def share(self, run: Holder) -> bool:
        """Whether this run may make calls beside others now."""
        with self._lock:
            self._forget_lost()
            if self._exclusive is not None or self._waiting - {run}:
                return False
            self._sharing.add(run)
            return True

    def take(self, run: Holder) -> bool:
        """Whether this run, which has nothing under way, holds the lock exclusively now.

        If not, no other run makes another call until it does.
        """
        with self._lock:
            self._forget_lost()
            if self._exclusive is run:
                return True
            self._sharing.discard(run)
            self._waiting.add(run)
            if self._exclusive is not None or self._sharing:
                return False
            self._waiting.discard(run)
            self._exclusive = run
            return True

    def release(self, run: Holder) -> None:
        """This run has nothing under way, and nothing that is not written down."""
        with self._lock:
            self._sharing.discard(run)
            self._waiting.discard(run)
            if self._exclusive is run:
                self._exclusive = None

    def _forget_lost(self) -> None:
        for runs in (self._sharing, self._waiting):
            runs -= {run for run in runs if run.is_lost}
        if self._exclusive is not None and self._exclusive.is_lost:
            self._exclusive = None


CALL_LOCK = CallLock()
# A fork has none of its parent's threads, and so none of their calls.
os.register_at_fork(after_in_child=CALL_LOCK.__init__)  # type: ignore[misc]


class RunLock:
    """One run's use of the call lock: shared, or exclusive while `needs_exclusive` is set."""

    def __init__(self, run: Holder) -> None:
        self._run = run
        self._wait_until: float | None = None
        self.needs_exclusive = False
        self.is_exclusive = False

    def acquire(self, *, idle: bool) -> bool:
        """Whether calls may be made now. Exclusive use needs a run that is `idle`."""
        if not self.needs_exclusive:
            return CALL_LOCK.share(self._run)
        if not idle:
            return False
        self.is_exclusive = CALL_LOCK.take(self._run)
        if self.is_exclusive:
            self._wait_until = None
        elif self._wait_until is None:
            self._wait_until = clock.monotonic() + _PATIENCE
        return self.is_exclusive

    @property
    def has_waited_too_long(self) -> bool:
        """Whether to give up: other runs claim nothing for as long as this one waits."""
        return self._wait_until is not None and clock.monotonic() > self._wait_until

    def release(self) -> None:
        """Release it, unless exclusive use is still waited for."""
        if not self.needs_exclusive or self.is_exclusive:
            self.is_exclusive = False
            CALL_LOCK.release(self._run)

    def give_up(self) -> None:
        """Release it, and wait for nothing."""
        CALL_LOCK.release(self._run)
