"""Running work to its end in asyncio, whatever is cancelled meanwhile, and by whom."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import cache, partial
from typing import Any, ParamSpec, TypeVar

from effaced.core import clock

T = TypeVar("T")
P = ParamSpec("P")

# How long something that was cancelled may take to end before it is left behind.
GRACE = 1.0
# In the code of a resolver: the task in which it was called.
_calling: ContextVar[asyncio.Task[Any] | None] = ContextVar("calling", default=None)


class Heartbeat:
    """Tells other threads whether the event loop that this was made in still runs.

    It does not once it is closed, once its thread has ended, or while something blocks its thread.
    """

    def __init__(self, *, every: float = 1.0, stopped_after: float = 10.0) -> None:
        self._loop = asyncio.get_running_loop()
        self._every = every
        self._stopped_after = stopped_after
        self._beat()

    def _beat(self) -> None:
        self._last = clock.monotonic()
        self._timer = self._loop.call_later(self._every, self._beat)

    def cancel(self) -> None:
        self._timer.cancel()

    @property
    def has_stopped(self) -> bool:
        # One that doesn't run may only be between two calls of `run_until_complete`.
        patience = self._stopped_after if self._loop.is_running() else 2 * self._every
        return self._loop.is_closed() or clock.monotonic() - self._last > patience


class Task(asyncio.Task[T]):
    """One of our own. The code of a resolver can cancel the task that calls it, and no other.

    `was_spared` says that it has tried, as it does that cancels every task of its loop.
    """

    was_spared = False

    def cancel(self, msg: Any | None = None) -> bool:
        caller = _calling.get()
        if caller is None or caller is self:
            return super().cancel(msg)
        self.was_spared = True
        return False


class _Finishing(Task[T]):
    """One that goes on to its end even if every task of the loop is cancelled: it takes a bounded time."""

    def cancel(self, msg: Any | None = None) -> bool:
        return False


def start(work: Coroutine[Any, Any, T]) -> Task[T]:
    """Start the coroutine in a task of its own."""
    return Task(work, loop=asyncio.get_running_loop())


def enter_resolver_code() -> None:
    """From here on, this task runs the code of a resolver."""
    _calling.set(asyncio.current_task())


async def isolated(work: Coroutine[Any, Any, T]) -> T:
    """Await this for a caller who may be cancelled, but not by the code of a resolver."""
    task, caller = start(work), asyncio.current_task()
    assert caller is not None
    before = caller.cancelling()
    try:
        return await task
    except asyncio.CancelledError:
        # A cancellation that was meant would have reached the task through the caller that waits for it.
        if task.cancelled() or not task.was_spared:
            raise
        while caller.cancelling() > before:
            caller.uncancel()
        return task.result()


def leave_behind(task: asyncio.Task[Any]) -> None:
    """Give up a task that swallows its cancellation. Not even the end of the loop waits for it."""
    task.cancel()
    asyncio.tasks._unregister_task(task)


@cache
def _threads(_process: int) -> ThreadPoolExecutor:
    """Threads of our own, in each process: resolvers may fill or shut down those of the loop."""
    return ThreadPoolExecutor(max_workers=32, thread_name_prefix="effaced")


def begin_in_thread(act: Callable[[], T]) -> asyncio.Future[T]:
    """Run this in a thread. It is no task, so cancelling all tasks does not lose its result."""
    threads, run = _threads(os.getpid()), copy_context().run
    return asyncio.get_running_loop().run_in_executor(threads, run, _without_stop_iteration, act)


def _without_stop_iteration(act: Callable[[], T]) -> T:
    """A future can't hold StopIteration, and whoever awaits it would wait for ever."""
    try:
        return act()
    except StopIteration as error:
        raise RuntimeError("StopIteration was raised in a thread") from error


async def to_thread(act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`asyncio.to_thread` in threads of our own."""
    return await begin_in_thread(partial(act, *args, **kwargs))


async def in_thread(act: Callable[[], T], *, undo: Callable[[T], None]) -> T:
    """Run this in a thread. If we are cancelled meanwhile, its result is undone."""
    acting = begin_in_thread(act)
    try:
        return await asyncio.shield(acting)
    except asyncio.CancelledError:
        await run_to_end(_undo(acting, undo))
        raise


async def _undo(acting: asyncio.Future[T], undo: Callable[[T], None]) -> None:
    try:
        done = await acting
    except Exception:
        return  # nothing was done
    await to_thread(undo, done)


async def run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run this to its end, however often we are cancelled meanwhile: it takes a bounded time."""
    task = _Finishing(work, loop=asyncio.get_running_loop())
    cancelled_meanwhile = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled_meanwhile = True
    if cancelled_meanwhile:
        raise asyncio.CancelledError
    task.result()
