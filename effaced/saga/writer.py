"""Writing the results of calls, in a thread beside the calls.

A flush that fails is settled entry by entry, so that one that can't be written strands nobody. What could
still not be written stays in memory with its lease renewed and is tried again; if that does not help, the
entries are left to their lease with a note that their calls had returned, so that nobody takes it for a
crash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from uuid import UUID

from effaced.core import clock
from effaced.core.db import dbtime
from effaced.core.errors import EffacedError, Unavailable
from effaced.core.log import get_logger
from effaced.model import OutboxStatus
from effaced.outbox.entry import Entry
from effaced.saga.abandoned_hook import HookCaller
from effaced.saga.decide import decide
from effaced.saga.result import Decision, Result, Rules
from effaced.saga.run_context import RunContext
from effaced.saga.settle import settle
from effaced.saga.tasks import begin_in_thread, to_thread

_log = get_logger(__name__)
# The waits before results that could not be written are tried again, in seconds.
_AGAIN_AFTER = (0.05, 0.1, 0.2, 0.4, 0.8)
# While not even the note can be written (the database is away), it is asked again for this long.
DATABASE_AWAY = 60.0
ASK_AGAIN = 2.0


class Writer:
    """Writes the results of one run, one flush at a time. `settled` counts what was written."""

    def __init__(self, context: RunContext, hook_caller: HookCaller) -> None:
        self._context = context
        self._hook_caller = hook_caller
        self._flush: asyncio.Future[None] | None = None
        self._returned: list[Result] = []
        self._unwritten: list[Result] = []
        self._problem = ""  # the class of the last error that kept something from being written
        self.error: EffacedError | None = None
        self.settled = 0

    @property
    def is_busy(self) -> bool:
        """Whether there is anything that has returned and is not written down."""
        return self._flush is not None or bool(self._returned or self._unwritten)

    @property
    def is_stuck(self) -> bool:
        """Whether something could not be written at the first attempt. Nothing should be called meanwhile."""
        return bool(self._unwritten)

    async def write(self, results: Sequence[Result]) -> None:
        """Begin to write these results, after those before them."""
        if results:
            self._returned += results  # first of all: the wait may be cancelled
            await self._begin_flush()

    async def finish(self) -> None:
        """Have everything written. If something can't be, however often it is tried, `error` says so."""
        if self._returned:
            await self._begin_flush()
        await self._finish_flush()
        for wait in _AGAIN_AFTER:
            if not self._unwritten:
                return
            await asyncio.sleep(wait)
            await to_thread(self._write_again)
        until = clock.monotonic() + DATABASE_AWAY
        while self._unwritten and not await to_thread(self._keep) and clock.monotonic() < until:
            await asyncio.sleep(ASK_AGAIN)
            await to_thread(self._write_again)
        if self._unwritten:
            count, self._unwritten = len(self._unwritten), []
            _log.error("results_not_written", entries=count)
            self.error = Unavailable(
                f"What {count} of the calls returned could not be written down ({self._problem}). They are"
                " made again when their leases have run out."
            )

    async def _begin_flush(self) -> None:
        await self._finish_flush()
        results, self._returned = self._returned, []
        self._flush = begin_in_thread(partial(self._write_new, results))

    async def _finish_flush(self) -> None:
        if (flush := self._flush) is None:
            return
        try:
            # A cancelled run still has to wait for it: the thread goes on whatever happens to the task.
            await asyncio.shield(flush)
        finally:
            if flush.done():
                self._flush = None

    # --- in a thread, where what is no Exception comes from a sink or a hook: nobody interrupts threads ---

    def _write_new(self, results: Sequence[Result]) -> None:
        """Write a flush and report it to the breakers; trials first, since they say until when to wait."""
        gate = self._context.gate
        trials = [each for each in results if each.trial]
        if trials:
            gate.report(trials)
            until = {name: gate.retry_at(name) for name in {each.entry.resolver for each in trials}}
            results = [
                each._replace(retry_at=until[each.entry.resolver]) if each.trial else each for each in results
            ]
        self._unwritten += self._write(results)
        if self._unwritten:
            self._keep()
        gate.report([each for each in results if not each.trial])

    def _write_again(self) -> None:
        self._unwritten = self._write(self._unwritten)
        if self._unwritten:
            self._keep()

    def _keep(self) -> bool:
        try:
            self._context.claims.keep([each.entry for each in self._unwritten])
        except BaseException as error:
            _log.error("leases_not_renewed", entries=len(self._unwritten), error=type(error).__name__)
            return False
        return True

    def _write(self, results: Sequence[Result]) -> list[Result]:
        """Write these down in one transaction; returns those that could not be written."""
        decisions, undecided = self._decide(results)
        if not decisions:
            return undecided
        try:
            written = self._settle(decisions)
        except BaseException as error:
            _log.warning("flush_failed", entries=len(decisions), error=type(error).__name__)
            return undecided + [each.result for each in decisions if not self._settle_alone(each)]
        self._settled(written, of=len(decisions))
        return undecided

    def _decide(self, results: Sequence[Result]) -> tuple[list[Decision], list[Result]]:
        """The decisions, and what can't be decided yet: without rules that is all but plain successes."""
        plain = [each for each in results if each.is_plain_success]
        others = [each for each in results if not each.is_plain_success]
        try:
            now = dbtime.now_for(self._context.sessions)
        except BaseException as error:
            self._problem = type(error).__name__
            _log.warning("time_not_read", entries=len(results), error=type(error).__name__)
            return [], list(results)
        # Of one run, and so of one resolver. What people have changed makes no difference to a success.
        own = self._context.book.from_files(results[0].entry.resolver)
        decisions = [decide(each, own, now) for each in plain]
        try:
            rules = self._rules([each.entry for each in others])
        except BaseException as error:
            self._problem = type(error).__name__
            _log.warning("rules_not_read", entries=len(others), error=type(error).__name__)
            return decisions, others
        return decisions + [decide(each, rules[each.entry.entry_id], now) for each in others], []

    def _rules(self, entries: Sequence[Entry]) -> dict[UUID, Rules]:
        """Changes at run time count from the next flush on. A flush of successes needs no query."""
        if not entries:
            return {}
        # Committed: a rollback has psycopg forget the connection's prepared statements.
        with self._context.sessions.begin() as session:
            return self._context.book.in_force(session, entries)

    def _settle(self, decisions: Sequence[Decision]) -> list[Decision]:
        with self._context.sessions.begin() as session:
            return settle(session, decisions, self._context.on_complete)

    def _settle_alone(self, decision: Decision) -> bool:
        try:
            self._settled(self._settle([decision]), of=1)
        except BaseException as error:
            self._problem = type(error).__name__
            _log.error("settle_failed", entry_id=str(decision.entry.entry_id), error=type(error).__name__)
            return False
        return True

    def _settled(self, written: Sequence[Decision], *, of: int) -> None:
        self.settled += len(written)
        if len(written) < of:
            _log.info("late_settles_refused", entries=of - len(written))
        for each in written:
            if each.status is OutboxStatus.ABANDONED:
                self._hook_caller.report(each)
