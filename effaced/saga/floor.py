"""Who may make calls in this process beside whom.

An entry whose runner died may end the next one too. It is called with nothing else under way in the
process, in no resolver and no thread, so that a crash can be nobody's fault but its own.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol


class Occupant(Protocol):
    """A run. One that is lost will never leave by itself."""

    @property
    def is_lost(self) -> bool: ...


class Floor:
    """Runs share the floor, or one of them has it alone. Those that wait to be alone come first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sharing: set[Occupant] = set()
        self._waiting: set[Occupant] = set()
        self._alone: Occupant | None = None

    def share(self, run: Occupant) -> bool:
        """Whether this run may make calls beside others now."""
        with self._lock:
            self._forget_lost()
            if self._alone is not None or self._waiting - {run}:
                return False
            self._sharing.add(run)
            return True

    def take(self, run: Occupant) -> bool:
        """Whether this run, which has nothing under way, has the floor alone now.

        If not, nobody else makes another call until it has.
        """
        with self._lock:
            self._forget_lost()
            if self._alone is run:
                return True
            self._sharing.discard(run)
            self._waiting.add(run)
            if self._alone is not None or self._sharing:
                return False
            self._waiting.discard(run)
            self._alone = run
            return True

    def leave(self, run: Occupant) -> None:
        """This run has nothing under way, and nothing that is not written down."""
        with self._lock:
            self._sharing.discard(run)
            self._waiting.discard(run)
            if self._alone is run:
                self._alone = None

    def _forget_lost(self) -> None:
        for runs in (self._sharing, self._waiting):
            runs -= {run for run in runs if run.is_lost}
        if self._alone is not None and self._alone.is_lost:
            self._alone = None


FLOOR = Floor()
# A fork has none of its parent's threads, and so none of their calls.
os.register_at_fork(after_in_child=FLOOR.__init__)  # type: ignore[misc]
