"""Claiming entries for a run, as pauses, breakers and the rate limit allow, in short transactions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy.orm import Session, sessionmaker

from effaced.breakers.admitted import Admission
from effaced.breakers.model import BreakerRole
from effaced.model import OutboxOperation
from effaced.outbox import claim as outbox
from effaced.outbox.entry import Entry
from effaced.outbox.flow import Booking, FlowState, flow_state
from effaced.resolvers.registry import ResolverRegistry
from effaced.saga.gate import Gate
from effaced.saga.rules import RuleBook, limits_of

_LOOK_AGAIN = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Claimed:
    """The claimed entries, and how the breakers admitted them.

    `needs_exclusive`: next is an entry whose runner died; a run that has the process to itself claims it.
    `maybe_made`: it was claimed so, may have been called before, and must not be called twice.
    `wait` is how long, in seconds, the rate limit lets nothing start.
    """

    entries: list[Entry]
    admission: Admission | None = None
    needs_exclusive: bool = False
    maybe_made: bool = False
    wait: float = 0.0


class Claims:
    """The claims of one runner."""

    def __init__(
        self,
        sessions: sessionmaker[Session],
        registry: ResolverRegistry,
        gate: Gate,
        book: RuleBook,
        lease: timedelta,
    ) -> None:
        self._sessions = sessions
        self._registry = registry
        self._gate = gate
        self._book = book
        self._lease = lease

    def claim(self, resolver: str, room: int, *, alone: bool) -> Claimed:
        """The next entries, if the breakers admit any; `alone` claims one whose runner died."""
        with self._sessions.begin() as session:
            if admission := self._gate.glance(session, resolver, room):
                return self._claim_freely(session, resolver, admission, room, alone=alone)
        admission = self._gate.admit(resolver, room)
        if admission.trial:
            return self._claim_trial(resolver, admission, OutboxOperation.ERASE, alone=alone)
        if not admission.granted:
            # The trials of erasures may all be under way, and there are others.
            admission = self._gate.admit(resolver, room, BreakerRole.RECTIFY)
            if admission.trial:
                return self._claim_trial(resolver, admission, OutboxOperation.RECTIFY, alone=alone)
            return Claimed([])
        with self._sessions.begin() as session:
            room = min(room, admission.granted)
            return self._claim_freely(session, resolver, admission, room, alone=alone)

    def _claim_freely(
        self, session: Session, resolver: str, admission: Admission, room: int, *, alone: bool
    ) -> Claimed:
        """Claim without a trial. An entry whose runner died comes first."""
        now = flow_state(session, resolver)
        if now.paused:
            return Claimed([])
        booking = self._booking(session, resolver, now)
        if booking and not booking.room:
            return Claimed([], wait=booking.wait)
        if not alone and outbox.has_expired_lease(session, resolver):
            return Claimed([], needs_exclusive=True)
        if alone:
            entries = outbox.claim_crashed(session, resolver, lease=self._lease)
        else:
            room = min(room, booking.room) if booking else room
            entries = outbox.claim(session, resolver, limit=room, lease=self._lease)
        if booking:
            booking.take(len(entries))
        return Claimed(entries, admission, maybe_made=alone and self._must_not_repeat(session, entries))

    def _claim_trial(
        self, resolver: str, admission: Admission, operation: OutboxOperation, *, alone: bool
    ) -> Claimed:
        """Claim as many as a half-open breaker admits, to test whether the system has recovered."""
        try:
            with self._sessions.begin() as session:
                claimed, paused = self._take_trial(session, resolver, admission, operation, alone=alone)
        except BaseException:
            self._gate.give_back(admission, admission.granted)
            raise
        self._gate.give_back(admission, admission.granted - len(claimed.entries))
        nothing = not claimed.entries and not claimed.needs_exclusive
        if nothing and operation is OutboxOperation.ERASE and not paused:
            admission = self._gate.admit(resolver, admission.granted, BreakerRole.RECTIFY)
            if admission.trial:
                return self._claim_trial(resolver, admission, OutboxOperation.RECTIFY, alone=alone)
        return claimed

    def _take_trial(
        self,
        session: Session,
        resolver: str,
        admission: Admission,
        operation: OutboxOperation,
        *,
        alone: bool,
    ) -> tuple[Claimed, bool]:
        """Entries for a trial, and whether the resolver is paused."""
        now = flow_state(session, resolver)
        if now.paused:
            return Claimed([]), True
        booking = self._booking(session, resolver, now)
        if booking and not booking.room:
            return Claimed([], wait=booking.wait), False
        if alone:
            entries = outbox.claim_crashed_trial(session, resolver, operation, lease=self._lease)
        else:
            room = min(admission.granted, booking.room) if booking else admission.granted
            entries = outbox.claim_trial(session, resolver, operation, limit=room, lease=self._lease)
            if not entries and outbox.has_expired_lease(session, resolver, operation):
                return Claimed([], needs_exclusive=True), False
        if booking:
            booking.take(len(entries))
        return Claimed(
            entries, admission, maybe_made=alone and self._must_not_repeat(session, entries)
        ), False

    def _must_not_repeat(self, session: Session, entries: list[Entry]) -> bool:
        """Whether calling the crashed entry, which is claimed alone, a second time might do harm."""
        # In the claim's own transaction: if nobody can tell, nothing is claimed.
        if not entries or limits_of(self._registry, entries[0].resolver).idempotent:
            return False
        return self._book.in_force(session, entries)[entries[0].entry_id].must_not_repeat

    def claim_read_back(self, resolver: str, *, alone: bool) -> Claimed:
        """The next succeeded entry whose read-back is due; `alone` claims one whose runner died over it."""
        with self._sessions.begin() as session:
            now = flow_state(session, resolver)
            if now.paused:
                return Claimed([])
            booking = self._booking(session, resolver, now)
            if booking and not booking.room:
                return Claimed([], wait=booking.wait)
            entry = outbox.claim_read_back(session, resolver, lease=self._lease, crashed=alone)
            if entry is None:
                crashed = not alone and outbox.has_expired_read_back(session, resolver)
                return Claimed([], needs_exclusive=crashed)
            if booking:
                booking.take(1)
            return Claimed([entry])

    def release(self, late: list[Entry], admission: Admission | None) -> None:
        """Release entries that are not going to be called."""
        with self._sessions.begin() as session:
            outbox.release(session, late)
        if admission is not None:
            self._gate.give_back(admission, len(late))

    def release_read_back(self, entry: Entry) -> None:
        """Release a read-back whose result could not be written: it is made again, in a while."""
        with self._sessions.begin() as session:
            outbox.release_read_back(session, entry, wait=_LOOK_AGAIN)

    def keep(self, entries: list[Entry]) -> None:
        """Renew the leases of entries whose call has returned and could not be written down yet.

        That it returned is written too: if this process ends now, nobody takes that for a crash.
        """
        with self._sessions.begin() as session:
            outbox.keep_returned(session, entries, lease=self._lease)

    def _booking(self, session: Session, resolver: str, now: FlowState) -> Booking | None:
        rate = now.rate(limits_of(self._registry, resolver).rate_per_second)
        if rate is None:
            return None
        verifies = resolver in self._registry and self._registry.get(resolver).verifies
        return Booking(session, resolver, rate, cost=2 if verifies else 1)
