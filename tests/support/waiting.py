"""Waiting for something to come true. As long as a loaded machine may need."""

from __future__ import annotations

import time
from collections.abc import Callable

# A condition that holds ends the wait at once, so patience costs nothing while all is well.
PATIENCE = 120.0


def eventually(holds: Callable[[], object], what: str) -> None:
    """Wait until it holds. Fails, with what was waited for, when patience ends."""
    until = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > until:
            raise AssertionError(f"waited {PATIENCE:.0f} s in vain for: {what}")
        time.sleep(0.02)
