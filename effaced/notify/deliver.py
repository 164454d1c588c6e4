"""Delivering what is due: fan out, then for each target claim, send, settle, one message after the other.

Targets don't wait for each other. The network lies between transactions: nothing is locked while
somebody is being told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.core import http_clients as clients
from effaced.core.db import Database, dbtime
from effaced.core.log import get_logger
from effaced.notify.claim import Claimed, claim, claim_for_removed_target, is_due, restart_waits
from effaced.notify.config import Targets
from effaced.notify.fanout import SendersOf, fan_out
from effaced.notify.settle import Outcome, Rules, settle
from effaced.notify.subscriptions import has_subscribers, subscribe_file
from effaced.notify.target import About, NotDelivered, Outgoing, Target

RegisteredTargets = Callable[[Session], Sequence[Target]]
_log = get_logger(__name__)
# A target that fails so often in a row is left alone until the next run: its other messages lose nothing.
_FAILURES_IN_A_ROW = 3


@dataclass(frozen=True, slots=True)
class LookUps:
    """What messages need that others know: what they say of requests, who sent those, who is registered."""

    about: Callable[[Session, Collection[UUID]], Mapping[UUID, About]]
    senders: SendersOf
    registered: RegisteredTargets


class Deliverer:
    """Delivers messages to the targets of notify.yaml and to registered ones. Any number may run at once.

    Without a file, `targets` is None: messages to its targets are left to processes that have it.
    """

    def __init__(self, targets: Targets | None, database: Database, rules: Rules, look_ups: LookUps) -> None:
        self._file = targets
        self._targets: tuple[Target, ...] = ()
        self._db = database
        self._rules = rules
        self._look_up = look_ups
        self._stopping = False

    def stop(self) -> None:
        """Claim nothing more; what is being sent is finished."""
        self._stopping = True

    def is_due(self) -> bool:
        with self._db.read() as session:
            targets = self._all(session)
            if not targets and not has_subscribers(session):
                return False
            return is_due(session, [each.name for each in targets], max_age=self._rules.max_age)

    async def run(self, *, seconds: float | None = None) -> int:
        """Deliver until nothing is due or `seconds` have passed. Returns how many arrived.

        With no targets nothing happens: messages wait for somebody who is configured.
        """
        until = None if seconds is None else clock.monotonic() + seconds
        await asyncio.to_thread(self._prepare)
        if not self._targets:
            return 0
        async with clients.http_client():
            return sum(await asyncio.gather(*(self._serve(target, until) for target in self._targets)))

    async def _serve(self, target: Target, until: float | None) -> int:
        delivered = failed = 0
        while failed < _FAILURES_IN_A_ROW and not self._is_over(until):
            claimed = await asyncio.to_thread(self._claim, target.name)
            if claimed is None:
                break
            outcome = await self._try(target, claimed)
            await asyncio.to_thread(self._settle, claimed, outcome)
            delivered, failed = (delivered + 1, 0) if outcome.delivered else (delivered, failed + 1)
        return delivered

    def _is_over(self, until: float | None) -> bool:
        return self._stopping or (until is not None and clock.monotonic() >= until)

    async def _try(self, target: Target, claimed: Claimed) -> Outcome:
        if claimed.attempts > self._rules.max_attempts:
            # Each earlier attempt has ended its process: nobody is left to have settled the last one.
            return Outcome(delivered=False, error="interrupted", final=True)
        message = await asyncio.to_thread(self._outgoing, claimed)
        return await attempt(target, message)

    # --- the database's part, in threads ---

    def _all(self, session: Session) -> tuple[Target, ...]:
        return (*(self._file or ()), *self._look_up.registered(session))

    def _prepare(self) -> None:
        if self._file is not None:
            subscribe_file(self._db, self._file)
        with self._db.read() as session:
            self._targets = self._all(session)
            known = bool(self._targets) or has_subscribers(session)
        if not known:
            return
        with self._db.begin() as session:
            restart_waits(session)
        more = True
        while more:
            with self._db.begin() as session:
                more = fan_out(session, self._look_up.senders) > 0
        self._give_up_on_removed()

    def _give_up_on_removed(self) -> None:
        """A target that is gone may come back, so its messages wait; but not for ever."""
        while True:
            with self._db.begin() as session:
                older = dbtime.now(session) - self._rules.max_age
                names = [each.name for each in self._targets]
                lost = claim_for_removed_target(
                    session, names, older_than=older, lease=self._rules.backoff.lease
                )
                if lost is None:
                    return
                settle(
                    session, lost, Outcome(delivered=False, error="target_removed", final=True), self._rules
                )

    def _claim(self, target: str) -> Claimed | None:
        with self._db.begin() as session:
            return claim(session, target, lease=self._rules.backoff.lease)

    def _outgoing(self, claimed: Claimed) -> Outgoing:
        about = None
        if claimed.request_id is not None:
            with self._db.read() as session:
                about = self._look_up.about(session, [claimed.request_id]).get(claimed.request_id)
        return Outgoing(
            claimed.message_id,
            claimed.type,
            claimed.created_at,
            claimed.payload,
            claimed.request_id,
            about.ref if about else None,
            about.metadata if about else {},
        )

    def _settle(self, claimed: Claimed, outcome: Outcome) -> None:
        with self._db.begin() as session:
            counted = settle(session, claimed, outcome, self._rules)
        if not counted:
            _log.warning("late_delivery", delivery=claimed.id, target=claimed.target)


async def attempt(target: Target, message: Outgoing) -> Outcome:
    """Send once, and say how it went. Never raises: one message must not stop the others."""
    began = clock.monotonic()
    try:
        sent = await target.send(message)
        outcome = Outcome(delivered=True, error=sent.code, status_code=sent.status_code)
    except NotDelivered as error:
        outcome = Outcome(
            delivered=False, error=error.code, status_code=error.status_code, retry_after=error.retry_after
        )
    except Exception as error:
        _log.error("delivery_failed", target=target.name, error=type(error).__name__, exc_info=True)
        outcome = Outcome(delivered=False, error=type(error).__name__)
    return replace(outcome, latency_ms=round((clock.monotonic() - began) * 1000))
