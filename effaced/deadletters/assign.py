"""Who is responsible for a dead letter, and the notes that people write about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from effaced.accounts.officers import get_officer
from effaced.audit.append import append_one
from effaced.audit.events import DeadLetterAssigned, DeadLetterNoted
from effaced.audit.notes import NoteRef, note_fields, read_notes, write_note
from effaced.audit.tables import Note
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.errors import Conflict, Problem, Refused
from effaced.deadletters.decide import event_links, lock_dead_letter
from effaced.deadletters.rules import SETTLED
from effaced.deadletters.tables import DeadLetter
from effaced.model import Role

_MAX_NOTES = 500


@dataclass(frozen=True, slots=True)
class DeadLetterNote:
    """What somebody wrote about a dead letter; no text if it was erased since."""

    id: UUID
    author: str
    at: datetime
    text: str | None = field(repr=False)

    def plain(self) -> dict[str, Any]:
        return {"id": str(self.id), "author": self.author, "at": clock.text(self.at), "text": self.text}


def assign(session: Session, dead_letter_id: UUID, officer_id: UUID | None, *, actor: str) -> bool:
    """Assign a dead letter to an officer, or with None to nobody. Returns whether that changed anything.

    Refuses settled dead letters, and officers who are inactive or may only read.
    """
    found = lock_dead_letter(session, dead_letter_id)
    if found.status in SETTLED:
        raise Conflict(
            f"The dead letter is {found.status.value}; there is nothing left to do about it.",
            problems=[Problem("status", f"is {found.status.value}", code="wrong_state")],
        )
    if officer_id is not None:
        officer = get_officer(session, officer_id)
        if officer is None or officer.role is Role.AUDITOR:
            rule = "must be an active officer who is not an auditor"
            raise Refused(f"The officer {rule}.", problems=[Problem("assigned_to", rule, code="not_allowed")])
    if found.assigned_to == officer_id:
        return False
    event = DeadLetterAssigned(dead_letter_id=dead_letter_id, officer_id=officer_id)
    append_one(session, event, actor=actor, **event_links(found))
    now = clock.now()
    session.execute(
        update(DeadLetter)
        .where(DeadLetter.id == dead_letter_id)
        .values(assigned_to=officer_id, assigned_at=now if officer_id else None, updated_at=now)
    )
    return True


def add_note(session: Session, keyring: Keyring, dead_letter_id: UUID, text: str, *, actor: str) -> NoteRef:
    """The text is sealed and can be erased; the audit trail has its keyed hash."""
    found = lock_dead_letter(session, dead_letter_id)
    note = write_note(
        session,
        keyring,
        text,
        author=actor,
        request_id=found.request_id,
        dead_letter_id=dead_letter_id,
        field="note",
    )
    event = DeadLetterNoted(dead_letter_id=dead_letter_id, **note_fields(note))
    append_one(session, event, actor=actor, **event_links(found))
    return note


def notes_of(
    session: Session, keyring: Keyring, dead_letter_id: UUID, *, only: UUID | None = None
) -> list[DeadLetterNote]:
    """Oldest first; or only the one with this id."""
    query = select(Note.id, Note.author, Note.at).where(Note.dead_letter_id == dead_letter_id)
    if only is not None:
        query = query.where(Note.id == only)
    rows = session.execute(query.order_by(Note.at, Note.id).limit(_MAX_NOTES)).all()
    texts = read_notes(session, keyring, [row.id for row in rows])
    return [DeadLetterNote(row.id, row.author, row.at, texts.get(row.id)) for row in rows]
