"""One resolver's run: claim, call, settle, until nothing of it is due.

Calls overlap; each is settled soon after it returns, together with whatever else has returned by then, so
that a slow call delays nobody but itself. Database work happens in threads, in short transactions. All
state lives and ends with the run: whatever goes wrong in it, other resolvers and later runs do not notice.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from effaced.breakers.admitted import Admission
from effaced.core import clock
from effaced.core.db import dbtime
from effaced.core.log import get_logger
from effaced.model import FailureKind
from effaced.outbox.entry import Entry
from effaced.saga.abandoned_hook import HookCaller
from effaced.saga.answers import CallFailure, cancelled_call, overdue_call, read_error
from effaced.saga.call import Caller, longest_call
from effaced.saga.call_lock import RETRY_AFTER, RunLock
from effaced.saga.claims import Claimed
from effaced.saga.connection import Connection
from effaced.saga.decide import NOT_IDEMPOTENT
from effaced.saga.later_read_backs import LaterReadBacks
from effaced.saga.result import Result
from effaced.saga.rules import limits_of
from effaced.saga.run_context import RunContext, StopSignal
from effaced.saga.tasks import GRACE, Heartbeat, in_thread, leave_behind, run_to_end, start
from effaced.saga.writer import Writer

_log = get_logger(__name__)
# How long to wait for anything before looking again: for new entries, the rate limit, or the signal to stop.
_LOOK_AGAIN = 0.5
# How long results wait for others to be settled with them.
_GATHER = 0.02

_CRASH_LOOP = CallFailure(FailureKind.PERMANENT, "CrashLoop", code="crash_loop")
_MAYBE_MADE = CallFailure(FailureKind.PERMANENT, "MaybeMade", code=NOT_IDEMPOTENT)
_UNKNOWN_RESOLVER = CallFailure(FailureKind.PERMANENT, "ResolverError", code="unknown_resolver")


class ResolverRun:
    """The run of one resolver: `run` once, then `settled` and `error` say how it went."""

    def __init__(
        self, context: RunContext, resolver: str, stop: StopSignal, *, seconds: float | None = None
    ) -> None:
        self._context = context
        self._resolver = resolver
        self._stop = StopSignal(stop)
        self._until = None if seconds is None else clock.monotonic() + seconds
        self._limits = limits_of(context.registry, resolver)
        self._room = min(self._limits.batch_size or context.batch_size, self._limits.concurrency)
        self._hook_caller = HookCaller(context.hook)
        self._writer = Writer(context, self._hook_caller)
        self._caller: Caller | None = None
        self._connection: Connection | None = None
        self._is_connected = False
        self._broken: CallFailure | None = None  # what keeps every call of this run from being made
        if resolver in context.registry:
            self._caller = Caller(context.registry.get(resolver), context.keyring)
        else:
            self._broken = _UNKNOWN_RESOLVER
        self._calls: dict[asyncio.Task[Result], _RunningCall] = {}
        self._lock = RunLock(self)
        self._nothing_due = False
        self._starts_at = 0.0  # the rate limit lets nothing start before
        self._later: LaterReadBacks | None = None
        self._heartbeat = Heartbeat()
        self.error: BaseException | None = None

    @property
    def is_lost(self) -> bool:
        """Whether this run may never go on: its event loop was closed, stopped or blocked."""
        return self._heartbeat.has_stopped

    @property
    def settled(self) -> int:
        return self._writer.settled + (self._later.settled if self._later else 0)

    async def run(self) -> None:
        """Work until nothing is due, time is up, or it is told to stop. Raises only if cancelled."""
        try:
            await self._claim_and_settle()
            self._later = LaterReadBacks(
                self._context, self._resolver, self._lock, self._caller, self._connect
            )
            await self._later.run(is_over=self._is_over, may_call=self._may_call)
        except asyncio.CancelledError:
            self._cancel_calls()
            raise
        except Exception as error:
            self.error = error
        finally:
            # Whatever ended the run: calls that were made are waited for, each has its time, and settled.
            await run_to_end(self._finish())

    def _is_over(self) -> bool:
        return bool(self._stop) or (self._until is not None and clock.monotonic() >= self._until)

    # --- the pump ---

    async def _claim_and_settle(self) -> None:
        while True:
            over = self._is_over()
            if not over:
                await self._claim()
            if self._calls:
                await self._settle_returned()
            elif self._writer.is_busy:
                await self._writer.finish()
                self._lock.release()
            else:
                self._lock.release()  # before any wait: others may be waiting to have it alone
                if over or self._nothing_due:
                    return
                await asyncio.sleep(self._pause())

    async def _claim(self) -> None:
        """Claim and call as much as there is room for."""
        room = self._room - len(self._calls)
        if (
            room <= 0
            or self._lock.is_exclusive
            or self._writer.is_stuck
            or clock.monotonic() < self._starts_at
        ):
            return
        if not self._may_call():
            return
        claimed = await in_thread(partial(self._claim_callable, room), undo=self._release)
        self._starts_at = clock.monotonic() + claimed.wait
        self._nothing_due = not (
            claimed.entries or claimed.needs_exclusive or claimed.wait or self._lock.is_exclusive
        )
        self._lock.needs_exclusive = claimed.needs_exclusive
        if claimed.entries:
            self._call(await self._connect_for(claimed))

    def _claim_callable(self, room: int) -> Claimed:
        """Claim, and release what could not be finished within its lease, or was claimed after the stop."""
        context = self._context
        claimed = context.claims.claim(self._resolver, room, alone=self._lock.is_exclusive)
        if not claimed.entries:
            return claimed
        if self._stop:
            self._release(claimed)
            return Claimed([])
        callable_ = self._release_late(claimed)
        if callable_ is not claimed:
            self._stop.set()  # the next claim may be no longer
        return callable_

    def _release(self, claimed: Claimed) -> None:
        self._context.claims.release(claimed.entries, claimed.admission)

    def _release_late(self, claimed: Claimed) -> Claimed:
        """Release what can't be finished within its lease any more."""
        context = self._context
        latest = dbtime.now_for(context.sessions) + timedelta(seconds=longest_call(self._limits))
        late = [entry for entry in claimed.entries if entry.gate is not None and entry.gate < latest]
        if not late:
            return claimed
        context.claims.release(late, claimed.admission)
        _log.error("lease_too_short", resolver=self._resolver, released=len(late))
        return replace(claimed, entries=[entry for entry in claimed.entries if entry not in late])

    def _may_call(self) -> bool:
        """Whether calls may be made in this process now: beside others or, after a crash, alone."""
        self._nothing_due = False
        idle = not self._calls and not self._writer.is_busy
        if self._lock.acquire(idle=idle):
            return True
        if self._lock.has_waited_too_long:
            _log.warning("crashed_entries_put_off", resolver=self._resolver)
            self._stop.set()
        return False

    def _pause(self) -> float:
        wait = self._starts_at - clock.monotonic()
        return min(_LOOK_AGAIN, wait) if wait > 0 else RETRY_AFTER

    # --- calls ---

    async def _connect_for(self, claimed: Claimed) -> Claimed:
        """Connect when something has been claimed, so that a crash while connecting counts against it."""
        poison = all(entry.crashes >= self._context.crash_limit for entry in claimed.entries)
        if self._is_connected or poison or claimed.maybe_made:
            return claimed
        try:
            await self._connect()
        except asyncio.CancelledError:
            self._call(claimed)  # these calls are cancelled before they begin, and settled as not made
            raise
        if self._connection is None:
            return claimed
        return await in_thread(partial(self._release_late, claimed), undo=self._release)

    async def _connect(self) -> CallFailure | None:
        """Open what the resolver keeps open for its calls, once. If that fails, so does every call."""
        if self._is_connected or self._caller is None:
            return self._broken
        self._is_connected = True
        resolver = self._context.registry.get(self._resolver).resolver
        if not isinstance(resolver, AbstractAsyncContextManager):
            return None
        self._connection = Connection(resolver, self._limits.timeout.total_seconds())
        if (error := await self._connection.open()) is not None:
            self._broken = self._caller.failure(error)
            self._connection = None
            # Also where it wants to end the process: what is due is failed first, or it would wait for ever
            # without using up its attempts.
            _log.error("resolver_not_opened", resolver=self._resolver, error=self._broken.error)
        return self._broken

    async def _disconnect(self) -> None:
        if self._connection is None or self._caller is None:
            return
        if (error := await self._connection.close()) is not None:
            failure = self._caller.failure(error)
            _log.warning("resolver_not_closed", resolver=self._resolver, error=failure.error)

    def _call(self, claimed: Claimed) -> None:
        """Begin the calls of claimed entries, or fail at once those that must not be made."""
        admission = claimed.admission
        denial = self._denial(admission) or self._broken
        late = clock.monotonic() + longest_call(self._limits) + GRACE

        def may_read_back() -> bool:
            return self._denial(admission) is None

        for entry in claimed.entries:
            failure = denial
            if entry.crashes >= self._context.crash_limit:
                failure = _CRASH_LOOP
            elif claimed.maybe_made:
                failure = _MAYBE_MADE
            if failure is not None or self._caller is None:
                call = _not_made(Result(entry, failure=failure, admission=admission))
            else:
                call = self._caller.call(entry, admission, may_read_back)
            self._calls[start(call)] = _RunningCall(entry, admission, late)

    def _denial(self, admission: Admission | None) -> CallFailure | None:
        return self._context.gate.denial(admission) if admission else None

    async def _settle_returned(self, *, waiting: float = _LOOK_AGAIN) -> None:
        """Wait a while for a result, and a moment for more, and pass them on to be settled."""
        done, pending = await asyncio.wait(self._calls, timeout=waiting, return_when=asyncio.FIRST_COMPLETED)
        if done and pending:
            more, pending = await asyncio.wait(pending, timeout=_GATHER)
            done |= more
        results = [self._result_of(task, self._calls.pop(task)) for task in done]
        await self._writer.write(results + self._give_up_overdue())
        self._stop_if_fatal()

    def _stop_if_fatal(self) -> None:
        if self._caller is not None and self._caller.fatal is not None:
            self._stop.set()

    def _give_up_overdue(self) -> list[Result]:
        """Give up calls that go on although their time is up: a resolver may swallow its cancellation."""
        now = clock.monotonic()
        late = [task for task, call in self._calls.items() if call.deadline <= now]
        results = []
        for task in late:
            call = self._calls.pop(task)
            leave_behind(task)
            _log.error("call_left_behind", resolver=self._resolver, entry_id=str(call.entry.entry_id))
            results.append(self._ended_by(call, cancelled_call() if call.cancelled else overdue_call()))
        return results

    def _result_of(self, task: asyncio.Task[Result], call: _RunningCall) -> Result:
        if not task.cancelled():
            return task.result()
        # One that we cancelled before its first step has not been made at all. Otherwise it was the resolver.
        failure = cancelled_call() if call.cancelled else read_error(asyncio.CancelledError())
        return self._ended_by(call, failure)

    def _ended_by(self, call: _RunningCall, failure: CallFailure) -> Result:
        if self._caller is None:
            return Result(call.entry, failure=failure, admission=call.admission)
        return self._caller.left_behind(call.entry, failure, call.admission)

    def _cancel_calls(self) -> None:
        self._stop.set()
        if self._caller is not None:
            self._caller.cancelling = True
        late = clock.monotonic() + GRACE
        for task, call in self._calls.items():
            task.cancel()
            call.deadline, call.cancelled = late, True

    async def _finish(self) -> None:
        try:
            while self._calls:
                await self._settle_returned(waiting=min(_LOOK_AGAIN, self._seconds_to_deadline()))
            await self._writer.finish()
            self.error = self.error or self._writer.error
        except Exception as error:
            self.error = self.error or error
        finally:
            self._lock.give_up()
            self._heartbeat.cancel()
            await self._disconnect()
            await self._hook_caller.finish()
            if self._caller is not None and self._caller.fatal is not None:
                self.error = self._caller.fatal

    def _seconds_to_deadline(self) -> float:
        first = min(call.deadline for call in self._calls.values())
        return max(0.0, first - clock.monotonic()) + 0.001


@dataclass(slots=True)
class _RunningCall:
    entry: Entry
    admission: Admission | None
    deadline: float
    cancelled: bool = False


async def _not_made(result: Result) -> Result:
    return result
