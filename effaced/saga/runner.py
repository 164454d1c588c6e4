"""The runner: claim, call, settle, until nothing of a resolver is due.

Calls overlap; each is settled soon after it returns, together with whatever else has returned by then,
so that a slow call delays nobody but itself. Database work happens between the calls in a thread, in
short transactions of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy.orm import Session

from effaced import clock
from effaced.audit.append import SYSTEM
from effaced.audit.sink import AuditSink, DatabaseAuditSink
from effaced.breakers.model import BreakerOpenError, BreakerRole
from effaced.breakers.registry import Admission, BreakerRegistry
from effaced.log import get_logger
from effaced.model import OutboxStatus, Verification
from effaced.outbox.countdown import Completed
from effaced.outbox.due import due_resolvers
from effaced.outbox.entry import Entry
from effaced.outbox.flow import CREDENTIALS_REFUSED, pause
from effaced.resolvers.protocols import Limits
from effaced.resolvers.registry import ResolverRegistry
from effaced.retries.policy import BackoffPolicy, RetryPolicy
from effaced.saga.call import LookedBack, call, not_again, read_back
from effaced.saga.claims import Claimed, Claims
from effaced.saga.decide import decide
from effaced.saga.facade import Outbox
from effaced.saga.flight import Flush, Flying, landed
from effaced.saga.gate import Gate
from effaced.saga.readback import settle_read_back
from effaced.saga.result import Decision, Result, Rules
from effaced.saga.rules import RuleBook, limits_of
from effaced.saga.settle import OnComplete, settle
from effaced.saga.tell import AbandonedHook, Teller

_log = get_logger(__name__)
# How long to wait for anything before looking round again: for new entries, tokens, or the word to stop.
_LOOK_ROUND = 0.5


async def _denied(entry: Entry, admission: Admission | None, denial: BreakerOpenError) -> Result:
    return Result(entry, error=denial, admission=admission)


def _nothing(_session: Session, _completed: Sequence[Completed]) -> None:
    pass


class SagaRunner:
    """Drives one resolver's entries at a time. Any number of runners may work at once.

    `policy` stands for `max_attempts`, `max_age` and the waits of `backoff`, whose lease it leaves.
    """

    def __init__(
        self,
        registry: ResolverRegistry,
        outbox: Outbox,
        audit: AuditSink | None = None,
        *,
        max_attempts: int = 8,
        crash_limit: int = 3,
        batch_size: int = 50,
        max_age: timedelta = timedelta(days=25),
        backoff: BackoffPolicy | None = None,
        policy: RetryPolicy | None = None,
        breakers: BreakerRegistry | None = None,
        on_abandoned: AbandonedHook | None = None,
        on_operations_complete: OnComplete = _nothing,
    ) -> None:
        registry.require_order()
        self._registry = registry
        self._sessions = outbox.sessions
        self._keyring = outbox.keyring
        self._audit = audit or outbox.audit or DatabaseAuditSink()
        self._crash_limit = crash_limit
        self._batch_size = batch_size
        backoff = backoff or BackoffPolicy()
        policy = policy or backoff.policy(max_attempts=max_attempts, max_age=max_age)
        registry.require_time(backoff.lease)
        self._book = RuleBook(policy, registry)
        self._gate = Gate(breakers, registry)
        self._claims = Claims(outbox.sessions, registry, self._gate, backoff.lease)
        self._on_abandoned = on_abandoned
        self._on_complete = on_operations_complete
        self._stopping = False

    def stop(self) -> None:
        """Claim nothing more; what is in flight is finished."""
        self._stopping = True

    async def run_once(self) -> int:
        """Work through everything that is due; returns what was settled.

        Resolvers are driven side by side: one with a long backlog keeps no other waiting, nor what becomes
        due of another meanwhile.
        """
        settled, driving = 0, dict[str, asyncio.Task[int]]()
        try:
            while True:
                due = set[str]() if self._stopping else await asyncio.to_thread(self._due)
                driving |= {
                    name: asyncio.create_task(self.drain(name)) for name in sorted(due - driving.keys())
                }
                if driving:
                    await asyncio.wait(driving.values(), timeout=_LOOK_ROUND)
                ended = [name for name, drained in driving.items() if drained.done()]
                settled += sum(driving.pop(name).result() for name in ended)
                if not driving:
                    return settled
        except Exception:
            self.stop()  # what the others have in the air is waited for and settled
            await asyncio.gather(*driving.values(), return_exceptions=True)
            raise

    def _due(self) -> set[str]:
        with self._sessions() as session:
            due = due_resolvers(session)
        return self._gate.open_for(due)

    async def drain(self, resolver: str, *, seconds: float | None = None) -> int:
        """Work on one resolver until nothing of it is due, or until `seconds` have passed."""
        until = None if seconds is None else clock.monotonic() + seconds
        async with self._registry.connected():
            settled = await self._pump(resolver, until)
            return settled + await self._read_backs(resolver, until)

    def _is_over(self, until: float | None) -> bool:
        return self._stopping or (until is not None and clock.monotonic() >= until)

    # --- the pump ---

    async def _pump(self, resolver: str, until: float | None) -> int:
        limits = limits_of(self._registry, resolver)
        most = min(limits.batch_size or self._batch_size, limits.concurrency)
        teller = Teller(self._on_abandoned)
        flush = Flush(lambda results: self._settle(results, teller))
        flying: Flying = set()
        alone = dry = late = False
        claimed = Claimed([])
        booked_out = 0.0  # until when the rate limit lets nothing start
        try:
            while True:
                over = late or self._is_over(until)
                wait = max(0.0, booked_out - clock.monotonic())
                room = 0 if over or alone or wait else most - len(flying)
                if room:
                    claimed = await asyncio.to_thread(self._claims.claim, resolver, room, busy=bool(flying))
                    alone, wait = claimed.alone, claimed.wait
                    booked_out = clock.monotonic() + wait
                    dry = not claimed.entries and not alone and not wait
                    if alone:
                        # Whoever dies beside an entry that flies alone must not be taken for its victim.
                        await flush.finish()
                    callable_now = await self._release_unfinishable(claimed, limits)
                    late = len(callable_now) < len(claimed.entries)  # the next claim may be no longer
                    flying |= self._start(callable_now, claimed)
                if flying:
                    results, flying = await landed(flying, min(_LOOK_ROUND, wait or _LOOK_ROUND))
                    await flush.start(results)
                    if alone and not flying:
                        await flush.finish()
                        alone = False
                elif dry and claimed.blocked and flush.is_running:
                    await flush.finish()  # it may be what opens the breaker again
                elif over or dry:
                    return await flush.finish()
                else:
                    await asyncio.sleep(min(_LOOK_ROUND, wait))
        finally:
            # Whatever ended the loop: calls that were made are waited for, each has its time, and settled.
            if flying:
                await flush.start(await asyncio.gather(*flying))
            await flush.finish()
            await teller.finish()

    def _start(self, entries: list[Entry], claimed: Claimed) -> Flying:
        denial = self._gate.denial(claimed.admission) if entries and claimed.admission else None
        return {
            asyncio.create_task(
                self._call(entry, claimed.admission, crashed=claimed.alone)
                if denial is None
                else _denied(entry, claimed.admission, denial)
            )
            for entry in entries
        }

    async def _release_unfinishable(self, claimed: Claimed, limits: Limits) -> list[Entry]:
        """Give back what could not be finished within its lease, and return the rest."""
        entries = claimed.entries
        latest = clock.now() + limits.timeout * 2  # the call and its read-back
        late = [entry for entry in entries if entry.gate is not None and entry.gate < latest]
        if not late:
            return entries
        await asyncio.to_thread(self._claims.release, late, claimed.admission)
        _log.error("lease_too_short", resolver=late[0].resolver, released=len(late))
        return [entry for entry in entries if entry not in late]

    async def _call(
        self, entry: Entry, admission: Admission | None = None, *, crashed: bool = False
    ) -> Result:
        """Make the call; but not if a runner died that may have made it, where twice does harm."""
        if crashed and not limits_of(self._registry, entry.resolver).idempotent:
            rules = await asyncio.to_thread(self._rules, [entry])
            if rules[entry.entry_id].once:
                return replace(not_again(entry), admission=admission)
        result = await call(self._registry, self._keyring, entry, crash_limit=self._crash_limit)
        return result if admission is None else replace(result, admission=admission)

    # --- settling ---

    def _settle(self, results: Sequence[Result], teller: Teller) -> int:
        """Write a flush down, then tell the breakers; of trials first, since they say until when to wait."""
        trials = [each for each in results if each.trial]
        if trials:
            self._gate.tell(trials)
            until = {name: self._gate.retry_at(name) for name in {each.entry.resolver for each in trials}}
            results = [
                replace(each, retry_at=until[each.entry.resolver]) if each.trial else each for each in results
            ]
        settled = self._write_down(results, teller)
        self._gate.tell([each for each in results if not each.trial])
        return settled

    def _write_down(self, results: Sequence[Result], teller: Teller) -> int:
        now = clock.now()
        try:
            rules = self._rules([each.entry for each in results if not each.is_plain_success])
        except Exception as error:  # without them nobody knows what is to become of the entries: leases heal
            _log.error("flush_failed", entries=len(results), error=type(error).__name__)
            return 0
        decisions = [
            decide(each, rules.get(each.entry.entry_id) or self._book.by_files(each.entry.resolver), now)
            for each in results
        ]
        try:
            accepted = self._settle_together(decisions)
        except Exception as error:
            # One entry that can't be written must not strand the others: settle them one by one.
            _log.warning("flush_failed", entries=len(decisions), error=type(error).__name__)
            accepted = [each for decision in decisions for each in self._settle_alone(decision)]
        if len(accepted) < len(decisions):
            _log.info("late_settles_refused", entries=len(decisions) - len(accepted))
        for each in accepted:
            if each.status is OutboxStatus.ABANDONED:
                teller.tell(each)
        return len(accepted)

    def _rules(self, entries: Sequence[Entry]) -> dict[UUID, Rules]:
        """What people have changed counts from the next flush on; one of successes need not look."""
        if not entries:
            return {}
        with self._sessions() as session:
            return self._book.in_force(session, entries)

    def _settle_together(self, decisions: list[Decision]) -> list[Decision]:
        with self._sessions.begin() as session:
            return settle(session, decisions, self._on_complete, self._audit)

    def _settle_alone(self, decision: Decision) -> list[Decision]:
        try:
            return self._settle_together([decision])
        except Exception as error:  # its lease heals it
            _log.error("settle_failed", entry_id=str(decision.entry.entry_id), error=type(error).__name__)
            return []

    # --- read-backs that were left over ---

    async def _read_backs(self, resolver: str, until: float | None) -> int:
        """Erase again and look again, one by one, where the look with the erasure could not be made."""
        made = 0
        while not self._is_over(until):
            admission = await asyncio.to_thread(self._gate.admit, resolver, 1, BreakerRole.VERIFY)
            entry = (
                await asyncio.to_thread(self._claims.claim_read_back, resolver) if admission.granted else None
            )
            poison = entry is not None and entry.crashes > self._crash_limit
            looked = None
            if entry is not None and not poison:
                looked = await read_back(self._registry, self._keyring, entry)
            if admission.granted:
                await asyncio.to_thread(self._gate.tell_read_back, resolver, admission, looked)
            if entry is None:
                break
            made += await asyncio.to_thread(
                self._settle_read_back, entry, looked or LookedBack(), poison=poison
            )
        return made

    def _settle_read_back(self, entry: Entry, looked: LookedBack, *, poison: bool) -> bool:
        now = clock.now()
        with self._sessions.begin() as session:
            again_at: datetime | None = None  # no further try: a person has to look
            if looked.seen is Verification.DUE and not poison:
                policy = self._book.in_force(session, [entry])[entry.entry_id].policy
                if now <= (entry.last_attempt_at or now) + policy.max_age:
                    again_at = now + timedelta(seconds=policy.max_backoff_delay)
            settled = settle_read_back(
                session, entry, looked.seen, again_at=again_at, on_complete=self._on_complete
            )
            if settled and looked.refused:
                pause(session, entry.resolver, actor=SYSTEM, code=CREDENTIALS_REFUSED)
            return settled
