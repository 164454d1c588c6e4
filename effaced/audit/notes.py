"""What people type: kept apart from the trail, sealed, and erasable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.events import NoteForgotten
from effaced.audit.tables import Note
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.errors import NotFound, Problem, Refused
from effaced.model import new_id

LONGEST = 2_000
_NOT_UNICODE = "has characters that are not valid Unicode"


@dataclass(frozen=True, slots=True)
class NoteRef:
    """What an event keeps of a note: its id and a keyed hash."""

    note_id: UUID
    note_hmac: str


def note_fields(note: NoteRef | None) -> dict[str, Any]:
    """The fields of an event that refer to the note, if there is one."""
    return {"note_id": note.note_id, "note_hmac": note.note_hmac} if note else {}


def write_note(
    session: Session,
    keyring: Keyring,
    text: str,
    *,
    author: str,
    request_id: UUID | None = None,
    dead_letter_id: UUID | None = None,
    field: str = "reason",
) -> NoteRef:
    """Store a note, sealed.

    Refuses text without visible characters, invalid Unicode, and more than 2,000 characters.
    """
    text = text.strip()
    if said := problem_of_note(text):
        raise Refused(f"The {field} {said}.", problems=[Problem(field, said, code=code_of_note(said))])
    note_id = new_id()
    sealed = keyring.seal(text.encode(), purpose="note", context=str(note_id))
    session.add(
        Note(
            id=note_id,
            request_id=request_id,
            dead_letter_id=dead_letter_id,
            author=author,
            at=clock.now(),
            text_sealed=sealed,
        )
    )
    session.flush()
    return NoteRef(note_id, keyring.fingerprint(text, purpose="note").hmac)


def problem_of_note(text: str) -> str | None:
    """Why `write_note` would refuse this text; None if it would not."""
    text = text.strip()
    # A zero-width space, for one, is neither printable nor a space to `strip`.
    if not any(each.isprintable() and not each.isspace() for each in text):
        return "is missing"
    if any("\ud800" <= each <= "\udfff" for each in text):
        return _NOT_UNICODE
    return f"is longer than {LONGEST} characters" if len(text) > LONGEST else None


def code_of_note(said: str) -> str:
    """The code of what `problem_of_note` says."""
    return {"is missing": "empty", _NOT_UNICODE: "malformed"}.get(said, "too_long")


def forget_note(session: Session, note_id: UUID, *, actor: str) -> None:
    """Remove what was typed; that it was there, and that it was removed, stays in the trail."""
    note = session.get(Note, note_id, with_for_update=True)
    if note is None or note.text_sealed is None:
        raise NotFound("There is no such note, or it was forgotten already.")
    note.text_sealed = None
    append_one(session, NoteForgotten(note_id=note_id), actor=actor, request_id=note.request_id)


def read_notes(session: Session, keyring: Keyring, note_ids: list[UUID]) -> dict[UUID, str]:
    """The texts of those notes that have not been erased."""
    rows = session.scalars(select(Note).where(Note.id.in_(note_ids), Note.text_sealed.is_not(None)))
    return {
        note.id: keyring.open(note.text_sealed, purpose="note", context=str(note.id)).decode()
        for note in rows
        if note.text_sealed is not None
    }
