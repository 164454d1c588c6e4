"""What a runner takes next: past pauses, breakers and the rate limit, in short transactions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy.orm import Session, sessionmaker

from effaced.breakers.model import BreakerRole
from effaced.breakers.registry import Admission
from effaced.model import OutboxOperation
from effaced.outbox import claim as outbox
from effaced.outbox.entry import Entry
from effaced.outbox.flow import Booking, Standing, standing
from effaced.resolvers.registry import ResolverRegistry
from effaced.saga.gate import Gate
from effaced.saga.rules import limits_of


@dataclass(frozen=True, slots=True)
class Claimed:
    """What was taken. `alone`: it must fly by itself, or nothing may start until what flies has landed.

    `wait` is until the rate limit lets something start, `blocked` says that a breaker stands in the way.
    """

    entries: list[Entry]
    admission: Admission | None = None
    alone: bool = False
    wait: float = 0.0
    blocked: bool = False


class Claims:
    """The claims of one runner."""

    def __init__(
        self, sessions: sessionmaker[Session], registry: ResolverRegistry, gate: Gate, lease: timedelta
    ) -> None:
        self._sessions = sessions
        self._registry = registry
        self._gate = gate
        self._lease = lease

    def claim(self, resolver: str, room: int, *, busy: bool) -> Claimed:
        """The next entries, if the breakers let any through."""
        with self._sessions.begin() as session:
            if admission := self._gate.glance(session, resolver, room):
                return self._claim_freely(session, resolver, admission, room, busy=busy)
        admission = self._gate.admit(resolver, room)
        if admission.trial:
            return self._claim_trial(resolver, admission, OutboxOperation.ERASE, busy=busy)
        if not admission.granted:
            # The trials of erasures may all be under way, and there are others.
            admission = self._gate.admit(resolver, room, BreakerRole.RECTIFY)
            if admission.trial:
                return self._claim_trial(resolver, admission, OutboxOperation.RECTIFY, busy=busy)
            return Claimed([], blocked=True)
        with self._sessions.begin() as session:
            room = min(room, admission.granted)
            return self._claim_freely(session, resolver, admission, room, busy=busy)

    def _claim_freely(
        self, session: Session, resolver: str, admission: Admission, room: int, *, busy: bool
    ) -> Claimed:
        """One whose runner died comes first, and flies by itself."""
        lease = self._lease
        now = standing(session, resolver)
        if now.paused:
            return Claimed([])
        booking = self._booking(session, resolver, now)
        if booking and not booking.room:
            return Claimed([], wait=booking.wait)
        if busy and outbox.has_crashed(session, resolver):
            return Claimed([], alone=True)  # nothing more until what is flying has landed
        crashed = [] if busy else outbox.claim_crashed(session, resolver, lease=lease)
        room = min(room, booking.room) if booking else room
        entries = crashed or outbox.claim(session, resolver, limit=room, lease=lease)
        if booking:
            booking.take(len(entries))
        return Claimed(entries, admission, alone=bool(crashed))

    def _claim_trial(
        self, resolver: str, admission: Admission, operation: OutboxOperation, *, busy: bool
    ) -> Claimed:
        """As many as a half-open breaker lets through, to see how they fare."""
        try:
            entries, alone, paused = self._take_trial(resolver, admission.granted, operation, busy=busy)
        except BaseException:
            self._gate.give_back(admission, admission.granted)
            raise
        self._gate.give_back(admission, admission.granted - len(entries))
        if not entries and operation is OutboxOperation.ERASE and not paused:
            admission = self._gate.admit(resolver, admission.granted, BreakerRole.RECTIFY)
            if admission.trial:
                return self._claim_trial(resolver, admission, OutboxOperation.RECTIFY, busy=busy)
        return Claimed(entries, admission, alone=alone, blocked=True)

    def _take_trial(
        self, resolver: str, most: int, operation: OutboxOperation, *, busy: bool
    ) -> tuple[list[Entry], bool, bool]:
        """Entries for a trial, whether they must fly alone, and whether the resolver is paused."""
        lease = self._lease
        with self._sessions.begin() as session:
            now = standing(session, resolver)
            if now.paused:
                return [], False, True
            booking = self._booking(session, resolver, now)
            room = min(most, booking.room) if booking else most
            entries = (
                outbox.claim_trial(session, resolver, operation, limit=room, lease=lease) if room else []
            )
            crashed = []
            if room and not entries and not busy:
                crashed = outbox.claim_crashed_trial(session, resolver, operation, lease=lease)
            if booking:
                booking.take(len(entries or crashed))
            return entries or crashed, bool(crashed), False

    def claim_read_back(self, resolver: str) -> Entry | None:
        with self._sessions.begin() as session:
            now = standing(session, resolver)
            booking = None if now.paused else self._booking(session, resolver, now)
            if now.paused or (booking and not booking.room):
                return None
            entry = outbox.claim_read_back(session, resolver, lease=self._lease)
            if booking and entry:
                booking.take(1)
            return entry

    def release(self, late: list[Entry], admission: Admission | None) -> None:
        """Give back what is not going to be called."""
        with self._sessions.begin() as session:
            outbox.release(session, late)
        if admission is not None:
            self._gate.give_back(admission, len(late))

    def _booking(self, session: Session, resolver: str, now: Standing) -> Booking | None:
        rate = now.rate(limits_of(self._registry, resolver).rate_per_second)
        if rate is None:
            return None
        verifies = resolver in self._registry and self._registry.get(resolver).verifies
        return Booking(session, resolver, rate, cost=2 if verifies else 1)
