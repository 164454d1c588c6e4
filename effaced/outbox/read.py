"""Reading external calls: those of a request, those parked at a vendor, those that were read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Select, case, func, literal_column, select
from sqlalchemy.orm import Session

from effaced.core.db.days import Day, count_by_day
from effaced.core.paging import PAGE, Page, after_key, count_up_to, decode, encode, page_of
from effaced.model import Evidence, OutboxOperation, OutboxStatus, StepOutcome, Verification, evidence_of
from effaced.outbox.tables import OutboxRow

# Failures first: data that is still there after a success comes before read-backs that are still due.
VERIFICATION_ORDER = (
    Verification.STILL_PRESENT, Verification.UNVERIFIABLE, Verification.DUE, Verification.ATTESTED,
    Verification.CONFIRMED,
)  # fmt: skip
# Neither confirmed nor attested: as long as a request has one of these it is not completed.
UNCONFIRMED = (Verification.STILL_PRESENT, Verification.UNVERIFIABLE, Verification.DUE)


@dataclass(frozen=True, slots=True)
class EntryLine:
    """One external call, to be shown. Its reference to the person is not here."""

    entry_id: UUID
    request_id: UUID
    operation: OutboxOperation
    resolver: str
    status: OutboxStatus
    outcome: StepOutcome | None
    attempts: int
    gate: datetime | None
    last_attempt_at: datetime | None
    last_error: str | None
    times_parked: int
    ended_at: datetime | None
    retained_basis: str | None
    verification: Verification | None
    verified_at: datetime | None
    verify_due_at: datetime | None
    fields: list[str] | None = None
    waits_for: list[str] | None = None
    has_ref: bool = False

    @property
    def evidence(self) -> Evidence | None:
        return evidence_of(self.outcome, self.verification)

    @property
    def superseded(self) -> bool:
        """Superseded by a later request of the same person: nothing is left to do."""
        return self.status is OutboxStatus.ABANDONED and self.outcome is StepOutcome.SUPERSEDED

    @property
    def attestable(self) -> bool:
        """Whether a person's word can still count for the call."""
        return self.status in (OutboxStatus.ABANDONED, OutboxStatus.SCHEDULED) and not self.superseded

    @property
    def unconfirmed(self) -> bool:
        """Whether no read-back confirmed it and none is due: a person may attest it."""
        return self.verification in UNCONFIRMED and self.verify_due_at is None

    @property
    def can_be_read_back(self) -> bool:
        """Whether there is a read-back to repeat, and still a reference to make it with."""
        return self.has_ref and self.verification in UNCONFIRMED


_COLUMNS = [
    *(getattr(OutboxRow, name) for name in EntryLine.__slots__ if name != "has_ref"),
    OutboxRow.ref_sealed.is_not(None),
]
_SCHEDULED = OutboxRow.status == literal_column("'scheduled'")


def entries_of(session: Session, request_id: UUID) -> list[EntryLine]:
    """All calls of one request, by resolver."""
    query = select(*_COLUMNS).where(OutboxRow.request_id == request_id)
    return _lines(session, query.order_by(OutboxRow.resolver, OutboxRow.entry_id))


def entries_of_all(session: Session, request_ids: Sequence[UUID]) -> dict[UUID, list[EntryLine]]:
    """All calls of these requests, by request, and of each by resolver."""
    query = select(*_COLUMNS).where(OutboxRow.request_id.in_(request_ids))
    found: dict[UUID, list[EntryLine]] = {}
    for line in _lines(session, query.order_by(OutboxRow.resolver, OutboxRow.entry_id)):
        found.setdefault(line.request_id, []).append(line)
    return found


def find_entry(session: Session, entry_id: UUID) -> EntryLine | None:
    """The call of that id."""
    return next(iter(_lines(session, select(*_COLUMNS).where(OutboxRow.entry_id == entry_id))), None)


# --- parked: waiting at a vendor, or for a person ---


class WaitsFor(StrEnum):
    """Who has to act on a parked entry."""

    VENDOR = "vendor"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class ParkedFilter:
    """Which parked entries. `by_hand` are the resolvers whose entries wait for a person."""

    resolver: str | None = None
    waits_for: WaitsFor | None = None
    by_hand: frozenset[str] = frozenset()

    def conditions(self) -> list[ColumnElement[bool]]:
        # A parked row without a gate does not exist; saying so keeps the sort key free of nulls.
        found = [_SCHEDULED, OutboxRow.gate.is_not(None)]
        if self.resolver:
            found.append(OutboxRow.resolver == self.resolver)
        if self.waits_for is WaitsFor.PERSON:
            found.append(OutboxRow.resolver.in_(self.by_hand))
        if self.waits_for is WaitsFor.VENDOR:
            found.append(OutboxRow.resolver.not_in(self.by_hand))
        return found


