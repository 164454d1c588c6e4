"""One dead letter's story: the tries behind it, its events, and what people wrote about it."""

from __future__ import annotations

from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced.accounts.actors import names_of
from effaced.audit.notes import read_notes
from effaced.audit.read import AuditLine, last_events_of
from effaced.audit.tables import Note
from effaced.console.request.timeline import (
    MOST,
    Timeline,
    attempt_moment,
    event_moment,
    notes_named_by,
    rank,
    remark_moment,
)
from effaced.core.crypto import Keyring
from effaced.deadletters.read import DeadLetterLine
from effaced.requests.read import last_attempts_of


def letter_story(session: Session, keyring: Keyring, zone: ZoneInfo, letter: DeadLetterLine) -> Timeline:
    """Oldest first. A message belongs to no request, so of it there are people's words alone."""
    request_id = letter.request_id
    events = last_events_of(session, request_id, limit=MOST) if request_id else []
    tries = last_attempts_of(session, request_id, limit=MOST) if request_id and letter.entry_id else []
    events = [line for line in events if _concerns(line, letter)]
    tries = [line for line in tries if line.entry_id == letter.entry_id]
    mine = Note.dead_letter_id == letter.id
    remarks = list(session.scalars(select(Note).where(mine).order_by(Note.at, Note.id).limit(MOST)))
    noted = notes_named_by(events, [])
    texts = read_notes(session, keyring, [*noted.values(), *(note.id for note in remarks)])
    loose = [note for note in remarks if note.id in texts and note.id not in noted.values()]
    names = names_of(session, [line.actor for line in events] + [note.author for note in loose])
    story = [
        *(((line.at, rank(line), line.id), event_moment(line, names, noted, texts, zone)) for line in events),
        *(((note.at, 1, n), remark_moment(note, names, texts)) for n, note in enumerate(loose)),
        *(((line.at, 2, line.id), attempt_moment(line)) for line in tries),
    ]
    moments = [moment for _key, moment in sorted(story, key=lambda pair: pair[0])]
    return Timeline(tuple(moments[-MOST:]), shortened=len(moments) > MOST)


def _concerns(line: AuditLine, letter: DeadLetterLine) -> bool:
    about: UUID | None = line.entry_id
    if letter.entry_id is None:
        return about is None
    return about == letter.entry_id or line.payload.get("dead_letter_id") == str(letter.id)
