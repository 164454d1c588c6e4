"""One request's story: events of the trail and attempts at external calls, merged by time, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced.accounts.actors import names_of
from effaced.audit.events import (
    ErasureCompleted,
    RectificationCompleted,
    RequestReceived,
    VerificationCompleted,
)
from effaced.audit.notes import read_notes
from effaced.audit.read import AuditLine, last_events_of
from effaced.audit.tables import Note
from effaced.console import times
from effaced.console.audit.sentences import describe_event
from effaced.console.current import by_hand
from effaced.console.words import label
from effaced.core.crypto import Keyring
from effaced.model import AttemptOutcome, CallRole
from effaced.requests.read import AttemptLine, last_attempts_of

MOST = 300
_TOGETHER = timedelta(seconds=2)
_COMPLETED = (ErasureCompleted.type, RectificationCompleted.type, VerificationCompleted.type)


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of the story. `note` is what a person typed; `minor` lines are attempts."""

    at: datetime
    text: str
    tone: str
    icon: str
    who: str | None = None
    note: str | None = None
    type: str | None = None
    minor: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    moments: tuple[Moment, ...]
    shortened: bool


@dataclass(frozen=True, slots=True)
class Records:
    """What a timeline is made of. `note_of` maps an event to the note that was written with it."""

    events: list[AuditLine]
    attempts: list[AttemptLine]
    notes: list[Note]
    note_of: dict[int, UUID]


def timeline(session: Session, keyring: Keyring, zone: ZoneInfo, request_id: UUID) -> Timeline:
    """The last 300 events and attempts of a request, oldest first."""
    events = last_events_of(session, request_id, limit=MOST + 1)
    # What a person does by hand was never tried; its event says that somebody is waited for.
    tries = last_attempts_of(session, request_id, limit=MOST + 1)
    attempts = [line for line in tries if line.resolver not in by_hand()]
    notes = list(session.scalars(select(Note).where(Note.request_id == request_id)))
    records = Records(events, attempts, notes, notes_named_by(events, notes))
    return merge_by_time(session, keyring, zone, records)


def merge_by_time(session: Session, keyring: Keyring, zone: ZoneInfo, records: Records) -> Timeline:
    """One timeline of events, attempts, and the notes that belong to no event. Erased notes are left out."""
    note_of = records.note_of
    texts = read_notes(session, keyring, [*note_of.values(), *(note.id for note in records.notes)])
    remarks = [note for note in records.notes if note.id in texts and note.id not in note_of.values()]
    names = names_of(session, [line.actor for line in records.events] + [note.author for note in remarks])
    found = [
        *(
            ((line.at, _rank(line), line.id), _event_moment(line, names, note_of, texts, zone))
            for line in records.events
        ),
        *(((note.at, 1, n), _remark_moment(note, names, texts)) for n, note in enumerate(remarks)),
        *(((line.at, 2, line.id), _attempt_moment(line)) for line in records.attempts),
    ]
    moments = [moment for _key, moment in sorted(found, key=lambda pair: pair[0])]
    return Timeline(tuple(moments[-MOST:]), shortened=len(moments) > MOST)


def notes_named_by(events: list[AuditLine], remarks: list[Note]) -> dict[int, UUID]:
    """Which event has which note: the one it names; for an intake, what its sender wrote with it."""
    note_ids = {line.id: UUID(line.payload["note_id"]) for line in events if line.payload.get("note_id")}
    for line in events:
        for note in remarks if line.type == RequestReceived.type else ():
            if note.author == line.actor and abs(note.at - line.at) < _TOGETHER:
                note_ids.setdefault(line.id, note.id)
    return note_ids


def _rank(line: AuditLine) -> int:
    """Within one moment: decisions, then remarks, then attempts, then what became of them."""
    return 3 if line.entry_id or line.type in _COMPLETED else 0


def _event_moment(
    line: AuditLine, names: dict[str, str], note_ids: dict[int, UUID], texts: dict[UUID, str], zone: ZoneInfo
) -> Moment:
    sentence, text = describe_event(line.type, line.payload, lambda at: times.absolute(at, zone))
    return Moment(
        at=line.at,
        text=text,
        tone=sentence.tone,
        icon=sentence.icon,
        who=names[line.actor],
        note=texts.get(note_ids[line.id], "(this note was erased)") if line.id in note_ids else None,
        type=line.type,
    )


def _attempt_moment(line: AttemptLine) -> Moment:
    said = [
        f"HTTP {line.status_code}" if line.status_code else "",
        line.error or "",
        f"{line.latency_ms:,} ms",
    ]
    made = "Read-back" if line.role is CallRole.VERIFY else f"Attempt {line.number}"
    text = f"{made} at {line.resolver} {label(line.outcome)}: {', '.join(filter(None, said))}."
    failed = line.outcome in (AttemptOutcome.FAILURE, AttemptOutcome.TIMEOUT)
    return Moment(line.at, text, "warn" if failed else "quiet", "dots", minor=True)


def _remark_moment(note: Note, names: dict[str, str], texts: dict[UUID, str]) -> Moment:
    return Moment(note.at, "Note.", "quiet", "note", who=names[note.author], note=texts[note.id])