def list_scheduled(
    session: Session, which: ParkedFilter, *, after: str | None = None, limit: int = PAGE
) -> Page[EntryLine]:
    """Parked entries, the nearest horizon first."""
    query = _scheduled(which, *_COLUMNS).order_by(OutboxRow.gate, OutboxRow.entry_id).limit(limit + 1)
    if after:
        query = query.where(after_key([OutboxRow.gate, OutboxRow.entry_id], decode(after, datetime, UUID)))
    lines = _lines(session, query)
    return page_of(lines, limit, [(_moment(line.gate), line.entry_id) for line in lines])


def count_scheduled(session: Session, which: ParkedFilter) -> int:
    return count_up_to(session, _scheduled(which, OutboxRow.entry_id))


def horizons(session: Session, days: list[date], zone: ZoneInfo, which: ParkedFilter) -> list[Day]:
    """How many horizons fall on each of these days."""
    return count_by_day(session, OutboxRow.gate, days, zone, *which.conditions())


def scheduled_resolvers(session: Session) -> list[str]:
    """The resolvers with parked entries."""
    names = _scheduled(ParkedFilter(), OutboxRow.resolver).distinct().order_by(OutboxRow.resolver)
    return list(session.scalars(names))


def _scheduled(which: ParkedFilter, *columns: Any) -> Select[Any]:
    return select(*columns).where(*which.conditions())


# --- read back ---


@dataclass(frozen=True, slots=True)
class VerificationFilter:
    outcome: Verification | None = None
    resolver: str | None = None


@dataclass(frozen=True, slots=True)
class ReadBacks:
    """How many read-backs of one resolver had which result."""

    resolver: str
    still_present: int
    unverifiable: int
    due: int
    attested: int
    confirmed: int


def read_backs(session: Session) -> list[ReadBacks]:
    """Results by resolver, those with failures first."""

    def tally(outcome: Verification) -> Any:
        return func.sum(case((OutboxRow.verification == outcome, 1), else_=0))

    query = (
        select(OutboxRow.resolver, *(tally(outcome) for outcome in VERIFICATION_ORDER))
        .where(OutboxRow.verification.is_not(None))
        .group_by(OutboxRow.resolver)
    )
    found = [ReadBacks(*row) for row in session.execute(query)]
    return sorted(found, key=lambda each: (-each.still_present, -each.unverifiable, -each.due, each.resolver))


def count_verifications(session: Session, which: VerificationFilter) -> int:
    return count_up_to(session, _verified(which, OutboxRow.entry_id))


def list_verifications(
    session: Session, which: VerificationFilter, *, after: str | None = None, limit: int = PAGE
) -> Page[EntryLine]:
    """Read-backs, failures first, within one outcome the newest entry first.

    One query per outcome, each along its own index range, instead of a sort over all of them.
    """
    begin, *last = decode(after, str, UUID) if after else (VERIFICATION_ORDER[0],)
    lines: list[EntryLine] = []
    for outcome in VERIFICATION_ORDER[_rank(begin) :]:
        if which.outcome not in (None, outcome):
            continue
        one = VerificationFilter(outcome, which.resolver)
        query = _verified(one, *_COLUMNS).order_by(OutboxRow.entry_id.desc()).limit(limit + 1 - len(lines))
        if last and outcome == begin:
            query = query.where(after_key([OutboxRow.entry_id], tuple(last), descending=True))
        lines += _lines(session, query)
        if len(lines) > limit:
            break
    if len(lines) <= limit:
        return Page(tuple(lines))
    end = lines[limit - 1]
    assert end.verification is not None
    return Page(tuple(lines[:limit]), encode((end.verification.value, end.entry_id)))


def _rank(outcome: object) -> int:
    return VERIFICATION_ORDER.index(outcome) if outcome in VERIFICATION_ORDER else 0


def _verified(which: VerificationFilter, *columns: Any) -> Select[Any]:
    query = select(*columns).where(OutboxRow.verification.is_not(None))
    if which.outcome:
        query = query.where(OutboxRow.verification == which.outcome)
    return query.where(OutboxRow.resolver == which.resolver) if which.resolver else query


def _lines(session: Session, query: Select[Any]) -> list[EntryLine]:
    return [EntryLine(*row) for row in session.execute(query)]


def _moment(value: datetime | None) -> datetime:
    assert value is not None
    return value
