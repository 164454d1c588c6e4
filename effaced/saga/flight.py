"""Calls in the air, and the results that have landed on their way into the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from effaced.saga.result import Result

# How long results wait for company before they are settled.
_GATHER = 0.02
Flying = set[asyncio.Task[Result]]


async def landed(flying: Flying, seconds: float) -> tuple[list[Result], Flying]:
    """Wait a while for a result, and a moment for more; the rest flies on."""
    done, flying = await asyncio.wait(flying, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    if done and flying:
        more, flying = await asyncio.wait(flying, timeout=_GATHER)
        done |= more
    return [task.result() for task in done], flying


class Flush:
    """Settles results in a thread while the next calls are claimed and made; never two flushes at once."""

    def __init__(self, settle_now: Callable[[Sequence[Result]], int]) -> None:
        self._settle_now = settle_now
        self._running: asyncio.Task[int] | None = None
        self._settled = 0

    async def start(self, results: Sequence[Result]) -> None:
        if results:
            await self.finish()
            self._running = asyncio.create_task(asyncio.to_thread(self._settle_now, results))

    @property
    def is_running(self) -> bool:
        return self._running is not None

    async def finish(self) -> int:
        """Wait for the flush under way; how many entries were settled so far."""
        if self._running is not None:
            running, self._running = self._running, None
            self._settled += await running
        return self._settled
