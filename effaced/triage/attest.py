"""A person says of an external call that it was done by hand, and is shown what that needs.

So they may of an erasure that was made and could not be seen to be: a read-back may be wrong, too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.events import ReadBackAttested, ReferenceRevealed, StepAttested
from effaced.audit.notes import note_fields, write_note
from effaced.core.crypto import Keyring
from effaced.core.db import dbtime
from effaced.core.errors import Conflict, NotFound
from effaced.deadletters.record import record_recoveries
from effaced.deadletters.rules import ATTESTED
from effaced.model import (
    Correction,
    DeadLetterDomain,
    Evidence,
    OutboxOperation,
    OutboxStatus,
    StepOutcome,
    SubjectRef,
    Verification,
)
from effaced.notify.notices import StepSucceeded
from effaced.notify.write import announce_wanted
from effaced.outbox.countdown import count_down
from effaced.outbox.entry import COLUMNS, Entry, as_entry
from effaced.outbox.read import UNCONFIRMED
from effaced.outbox.tables import outbox
from effaced.outbox.unblock import unblock, waiting
from effaced.requests.complete import complete_operations
from effaced.saga.settle import record_progress
from effaced.saga.settle_read_back import count_as_verified

ATTESTABLE = (OutboxStatus.ABANDONED, OutboxStatus.SCHEDULED)


@dataclass(frozen=True, slots=True)
class Revealed:
    """How a system knows the person, and what is to be corrected there. Nothing of it is kept."""

    ref: SubjectRef
    corrections: tuple[Correction, ...] = field(repr=False)


def attest(
    session: Session,
    keyring: Keyring,
    entry_id: UUID,
    *,
    actor: str,
    reason: str,
    through: UUID | None = None,
) -> Entry:
    """Count an abandoned or parked call as done, on a person's word; `reason` says how it was done.

    Its dead letter is resolved, and the request completes if this was the last it waited for. Of an
    erasure that no read-back confirmed the statement is that the data is gone. `through` is the API key
    that speaks for the officer, if one does.
    """
    entry = _lock(session, entry_id)
    if entry.status is OutboxStatus.SUCCEEDED:
        _attest_gone(session, keyring, entry, actor, reason, through)
        return entry
    if entry.status not in ATTESTABLE:
        raise Conflict(f"The call is {entry.status.value}; only what is abandoned or parked can be attested.")
    if entry.outcome is StepOutcome.SUPERSEDED:
        raise Conflict("A later request has overtaken this call; there is nothing left to do.")
    note = write_note(session, keyring, reason, author=actor, request_id=entry.request_id)
    append_one(
        session,
        StepAttested(
            operation=entry.operation,
            resolver=entry.resolver,
            prior_status=entry.status,
            prior_error=entry.last_error,
            api_key_id=through,
            **note_fields(note),
        ),
        actor=actor,
        request_id=entry.request_id,
        entry_id=entry.entry_id,
        subject=entry.subject,
    )
    at = dbtime.now(session)
    session.execute(
        update(outbox)
        .where(outbox.c.entry_id == entry_id)
        .values(
            status=OutboxStatus.SUCCEEDED,
            outcome=StepOutcome.ATTESTED,
            token=outbox.c.token + 1,
            gate=None,
            waiting_since=None,
            last_error=None,
            ended_at=at,
            ref_sealed=None,
            corrections_sealed=None,
            waits_for=None,
            **_attested_instead_of_read_back(entry, at),
        )
    )
    done = StepSucceeded(
        request_id=entry.request_id,
        entry_id=entry.entry_id,
        resolver=entry.resolver,
        operation=entry.operation,
        attempts=entry.attempts,
        outcome=StepOutcome.ATTESTED,
        evidence=Evidence.ATTESTED,
    )
    announce_wanted(session, [done])
    if entry.unblocks:
        unblock(session, [entry])
    progress = count_down(session, Counter([(entry.request_id, entry.operation)]))
    record_progress(session, progress, {entry.request_id: entry.subject}, complete_operations)
    domains = (DeadLetterDomain.EXTERNAL_CALL, DeadLetterDomain.ATTESTATION)
    record_recoveries(session, domains, [entry_id], resolution=ATTESTED, by=actor)
    return entry


def _attested_instead_of_read_back(entry: Entry, at: datetime) -> dict[str, Any]:
    if entry.operation is OutboxOperation.RECTIFY:  # corrections are not read back
        return {}
    return {"verification": Verification.ATTESTED, "verified_at": at}


def _attest_gone(
    session: Session, keyring: Keyring, entry: Entry, actor: str, reason: str, through: UUID | None
) -> None:
    mine = outbox.c.entry_id == entry.entry_id
    seen = session.execute(select(outbox.c.verification, outbox.c.verify_due_at).where(mine)).one()
    if seen.verify_due_at is not None:
        raise Conflict("The system is still being looked at. Wait for what that shows.")
    if seen.verification not in UNCONFIRMED:
        raise Conflict("The call has succeeded; nothing is left to attest.")
    note = write_note(session, keyring, reason, author=actor, request_id=entry.request_id)
    append_one(
        session,
        ReadBackAttested(
            resolver=entry.resolver, prior=seen.verification, api_key_id=through, **note_fields(note)
        ),
        actor=actor,
        request_id=entry.request_id,
        entry_id=entry.entry_id,
        subject=entry.subject,
    )
    session.execute(
        update(outbox)
        .where(mine)
        .values(
            verification=Verification.ATTESTED,
            verified_at=dbtime.now(session),
            token=outbox.c.token + 1,
            ref_sealed=None,
        )
    )
    count_as_verified(session, entry, complete_operations)
    domains = (DeadLetterDomain.VERIFICATION,)
    record_recoveries(session, domains, [entry.entry_id], resolution=ATTESTED, by=actor)


def reveal(session: Session, keyring: Keyring, entry_id: UUID, *, actor: str, reason: str) -> Revealed:
    """Show whom a call is about, so that it can be made by hand. The trail says who asked, and why."""
    entry = _lock(session, entry_id)
    if entry.ref_sealed is None:
        raise Conflict("The call has ended, and with it the reference to the person.")
    note = write_note(session, keyring, reason, author=actor, request_id=entry.request_id)
    append_one(
        session,
        ReferenceRevealed(resolver=entry.resolver, **note_fields(note)),
        actor=actor,
        request_id=entry.request_id,
        entry_id=entry.entry_id,
        subject=entry.subject,
    )
    corrections = entry.open_corrections(keyring) if entry.corrections_sealed else ()
    return Revealed(entry.open_ref(keyring), corrections)


def _lock(session: Session, entry_id: UUID) -> Entry:
    """The entry, locked with those that wait for it, in the order that everybody keeps."""
    about = session.execute(select(outbox.c.request_id).where(outbox.c.entry_id == entry_id)).first()
    if about is None:
        raise NotFound("There is no such external call.")
    rows = session.execute(
        select(*COLUMNS)
        .where(or_(outbox.c.entry_id == entry_id, waiting(session, [about.request_id])))
        .order_by(outbox.c.entry_id)
        .with_for_update()
    ).all()
    return next(as_entry(row) for row in rows if row.entry_id == entry_id)
