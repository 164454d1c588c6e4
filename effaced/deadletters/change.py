"""Changing what is known of a letter, and what a person may decide about one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, select, update
from sqlalchemy.orm import Session

from effaced import clock
from effaced.audit.append import append_one
from effaced.audit.events import DeadLetterDecided
from effaced.audit.notes import NoteRef, noted, write_note
from effaced.crypto import Keyring
from effaced.deadletters.behind import erasure_missing
from effaced.deadletters.context import code
from effaced.deadletters.rules import ARCHIVED, DECISIONS, REJECTED, RESOLVED, SETTLED
from effaced.deadletters.tables import DeadLetter
from effaced.errors import Conflict, NotFound, Problem
from effaced.model import DeadLetterStatus, SubjectKey
from effaced.sql import among

_BY_HAND = "by_hand"
STILL_MISSING = (
    "The erasure behind this letter was not made, or could not be seen to be. Requeue it, or attest that "
    "it was done by hand; a letter over it can't be closed."
)


def decide(
    session: Session, keyring: Keyring, letter_id: UUID, to: DeadLetterStatus, *, actor: str, reason: str
) -> None:
    """A person's decision, with a reason. Refuses what `rules.DECISIONS` does not have.

    A letter whose erasure was not made can't be resolved or rejected: nobody would look at it again.
    """
    letter = lock(session, letter_id)
    if letter.status not in DECISIONS.get(to, ()):
        raise Conflict(
            f"The letter is {letter.status.value}; it can't become {to.value}.",
            problems=[Problem("status", f"is {letter.status.value}")],
        )
    if to in SETTLED:
        refuse_missing(session, DeadLetter.id == letter_id)
    note = write_note(
        session, keyring, reason, author=actor, request_id=letter.request_id, dead_letter_id=letter_id
    )
    event = DeadLetterDecided(dead_letter_id=letter_id, prior=letter.status, status=to, **noted(note))
    append_one(session, event, actor=actor, **about(letter))
    change(
        session,
        DeadLetter.id == letter_id,
        to,
        resolution=_BY_HAND if to in SETTLED else "",
        by=actor,
        note=note,
    )


def change(
    session: Session,
    which: ColumnElement[bool],
    to: DeadLetterStatus,
    *,
    resolution: str = "",
    by: str | None = None,
    note: NoteRef | None = None,
    recommended: str = "",
) -> int:
    """Give letters another status; how many. Empty texts keep what is there."""
    values = status_values(to)
    if resolution:
        values["resolution"] = code("resolution_type", resolution, 32)
    if by is not None and to in SETTLED:
        values["resolved_by"] = by
    if note is not None:
        values["resolution_note_id"] = note.note_id
    if recommended:
        values["recommended_action"] = code("recommended_action", recommended, 32)
    changed = session.execute(update(DeadLetter).where(which).values(values).returning(DeadLetter.id))
    return len(changed.all())


def status_values(to: DeadLetterStatus) -> dict[str, Any]:
    """The columns that go with a status."""
    now = clock.now()
    values: dict[str, Any] = {"status": to, "updated_at": now}
    if to in (RESOLVED, REJECTED):
        values["resolved_at"] = now
    elif to is ARCHIVED:
        values["archived_at"] = now
    else:
        values |= {"resolved_at": None, "resolved_by": None, "archived_at": None}
    return values


def change_some(session: Session, ids: Sequence[UUID], to: DeadLetterStatus) -> int:
    """The same for many. Those whose erasure was not made are not closed, and not counted."""
    which = among(session, DeadLetter.id, ids)
    if to in SETTLED:
        which &= ~erasure_missing()
    return change(session, which, to)


def count_retry(session: Session, letter_id: UUID) -> bool:
    now = clock.now()
    counted = session.execute(
        update(DeadLetter)
        .where(DeadLetter.id == letter_id)
        .values(retry_count=DeadLetter.retry_count + 1, last_retry_at=now, updated_at=now)
        .returning(DeadLetter.id)
    )
    return counted.first() is not None


def refuse_missing(session: Session, which: ColumnElement[bool]) -> None:
    """Refuses to close over an erasure that was not made."""
    if is_missing(session, which):
        raise Conflict(STILL_MISSING)


def is_missing(session: Session, which: ColumnElement[bool]) -> bool:
    """Whether one of these letters is over an erasure that was not made."""
    return session.scalar(select(DeadLetter.id).where(which, erasure_missing()).limit(1)) is not None


def lock(session: Session, letter_id: UUID) -> Row[*tuple[Any, ...]]:
    found = session.execute(
        select(
            DeadLetter.id,
            DeadLetter.domain,
            DeadLetter.status,
            DeadLetter.entry_id,
            DeadLetter.request_id,
            DeadLetter.subject_key_id,
            DeadLetter.subject_hmac,
            DeadLetter.assigned_to,
        )
        .where(DeadLetter.id == letter_id)
        .with_for_update()
    ).first()
    if found is None:
        raise NotFound("There is no such dead letter.")
    return found


def about(letter: Row[*tuple[Any, ...]]) -> dict[str, Any]:
    """What an event about this letter is about. A delivery is no entry."""
    subject = SubjectKey(letter.subject_key_id, letter.subject_hmac) if letter.subject_hmac else None
    entry_id = letter.entry_id if letter.request_id else None
    return {"request_id": letter.request_id, "entry_id": entry_id, "subject": subject}
