"""Who looks after a letter, and what people have to say about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from effaced.accounts.officers import get_officer
from effaced.audit.append import append_one
from effaced.audit.events import DeadLetterAssigned, DeadLetterNoted
from effaced.audit.notes import NoteRef, noted, read_notes, write_note
from effaced.audit.tables import Note
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.errors import Conflict, Problem, Refused
from effaced.deadletters.change import about, lock
from effaced.deadletters.rules import SETTLED
from effaced.deadletters.tables import DeadLetter
from effaced.model import Role


@dataclass(frozen=True, slots=True)
class LetterNote:
    """What somebody wrote about a letter; no text if it was erased since."""

    id: UUID
    author: str
    at: datetime
    text: str | None = field(repr=False)


def assign(session: Session, letter_id: UUID, officer_id: UUID | None, *, actor: str) -> bool:
    """Give a letter to an officer, or with None to nobody; whether that changed anything.

    Refuses settled letters, and officers who can't act.
    """
    letter = lock(session, letter_id)
    if letter.status in SETTLED:
        raise Conflict(f"The letter is {letter.status.value}; there is nothing left to look after.")
    if officer_id is not None:
        officer = get_officer(session, officer_id)
        if officer is None or officer.role is Role.AUDITOR:
            said = "must be an active officer who may act"
            raise Refused(f"The officer {said}.", problems=[Problem("officer", said)])
    if letter.assigned_to == officer_id:
        return False
    event = DeadLetterAssigned(dead_letter_id=letter_id, officer_id=officer_id)
    append_one(session, event, actor=actor, **about(letter))
    now = clock.now()
    session.execute(
        update(DeadLetter)
        .where(DeadLetter.id == letter_id)
        .values(assigned_to=officer_id, assigned_at=now if officer_id else None, updated_at=now)
    )
    return True


def add_note(session: Session, keyring: Keyring, letter_id: UUID, text: str, *, actor: str) -> NoteRef:
    """Write something down about a letter. The text is sealed and erasable; the trail has its hash."""
    letter = lock(session, letter_id)
    note = write_note(
        session,
        keyring,
        text,
        author=actor,
        request_id=letter.request_id,
        dead_letter_id=letter_id,
        field="note",
    )
    event = DeadLetterNoted(dead_letter_id=letter_id, **noted(note))
    append_one(session, event, actor=actor, **about(letter))
    return note


def notes_of(session: Session, keyring: Keyring, letter_id: UUID) -> list[LetterNote]:
    """Everything that was written about a letter, oldest first."""
    rows = session.execute(
        select(Note.id, Note.author, Note.at)
        .where(Note.dead_letter_id == letter_id)
        .order_by(Note.at, Note.id)
        .limit(500)
    ).all()
    texts = read_notes(session, keyring, [row.id for row in rows])
    return [LetterNote(row.id, row.author, row.at, texts.get(row.id)) for row in rows]
