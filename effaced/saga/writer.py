"""Writing down what calls came to, in a thread beside the calls.

A flush that fails is settled entry by entry, so that one that can't be written strands nobody. What could
still not be written stays in memory with its lease renewed and is tried again; if that does not help, the
entries are left to their lease with a note that their calls had returned, so that nobody takes it for a
crash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy.orm import Session, sessionmaker

from effaced.audit.sink import AuditSink
from effaced.core import clock, dbtime
from effaced.core.log import get_logger
from effaced.model import OutboxStatus
from effaced.outbox.entry import Entry
from effaced.saga.claims import Claims
from effaced.saga.decide import decide
from effaced.saga.gate import Gate
from effaced.saga.result import Decision, Result, Rules
from effaced.saga.rules import RuleBook
from effaced.saga.settle import OnComplete, settle
from effaced.saga.tell import Teller

_log = get_logger(__name__)
# The waits before results that could not be written are tried again, in seconds.
_AGAIN_AFTER = (0.05, 0.1, 0.2, 0.4, 0.8)
# While not even the note can be written (the database is away), it is asked again for this long.
DATABASE_AWAY = 60.0
ASK_AGAIN = 2.0


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where results are written down, and who is told: the same for every run of a runner."""

    sessions: sessionmaker[Session]
    claims: Claims
    gate: Gate
    book: RuleBook
    audit: AuditSink
    on_complete: OnComplete


class Writer:
    """Writes the results of one run, one flush at a time. `settled` counts what was written."""

    def __init__(self, ledger: Ledger, teller: Teller) -> None:
        self._ledger = ledger
        self._teller = teller
        self._flush: asyncio.Task[None] | None = None
        self._unwritten: list[Result] = []
        self.settled = 0

    @property
    def is_busy(self) -> bool:
        """Whether there is anything that has returned and is not written down."""
        return self._flush is not None or bool(self._unwritten)

    @property
    def is_stuck(self) -> bool:
        """Whether something could not be written at the first try. Nothing should be called meanwhile."""
        return bool(self._unwritten)

    async def write(self, results: Sequence[Result]) -> None:
        """Begin to write these results, after those before them."""
        if results:
            await self._finish_flush()
            self._flush = asyncio.create_task(asyncio.to_thread(self._write_new, results))

    async def finish(self) -> None:
        """Have everything written, as far as it can be."""
        await self._finish_flush()
        for wait in _AGAIN_AFTER:
            if not self._unwritten:
                return
            await asyncio.sleep(wait)
            await asyncio.to_thread(self._write_again)
        until = clock.monotonic() + DATABASE_AWAY
        while self._unwritten and not await asyncio.to_thread(self._keep) and clock.monotonic() < until:
            await asyncio.sleep(ASK_AGAIN)
            await asyncio.to_thread(self._write_again)
        if self._unwritten:
            _log.error("results_not_written", entries=len(self._unwritten))
            self._unwritten = []

    async def _finish_flush(self) -> None:
        if (flush := self._flush) is None:
            return
        try:
            # A cancelled run still has to wait for it: the thread goes on whatever happens to the task.
            await asyncio.shield(flush)
        finally:
            if flush.done():
                self._flush = None

    # --- in a thread ---

    def _write_new(self, results: Sequence[Result]) -> None:
        """Write a flush down and tell the breakers; of trials first, since they say until when to wait."""
        gate = self._ledger.gate
        trials = [each for each in results if each.trial]
        if trials:
            gate.tell(trials)
            until = {name: gate.retry_at(name) for name in {each.entry.resolver for each in trials}}
            results = [
                replace(each, retry_at=until[each.entry.resolver]) if each.trial else each for each in results
            ]
        self._unwritten += self._write(results)
        if self._unwritten:
            self._keep()
        gate.tell([each for each in results if not each.trial])

    def _write_again(self) -> None:
        self._unwritten = self._write(self._unwritten)
        if self._unwritten:
            self._keep()

    def _keep(self) -> bool:
        try:
            self._ledger.claims.keep([each.entry for each in self._unwritten])
        except Exception as error:
            _log.error("leases_not_renewed", entries=len(self._unwritten), error=type(error).__name__)
            return False
        return True

    def _write(self, results: Sequence[Result]) -> list[Result]:
        """Write these down in one transaction; returns those that could not be written."""
        decided = self._decide(results)
        if not decided:
            return list(results)
        try:
            written = self._settle(decided)
        except Exception as error:
            _log.warning("flush_failed", entries=len(decided), error=type(error).__name__)
            return [
                each
                for each in results
                if each.entry.entry_id not in decided or not self._settle_alone(decided[each.entry.entry_id])
            ]
        self._settled(written, of=len(decided))
        if len(decided) == len(results):
            return []
        return [each for each in results if each.entry.entry_id not in decided]

    def _decide(self, results: Sequence[Result]) -> dict[UUID, Decision]:
        """The decisions, by entry. Without rules only successes can be decided; the others wait."""
        book = self._ledger.book
        unruly = [each.entry for each in results if not each.is_plain_success]
        try:
            now = dbtime.now_for(self._ledger.sessions)
        except Exception as error:
            _log.warning("time_not_read", entries=len(results), error=type(error).__name__)
            return {}
        try:
            rules = self._rules(unruly)
        except Exception as error:
            _log.warning("rules_not_read", entries=len(unruly), error=type(error).__name__)
            results = [each for each in results if each.is_plain_success]
            rules = {}
        own = {name: book.by_files(name) for name in {each.entry.resolver for each in results}}
        return {
            each.entry.entry_id: decide(each, rules.get(each.entry.entry_id) or own[each.entry.resolver], now)
            for each in results
        }

    def _rules(self, entries: Sequence[Entry]) -> dict[UUID, Rules]:
        """What people have changed counts from the next flush on; one of successes need not look."""
        if not entries:
            return {}
        with self._ledger.sessions() as session:
            return self._ledger.book.in_force(session, entries)

    def _settle(self, decided: dict[UUID, Decision]) -> list[Decision]:
        with self._ledger.sessions.begin() as session:
            return settle(session, list(decided.values()), self._ledger.on_complete, self._ledger.audit)

    def _settle_alone(self, decision: Decision) -> bool:
        entry_id = decision.entry.entry_id
        try:
            self._settled(self._settle({entry_id: decision}), of=1)
        except Exception as error:
            _log.error("settle_failed", entry_id=str(entry_id), error=type(error).__name__)
            return False
        return True

    def _settled(self, written: Sequence[Decision], *, of: int) -> None:
        self.settled += len(written)
        if len(written) < of:
            _log.info("late_settles_refused", entries=of - len(written))
        for each in written:
            if each.status is OutboxStatus.ABANDONED:
                self._teller.tell(each)
