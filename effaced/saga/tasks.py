"""Running work to its end in asyncio, whatever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

T = TypeVar("T")

# How long something that was cancelled may take to end before it is left behind.
GRACE = 1.0


def leave_behind(task: asyncio.Task[object]) -> None:
    """Give up on a task that swallows its cancellation. Not even the end of the loop waits for it."""
    task.cancel()
    asyncio.tasks._unregister_task(task)


async def in_thread(act: Callable[[], T], *, undo: Callable[[T], None]) -> T:
    """Act in a thread. If we are cancelled meanwhile, what was done is undone."""
    acting = asyncio.create_task(asyncio.to_thread(act))
    try:
        return await asyncio.shield(acting)
    except asyncio.CancelledError:
        await asyncio.to_thread(undo, await acting)
        raise


async def finish(work: Coroutine[object, object, None]) -> None:
    """Have this done, however often we are cancelled meanwhile: it takes a bounded time."""
    task, cancelled_meanwhile = asyncio.create_task(work), False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled_meanwhile = True
    if cancelled_meanwhile:
        raise asyncio.CancelledError
    task.result()
