"""One dead letter's timeline: the tries behind it, its events, and what people wrote about it."""

from __future__ import annotations

from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced.audit.read import AuditLine, last_events_of
from effaced.audit.tables import Note
from effaced.console.request.timeline import MOST, Records, Timeline, merge_by_time, notes_named_by
from effaced.core.crypto import Keyring
from effaced.deadletters.read import DeadLetterLine
from effaced.requests.read import AttemptLine, last_attempts_of


def letter_timeline(session: Session, keyring: Keyring, zone: ZoneInfo, letter: DeadLetterLine) -> Timeline:
    """Oldest first. A message belongs to no request, so of it there are people's notes alone."""
    events = _events(session, letter)
    about_it = Note.dead_letter_id == letter.id
    notes = list(session.scalars(select(Note).where(about_it).order_by(Note.at, Note.id).limit(MOST)))
    records = Records(events, _attempts(session, letter), notes, notes_named_by(events, []))
    return merge_by_time(session, keyring, zone, records)


def _events(session: Session, letter: DeadLetterLine) -> list[AuditLine]:
    if letter.request_id is None:
        return []
    events = last_events_of(session, letter.request_id, limit=MOST)
    return [line for line in events if _concerns(line, letter)]


def _attempts(session: Session, letter: DeadLetterLine) -> list[AttemptLine]:
    if letter.request_id is None or letter.entry_id is None:
        return []
    attempts = last_attempts_of(session, letter.request_id, limit=MOST)
    return [line for line in attempts if line.entry_id == letter.entry_id]


def _concerns(line: AuditLine, letter: DeadLetterLine) -> bool:
    about: UUID | None = line.entry_id
    if letter.entry_id is None:
        return about is None
    return about == letter.entry_id or line.payload.get("dead_letter_id") == str(letter.id)
