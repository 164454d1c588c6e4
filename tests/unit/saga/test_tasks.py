"""Whether an event loop runs, as seen from another thread."""

from __future__ import annotations

import asyncio
import threading

from waiting import PATIENCE, eventually

from effaced.saga.tasks import Heartbeat


class Loop:
    """An event loop in a thread of its own, and its heartbeat."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        beginning = asyncio.run_coroutine_threadsafe(self._begin(), self.loop)
        self.heartbeat: Heartbeat = beginning.result(PATIENCE)

    async def _begin(self) -> Heartbeat:
        return Heartbeat(every=0.01, stopped_after=0.5)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(PATIENCE)
        self.loop.close()


def test_stops_while_a_loop_is_blocked_and_goes_on_afterwards() -> None:
    running, released = Loop(), threading.Event()
    running.loop.call_soon_threadsafe(released.wait, PATIENCE)
    eventually(lambda: running.heartbeat.has_stopped, "the heartbeat to stop")
    released.set()
    eventually(lambda: not running.heartbeat.has_stopped, "the heartbeat to go on")
    running.close()


def test_stops_with_a_loop_that_is_stopped_and_not_closed() -> None:
    running = Loop()
    running.loop.call_soon_threadsafe(running.loop.stop)
    eventually(lambda: running.heartbeat.has_stopped, "the heartbeat to stop")
    running.loop.close()


def test_stops_at_once_with_a_loop_that_is_closed() -> None:
    running = Loop()
    running.close()
    assert running.heartbeat.has_stopped
