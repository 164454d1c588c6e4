"""Keeping a resolver open for the calls of a run.

A resolver that is an async context manager is entered and left in one task of its own, as some libraries
demand, and neither may take longer than a call: what does not end is left behind.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

from effaced.saga.tasks import GRACE, enter_resolver_code, leave_behind, start


class Connection:
    """One resolver, open or not. `open` and `close` return what the resolver raised, and raise nothing."""

    def __init__(self, resolver: AbstractAsyncContextManager[object], seconds: float) -> None:
        self._resolver = resolver
        self._seconds = seconds
        self._opened = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._holder: asyncio.Task[object] = start(self._hold_open())
        self._error: BaseException | None = None

    async def open(self) -> BaseException | None:
        waited_for: set[asyncio.Future[object]] = {self._holder, self._opened}
        await asyncio.wait(waited_for, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._opened.done():
            return None
        return await self._end()

    async def close(self) -> BaseException | None:
        self._closing.set()
        await asyncio.wait({self._holder}, timeout=self._seconds)
        return await self._end()

    async def _hold_open(self) -> None:
        """Enter the resolver, stay in it until `close`, and leave it: all in one task."""
        enter_resolver_code()
        try:
            async with self._resolver:
                self._opened.set_result(None)
                await self._closing.wait()
        except BaseException as error:
            self._error = error

    async def _end(self) -> BaseException | None:
        if not self._holder.done():
            self._holder.cancel()
            await asyncio.wait({self._holder}, timeout=GRACE)
            if not self._holder.done():
                leave_behind(self._holder)
            return TimeoutError()
        return self._error
