"""Settling read-backs that could not be made with the erasure.

They never touch the entry's status. The success stands; what is added is whether it was the truth, and the
request is closed only by that.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, case, literal, update
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.events import Event, ExternallyVerified, ExternalVerificationFailed, ReadBackGivenUp
from effaced.core.db import dbtime
from effaced.core.db.sql import insert_rows
from effaced.deadletters.record import record_failures, record_recoveries
from effaced.deadletters.rules import Failure
from effaced.model import DeadLetterDomain, StepOutcome, Verification
from effaced.outbox.countdown import count_down
from effaced.outbox.entry import Entry
from effaced.outbox.read import UNCONFIRMED
from effaced.outbox.tables import OutboxRow
from effaced.retries.tables import Attempt
from effaced.saga.result import ReadBack
from effaced.saga.settle import OnComplete, read_back_attempt_row, record_progress

# Error and code of the dead letter that a read-back leaves.
_FAILURES = {
    Verification.STILL_PRESENT: ("StillPresent", "still_present"),
    Verification.UNVERIFIABLE: ("ReadBackNotPossible", "unverifiable"),
}


def settle_read_back(
    session: Session,
    entry: Entry,
    read_back: ReadBack,
    *,
    again_at: datetime | None,
    on_complete: OnComplete,
) -> bool:
    """Record what the read-back said; False if it came too late to count.

    One that could not be made is due again at `again_at`. With no such moment it is given up: a person has
    to look again or attest, and until then the request stays open. A confirmation that leaves nothing to
    verify closes the request.
    """
    seen = read_back.seen
    if seen is Verification.DUE and again_at is None:
        seen = Verification.UNVERIFIABLE
    if not _write(session, entry, seen, again_at):
        return False
    if read_back.was_made:
        insert_rows(session, Attempt, [read_back_attempt_row(entry, read_back)])
    event = _event(entry.resolver, seen)
    if event is not None:
        append_one(
            session, event, request_id=entry.request_id, entry_id=entry.entry_id, subject=entry.subject
        )
    if seen is Verification.CONFIRMED:
        count_as_verified(session, entry, on_complete)
        record_recoveries(session, (DeadLetterDomain.VERIFICATION,), [entry.entry_id])
    elif seen in _FAILURES:
        record_failures(session, [_failure(entry, *_FAILURES[seen])])
    return True


def count_as_verified(session: Session, entry: Entry, on_complete: OnComplete) -> None:
    """Count the read-back as confirmed or attested. Dead letters are locked after this, never before."""
    progress = count_down(session, Counter(), Counter({(entry.request_id, entry.operation): -1}))
    record_progress(session, progress, {entry.request_id: entry.subject}, on_complete)


def _write(session: Session, entry: Entry, seen: Verification, again_at: datetime | None) -> bool:
    now = dbtime.now(session)
    values: dict[str, Any] = {
        "verification": seen,
        "verify_due_at": again_at if seen is Verification.DUE else None,
        "verified_at": now if seen in (Verification.CONFIRMED, Verification.STILL_PRESENT) else None,
        "waiting_since": now if seen is Verification.DUE else None,
        "crashes": 0,
        "claimed_alone": False,
        "verifying": False,
    }
    if seen is Verification.CONFIRMED:
        values |= {"ref_sealed": None, "outcome": _confirmed_outcome()}
    ours = session.execute(
        update(OutboxRow)
        .where(
            OutboxRow.entry_id == entry.entry_id,
            OutboxRow.token == entry.token,
            OutboxRow.verification == Verification.DUE,
        )
        .values(values)
        .returning(OutboxRow.entry_id)
    ).first()
    return ours is not None


def _confirmed_outcome() -> ColumnElement[Any]:
    """An expiry that was the vendor's word is verified once our own read-back has confirmed it."""
    verified = literal(StepOutcome.VERIFIED_EXPIRY, OutboxRow.outcome.type)
    return case((OutboxRow.outcome == StepOutcome.EXPIRED, verified), else_=OutboxRow.outcome)


def _event(resolver: str, seen: Verification) -> Event | None:
    if seen is Verification.CONFIRMED:
        return ExternallyVerified(resolver=resolver)
    if seen is Verification.STILL_PRESENT:
        return ExternalVerificationFailed(resolver=resolver)
    return ReadBackGivenUp(resolver=resolver) if seen is Verification.UNVERIFIABLE else None


def _failure(entry: Entry, error: str, code: str) -> Failure:
    return Failure(
        domain=DeadLetterDomain.VERIFICATION,
        request_id=entry.request_id,
        subject=entry.subject,
        error=error,
        code=code,
        entry_id=entry.entry_id,
        resolver=entry.resolver,
        attempts=entry.attempts,
    )


def request_read_back(session: Session, entry_id: object, *, at: datetime | None = None) -> str | None:
    """Have an entry erased and read back once more; its resolver, or None if there is nothing to read.

    Only where no read-back has confirmed it: what is verified or attested stays so, and a completed request
    is never opened by this.
    """
    now = dbtime.now(session)
    return session.execute(
        update(OutboxRow)
        .where(
            OutboxRow.entry_id == entry_id,
            OutboxRow.verification.in_(UNCONFIRMED),
            OutboxRow.ref_sealed.is_not(None),
        )
        .values(
            verification=Verification.DUE,
            verify_due_at=at or now,
            waiting_since=now,
            last_attempt_at=now,
            crashes=0,
            claimed_alone=False,
            verifying=False,
        )
        .returning(OutboxRow.resolver)
    ).scalar_one_or_none()
