"""The connection to the shared store, as one process sees it."""

from __future__ import annotations

from threading import RLock

from effaced.breakers.model import StoreUnavailable
from effaced.core import clock
from effaced.core.log import get_logger

_log = get_logger(__name__)


class Link:
    """Up, lost, or answering again and waiting for its turn to reconcile. Change it only with the lock held.

    `loaded` are the breakers whose rows are in memory, `unsynced` those changed during the outage.
    `fresh_until`, on the monotonic clock, is when memory has to be compared with the store again.
    """

    def __init__(self, refresh_s: float, retry_s: float) -> None:
        self.lock = RLock()
        self.loaded: set[str] = set()
        self.unsynced: set[str] = set()
        self.fresh_until = 0.0
        # Not up until what earlier processes left unsynced has been looked for.
        self.up = False
        self.error: StoreUnavailable | None = None
        self.answered = False
        self.pause = 0.0
        self.try_at = 0.0
        self._refresh_s = refresh_s
        self._retry_s = retry_s

    def refreshed(self) -> None:
        self.fresh_until = clock.monotonic() + self._refresh_s

    def lost(self, error: StoreUnavailable) -> None:
        """It does not answer: use memory, and try again a little later."""
        if self.error is None:
            _log.warning("breaker_store_lost", error=error.error)
        self.up, self.error, self.answered = False, error, False
        self._wait(self._retry_s)

    def answers(self, pause: float) -> None:
        """It answers again. Use memory a little longer, so that not all processes return at once."""
        self.answered, self.pause = True, pause
        self._wait(pause)

    def recovered(self) -> None:
        if self.error is not None:
            _log.info("breaker_store_recovered", paused=round(self.pause, 3))
        self.up, self.error, self.answered, self.pause = True, None, False, 0.0
        self.fresh_until = 0.0

    def _wait(self, seconds: float) -> None:
        self.try_at = self.fresh_until = clock.monotonic() + seconds
