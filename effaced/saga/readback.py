"""Read-backs that could not be made with the erasure: claimed and settled on their own.

They never touch the entry's status. The success stands; what is added is whether it was the truth.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import update
from sqlalchemy.orm import Session

from effaced import dbtime
from effaced.audit.append import append_one
from effaced.audit.events import ExternallyVerified, ExternalVerificationFailed
from effaced.deadletters.record import Failure, record_failures, record_recoveries
from effaced.model import DeadLetterDomain, Verification
from effaced.outbox.entry import Entry
from effaced.outbox.tables import OutboxRow
from effaced.retries.tables import Attempt
from effaced.saga.result import ReadBack
from effaced.saga.settle import read_back_attempt
from effaced.sql import insert_rows


def settle_read_back(session: Session, entry: Entry, look: ReadBack, *, again_at: datetime | None) -> bool:
    """Write down what the read-back said. One that could not be made is due again at `again_at`.

    With no such moment it is given up, and a person is told.
    """
    seen, now = look.seen, dbtime.now(session)
    known = seen is not Verification.DUE
    ours = session.execute(
        update(OutboxRow)
        .where(
            OutboxRow.entry_id == entry.entry_id,
            OutboxRow.token == entry.token,
            OutboxRow.verification == Verification.DUE,
        )
        .values(
            verification=seen,
            verify_due_at=None if known else again_at,
            waiting_since=None if known or again_at is None else now,
            verified_at=now if known else None,
            crashes=0,
            claimed_alone=False,
            verifying=False,
            **({"ref_sealed": None} if seen is Verification.CONFIRMED else {}),
        )
        .returning(OutboxRow.entry_id)
    ).first()
    if ours is None:
        return False
    if look.was_made:
        insert_rows(session, Attempt, [read_back_attempt(entry, look)])
    about = {"request_id": entry.request_id, "entry_id": entry.entry_id, "subject": entry.subject}
    if seen is Verification.CONFIRMED:
        append_one(session, ExternallyVerified(resolver=entry.resolver), **about)
        record_recoveries(session, (DeadLetterDomain.VERIFICATION,), [entry.entry_id])
    elif seen is Verification.STILL_PRESENT:
        append_one(session, ExternalVerificationFailed(resolver=entry.resolver), **about)
        record_failures(session, [_failure(entry, "StillPresent", "still_present")])
    elif again_at is None:
        record_failures(session, [_failure(entry, "ReadBackNotPossible", "unverifiable")])
    return True


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


def ask_for_read_back(session: Session, entry_id: object, *, at: datetime | None = None) -> str | None:
    """Have an entry erased and read back once more; its resolver, or None if there is nothing to read."""
    now = dbtime.now(session)
    return session.execute(
        update(OutboxRow)
        .where(
            OutboxRow.entry_id == entry_id,
            OutboxRow.verification.is_not(None),
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
