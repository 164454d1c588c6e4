"""Making the read-backs that could not be made with their erasure, one by one, at the end of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

from effaced.audit.append import SYSTEM
from effaced.breakers.model import BreakerRole
from effaced.core import clock
from effaced.core.db import dbtime
from effaced.core.log import get_logger
from effaced.model import FailureKind, Verification
from effaced.outbox.entry import Entry
from effaced.outbox.flow import CREDENTIALS_REFUSED, pause
from effaced.saga.answers import CallFailure, overdue_call, read_error
from effaced.saga.call import Caller, longest_call
from effaced.saga.call_lock import RETRY_AFTER, RunLock
from effaced.saga.claims import Claimed
from effaced.saga.result import ReadBack
from effaced.saga.rules import limits_of
from effaced.saga.run_context import RunContext
from effaced.saga.settle_read_back import settle_read_back
from effaced.saga.tasks import GRACE, in_thread, leave_behind, run_to_end, start, to_thread
from effaced.saga.writer import ASK_AGAIN, DATABASE_AWAY

_log = get_logger(__name__)


class LaterReadBacks:
    """Makes the read-backs that are due: each erases once more, then verifies. `settled` counts the results.

    `connect` opens the resolver for the calls of the run, if need be, and returns the failure that prevents
    all calls, if there is one.
    """

    def __init__(
        self,
        context: RunContext,
        resolver: str,
        lock: RunLock,
        caller: Caller | None,
        connect: Callable[[], Awaitable[CallFailure | None]],
    ) -> None:
        self._context = context
        self._context = context
        self._resolver = resolver
        self._lock = lock
        self._caller = caller
        self._connect = connect
        self._longest = longest_call(limits_of(context.registry, resolver))
        self.settled = 0

    async def run(self, *, is_over: Callable[[], bool], may_call: Callable[[], bool]) -> None:
        """Make those that are due, until the run is over."""
        self._lock.needs_exclusive = False
        while not is_over():
            if not may_call():
                await asyncio.sleep(RETRY_AFTER)
                continue
            try:
                if not await self._next(alone=self._lock.is_exclusive):
                    return
            finally:
                self._lock.release()

    async def _next(self, *, alone: bool) -> bool:
        """Make one read-back. False if there is none to make now."""
        gate = self._context.gate
        admission = await to_thread(gate.admit, self._resolver, 1, BreakerRole.VERIFY)
        if not admission.granted:
            return False
        claimed, read_back = Claimed([]), None
        try:
            claimed = await in_thread(
                partial(self._context.claims.claim_read_back, self._resolver, alone=alone),
                undo=self._give_back,
            )
            self._lock.needs_exclusive = claimed.needs_exclusive
            if not claimed.entries:
                return claimed.needs_exclusive or alone
            (entry,) = claimed.entries
            poison = entry.crashes >= self._context.crash_limit
            if not poison:
                read_back = await self._read_back(entry)
        except asyncio.CancelledError:
            if claimed.entries:
                await run_to_end(to_thread(self._give_back, claimed))
            raise
        finally:
            await run_to_end(to_thread(gate.report_read_back, self._resolver, admission, read_back))
        await self._write_down(entry, read_back or ReadBack(clock.now()), give_up=poison)
        return self._caller is None or self._caller.fatal is None

    def _give_back(self, claimed: Claimed) -> None:
        for entry in claimed.entries:
            self._context.claims.release_read_back(entry)

    async def _read_back(self, entry: Entry) -> ReadBack:
        # A crash while connecting counts against this read-back, as one in it would.
        broken = await self._connect()
        if broken is not None or self._caller is None:
            return ReadBack(clock.now(), failure=broken)
        task = start(self._caller.erase_and_read_back(entry))
        try:
            await asyncio.wait({task}, timeout=self._longest + GRACE)
        finally:
            if not task.done():
                leave_behind(task)
        if not task.done():
            return ReadBack(clock.now(), failure=overdue_call())
        if task.cancelled():  # by the resolver: a cancellation of the run has been raised above
            return ReadBack(clock.now(), failure=read_error(asyncio.CancelledError()))
        return task.result()

    async def _write_down(self, entry: Entry, read_back: ReadBack, *, give_up: bool) -> None:
        """Write the result, retrying for a while if the database is away.

        What can't be written is given back: the call was made, so it is no crash.
        """
        until = clock.monotonic() + DATABASE_AWAY
        while True:
            try:
                return await to_thread(self._write, entry, read_back, give_up=give_up)
            except Exception:
                if await to_thread(self._is_released, entry) or clock.monotonic() >= until:
                    raise
            await asyncio.sleep(ASK_AGAIN)

    def _is_released(self, entry: Entry) -> bool:
        try:
            self._context.claims.release_read_back(entry)
        except Exception as error:
            _log.warning("read_back_not_released", resolver=entry.resolver, error=type(error).__name__)
            return False
        return True

    def _write(self, entry: Entry, read_back: ReadBack, *, give_up: bool) -> None:
        give_up = give_up or (
            read_back.failure is not None and read_back.failure.kind is FailureKind.PERMANENT
        )
        context = self._context
        with context.sessions.begin() as session:
            now = dbtime.now(session)
            again_at = None  # no further attempt: a person has to look
            if read_back.seen is Verification.DUE and not give_up:
                policy = context.book.in_force(session, [entry])[entry.entry_id].policy
                if now <= (entry.last_attempt_at or now) + policy.max_age:
                    again_at = now + timedelta(seconds=policy.max_backoff_delay)
            written = settle_read_back(
                session, entry, read_back, again_at=again_at, on_complete=context.on_complete
            )
            if read_back.refused:
                pause(session, entry.resolver, actor=SYSTEM, code=CREDENTIALS_REFUSED)
        self.settled += written
