"""A drill: one vendor is down for a while, people go on asking, and nothing is lost.

The requests are real ones of the demo's people, and what is told about them is counted in the database.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from effaced.accounts.tables import ApiKey, Officer
from effaced.breakers import transitions
from effaced.breakers.admission import blocked, effective_state
from effaced.breakers.model import RESTRICTION, BreakerState, Transition, host_name, resolver_name
from effaced.core import clock
from effaced.deadletters.tables import DeadLetter
from effaced.demo.company import demo_people
from effaced.demo.load import OFFICER, PEOPLE, REASON, SCENES, SHOP
from effaced.demo.vendors.faults import FaultKind
from effaced.demo.vendors.remote import switch
from effaced.demo.vendors.store import require_vendor
from effaced.model import OutboxStatus, RequestKind, RequestStatus
from effaced.outbox.tables import OutboxRow
from effaced.requests.approve import approve_and_execute
from effaced.requests.identifiers import SUBJECT_ID, find_requests
from effaced.requests.intake import IntakeRequest, receive
from effaced.retries.tables import Attempt
from effaced.runtime import Runtime

_WAITING = (OutboxStatus.PENDING, OutboxStatus.FAILED, OutboxStatus.IN_FLIGHT)


@dataclass(frozen=True, slots=True)
class DrillStatus:
    """How the drill stands. `until` is when the breaker lets a probe through, None if calls go out."""

    state: BreakerState
    until: datetime | None
    requests: int
    waiting: int
    through: int
    elsewhere: int
    abandoned: int
    letters: int
    attempts: int
    probes: int
    most_attempts: int

    @property
    def lost(self) -> int:
        """How many calls did not survive the outage: it should be 0."""
        return self.abandoned + self.letters


@dataclass
class Outage:
    """An outage of one vendor in a running demo."""

    runtime: Runtime
    vendors: str
    vendor: str
    since: datetime = field(default_factory=clock.now)
    asked: list[UUID] = field(default_factory=list)

    def __post_init__(self) -> None:
        require_vendor(self.vendor)

    @property
    def breakers(self) -> list[str]:
        host = self.runtime.registry.get(self.vendor).host
        return [*([host_name(host)] if host else []), resolver_name(self.vendor)]

    def begin(self, seconds: float) -> None:
        """Have the vendor answer 503. It ends by itself after `seconds`, even if this process dies."""
        switch(self.vendors, self.vendor, FaultKind.DOWN, how="503", for_seconds=seconds)

    def end(self) -> None:
        switch(self.vendors, self.vendor, "none")

    def ask(self, number: int = 1) -> int:
        """So many people ask to be forgotten, and an officer approves.

        Returns how many there still were to ask.
        """
        people = self._people(number)
        for person in people:
            with self.runtime.db.begin() as session:
                key = session.scalar(select(ApiKey).where(ApiKey.name == SHOP))
                asked = IntakeRequest(RequestKind.ERASURE, str(person), api_key=key)
                runtime = self.runtime
                request = receive(
                    session, runtime.keyring, runtime.plan, asked, zone=runtime.settings.zone
                ).request
                officer = session.scalars(select(Officer.id).where(Officer.email == OFFICER)).one()
            if request.status is RequestStatus.REVIEW:
                approve_and_execute(self.runtime.executor, request.id, by=officer, reason=REASON)
            self.asked.append(request.id)
        return len(people)

    def moves(self, after: int = 0) -> list[Transition]:
        """What the breaker of the vendor has done since the drill began, but the first `after` moves."""
        with self.runtime.db.read() as session:
            made = transitions.read(session, service_name=self.breakers[-1], since=self.since)
        return made[::-1][after:]

    def read_status(self) -> DrillStatus:
        rows = list(self.runtime.breakers.store.load(self.breakers).values())
        now = clock.now()
        states = [BreakerState.CLOSED, *(effective_state(row, now) for row in rows)]
        block = blocked(rows, now) if rows else None
        with self.runtime.db.read() as session:
            mine, others = self._entries(session)
            return DrillStatus(
                state=max(states, key=lambda each: RESTRICTION[each]),
                until=block.until if block else None,
                requests=len(self.asked),
                waiting=sum(mine[status] for status in _WAITING),
                through=mine[OutboxStatus.SUCCEEDED] + mine[OutboxStatus.SCHEDULED],
                elsewhere=others[OutboxStatus.SUCCEEDED] + others[OutboxStatus.SCHEDULED],
                abandoned=mine[OutboxStatus.ABANDONED] + others[OutboxStatus.ABANDONED],
                letters=_count(session, DeadLetter, DeadLetter.request_id.in_(self.asked)),
                attempts=self._most_attempts(session),
                probes=self._probes(session),
                most_attempts=self.runtime.policy.max_attempts,
            )

    def _entries(self, session: Session) -> tuple[Counter[OutboxStatus], Counter[OutboxStatus]]:
        """The drill's entries by status: those of the vendor, and those of the others."""
        mine, others = Counter[OutboxStatus](), Counter[OutboxStatus]()
        counted = (
            select(OutboxRow.resolver, OutboxRow.status, func.count())
            .where(OutboxRow.request_id.in_(self.asked))
            .group_by(OutboxRow.resolver, OutboxRow.status)
        )
        for resolver, status, number in session.execute(counted):
            (mine if resolver == self.vendor else others)[status] += number
        return mine, others

    def _most_attempts(self, session: Session) -> int:
        most = select(func.max(OutboxRow.attempts)).where(
            OutboxRow.request_id.in_(self.asked), OutboxRow.resolver == self.vendor
        )
        return session.scalar(most) or 0

    def _probes(self, session: Session) -> int:
        return _count(
            session, Attempt, Attempt.resolver == self.vendor, Attempt.trial, Attempt.at >= self.since
        )

    def _people(self, number: int) -> list[int]:
        """Some whom the vendor knows and who have not asked yet; nobody whose newsletter takes its time."""
        ref, busy = self.runtime.registry.get(self.vendor).ref, {scene.person for scene in SCENES}
        people = (
            each["id"]
            for each in demo_people(PEOPLE)
            if each["id"] % 4 == 0 and ref in each["refs"] and each["id"] not in busy
        )
        with self.runtime.db.read() as session:
            new = (
                each
                for each in people
                if not find_requests(session, self.runtime.keyring, SUBJECT_ID, str(each))
            )
            return list(islice(new, number))


def _count(session: Session, table: type, *where: object) -> int:
    return session.scalar(select(func.count()).select_from(table).where(*where)) or 0  # type: ignore[arg-type]
