"""What open requests wait for: conditions that find such requests, and a list for each request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import ColumnElement, literal_column, select
from sqlalchemy.orm import Session

from effaced.deadletters.read import is_unresolved, unresolved_dead_letters
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, OutboxStatus, RequestStatus
from effaced.outbox.read import UNCONFIRMED
from effaced.outbox.tables import Operation, OutboxRow
from effaced.requests.tables import Request


class Blocker(StrEnum):
    """What an open request waits for."""

    APPROVAL = "approval"
    HOLD = "hold"
    ABANDONED = "abandoned"
    VENDOR = "vendor"
    PERSON = "person"
    VERIFICATION = "verification"


@dataclass(frozen=True, slots=True)
class Block:
    """One thing a request waits for; `resolver` and `until` where it is a system or a person's work."""

    by: Blocker
    resolver: str | None = None
    until: datetime | None = None


def blocked_by(by: Blocker, by_hand: frozenset[str]) -> ColumnElement[bool]:
    """The condition for requests that wait for this. `by_hand` are the resolvers whose work a person does."""
    parked = select(OutboxRow.entry_id).where(
        OutboxRow.request_id == Request.id, OutboxRow.status == OutboxStatus.SCHEDULED
    )
    match by:
        case Blocker.APPROVAL:
            return Request.status == RequestStatus.REVIEW
        case Blocker.HOLD:
            return Request.status == RequestStatus.ON_HOLD
        case Blocker.ABANDONED:
            mine = DeadLetter.request_id == Request.id, DeadLetter.domain != DeadLetterDomain.VERIFICATION
            return select(DeadLetter.id).where(*mine, is_unresolved()).exists()
        case Blocker.VENDOR:
            return parked.where(OutboxRow.resolver.not_in(by_hand)).exists()
        case Blocker.PERSON:
            return parked.where(OutboxRow.resolver.in_(by_hand)).exists()
        case Blocker.VERIFICATION:
            return has_unverified()


def has_unverified() -> ColumnElement[bool]:
    """The condition for requests with a step that is done but neither confirmed nor attested."""
    # As a literal, so that a generic plan can use the partial index.
    some = Operation.unverified > literal_column("0")
    return Request.id.in_(select(Operation.request_id).where(some))


def blocks_of(
    session: Session, requests: Sequence[Request], by_hand: frozenset[str]
) -> dict[UUID, list[Block]]:
    """What each of the requests waits for, by its id; closed requests wait for nothing."""
    open_ = {request.id: request.status for request in requests if request.closed_at is None}
    found: dict[UUID, list[Block]] = defaultdict(list)
    for request_id, status in open_.items():
        if status is RequestStatus.REVIEW:
            found[request_id].append(Block(Blocker.APPROVAL))
        if status is RequestStatus.ON_HOLD:
            found[request_id].append(Block(Blocker.HOLD))
    for letter in unresolved_dead_letters(session, open_):
        assert letter.request_id is not None  # they were looked up by it
        if letter.domain is not DeadLetterDomain.VERIFICATION:  # its read-back is found below
            found[letter.request_id].append(Block(Blocker.ABANDONED, letter.resolver))
    unverified = (
        select(OutboxRow.request_id, OutboxRow.resolver, OutboxRow.verify_due_at)
        .where(OutboxRow.request_id.in_(open_), OutboxRow.verification.in_(UNCONFIRMED))
        .order_by(OutboxRow.entry_id)
    )
    for request_id, resolver, again_at in session.execute(unverified):
        found[request_id].append(Block(Blocker.VERIFICATION, resolver, again_at))
    waiting = (
        select(OutboxRow.request_id, OutboxRow.resolver, OutboxRow.gate)
        .where(OutboxRow.request_id.in_(open_), OutboxRow.status == OutboxStatus.SCHEDULED)
        .order_by(OutboxRow.gate)
    )
    for request_id, resolver, gate in session.execute(waiting):
        by = Blocker.PERSON if resolver in by_hand else Blocker.VENDOR
        found[request_id].append(Block(by, resolver, gate))
    return found
