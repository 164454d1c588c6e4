"""Changing the status of dead letters, and what a person may decide about one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, select, update
from sqlalchemy.orm import Session

from effaced.audit.append import SYSTEM, Record, append
from effaced.audit.events import DeadLetterDecided, DeadLettersArchived
from effaced.audit.notes import NoteRef, note_fields, write_note
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.db.sql import key_in
from effaced.core.errors import Conflict, NotFound, Problem
from effaced.deadletters.arguments import code
from effaced.deadletters.linked_work import refuse_to_close, work_not_done
from effaced.deadletters.rules import (
    ARCHIVED,
    BY_HAND,
    DECISIONS,
    PERMANENTLY_FAILED,
    REJECTED,
    RESOLVED,
    SETTLED,
    UNSETTLED_VALUES,
    marks_after_reopening,
    settable_from,
)
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterStatus, SubjectKey


@dataclass(frozen=True, slots=True)
class Change:
    """A new status, and what is recorded with it. Empty texts keep what is stored, sentences are refused."""

    to: DeadLetterStatus
    actor: str = SYSTEM
    resolution: str = ""
    by: str | None = None
    note: NoteRef | None = None
    recommended: str = ""

    def __post_init__(self) -> None:
        code("resolution_type", self.resolution, 32)
        code("recommended_action", self.recommended, 32)


def decide(
    session: Session, keyring: Keyring, dead_letter_id: UUID, to: DeadLetterStatus, *, actor: str, reason: str
) -> None:
    """Carry out a person's decision. Refuses what `rules.DECISIONS` does not list, and closing a dead letter
    over work that was not done."""
    found = _lock_to_change(session, dead_letter_id, to, DECISIONS.get(to, ()), decided=True)
    note = write_note(
        session, keyring, reason, author=actor, request_id=found.request_id, dead_letter_id=dead_letter_id
    )
    resolution = BY_HAND if to in SETTLED else ""
    decision = Change(to, actor, resolution=resolution, by=actor, note=note)
    change(session, DeadLetter.id == dead_letter_id, decision)


def set_status(session: Session, dead_letter_id: UUID, wanted: Change) -> None:
    """A program's change. Refuses what `rules.settable_from` does not list, and closing a dead letter over
    work that was not done."""
    _lock_to_change(session, dead_letter_id, wanted.to, settable_from(wanted.to))
    change(session, DeadLetter.id == dead_letter_id, wanted)


def set_status_of_many(session: Session, ids: Sequence[UUID], wanted: Change) -> int:
    """How many were changed: those that `set_status` would not refuse."""
    which = key_in(session, DeadLetter.id, ids) & DeadLetter.status.in_(settable_from(wanted.to))
    if wanted.to in SETTLED:
        # Locked before the work is looked at: a settle that fails it meanwhile holds these rows.
        session.execute(select(DeadLetter.id).where(which).order_by(DeadLetter.id).with_for_update())
        which &= ~work_not_done()
    return change(session, which, wanted)


def change(
    session: Session,
    which: ColumnElement[bool],
    wanted: Change,
    *,
    limit: int | None = None,
    skip_locked: bool = False,
) -> int:
    """Change dead letters, with an event for each, and one for the whole action if they are archived.

    Returns how many. The caller has checked that they may change.
    """
    found = session.execute(
        select(*_LOCKED)
        .where(which)
        .order_by(DeadLetter.id)
        .limit(limit)
        .with_for_update(skip_locked=skip_locked)
    ).all()
    if not found:
        return 0
    events = [_event(each, wanted) for each in found]
    if wanted.to is ARCHIVED:
        events.append(Record(DeadLettersArchived(count=len(found)), actor=wanted.actor))
    append(session, events)
    ids = [each.id for each in found]
    session.execute(
        update(DeadLetter).where(key_in(session, DeadLetter.id, ids)).values(changed_values(wanted))
    )
    for each in found:
        if each.status in SETTLED and wanted.to not in SETTLED:
            marks = marks_after_reopening(each.marks)
            session.execute(update(DeadLetter).where(DeadLetter.id == each.id).values(marks=marks))
    return len(found)


def changed_values(wanted: Change) -> dict[str, Any]:
    """The columns that go with a change. Only settled dead letters say how they were settled."""
    now, to = clock.now(), wanted.to
    values: dict[str, Any] = {"status": to, "updated_at": now}
    if to in SETTLED:
        if wanted.by is not None:
            values["resolved_by"] = wanted.by
    elif to is not PERMANENTLY_FAILED:  # only open ones are given up, and those were not settled
        values |= UNSETTLED_VALUES
    if to in (RESOLVED, REJECTED):
        values["resolved_at"] = now
    elif to is ARCHIVED:
        values["archived_at"] = now
    if to in (*SETTLED, PERMANENTLY_FAILED):
        if wanted.resolution:
            values["resolution"] = wanted.resolution
        if wanted.note is not None:
            values["resolution_note_id"] = wanted.note.note_id
    if wanted.recommended:
        values["recommended_action"] = wanted.recommended
    return values


def _lock_to_change(
    session: Session,
    dead_letter_id: UUID,
    to: DeadLetterStatus,
    sources: Collection[DeadLetterStatus],
    *,
    decided: bool = False,
) -> Row[*tuple[Any, ...]]:
    """Refuses a dead letter in another status than `sources`, and closing over work that was not done."""
    found = lock_dead_letter(session, dead_letter_id)
    if found.status not in sources:
        raise Conflict(
            f"The dead letter is {found.status.value}; it can't become {to.value}.",
            problems=[Problem("status", f"is {found.status.value}", code="wrong_status")],
        )
    if to in SETTLED:
        refuse_to_close(session, dead_letter_id, decided=decided)
    return found


def lock_dead_letter(session: Session, dead_letter_id: UUID) -> Row[*tuple[Any, ...]]:
    """Refuses an id that no dead letter has."""
    query = select(*_LOCKED).where(DeadLetter.id == dead_letter_id).with_for_update()
    found = session.execute(query).first()
    if found is None:
        raise NotFound("There is no such dead letter.")
    return found


_LOCKED = (
    DeadLetter.id,
    DeadLetter.domain,
    DeadLetter.status,
    DeadLetter.entry_id,
    DeadLetter.request_id,
    DeadLetter.subject_key_id,
    DeadLetter.subject_hmac,
    DeadLetter.assigned_to,
    DeadLetter.marks,
)


def event_links(row: Row[*tuple[Any, ...]]) -> dict[str, Any]:
    """The request, entry and subject of an event about this dead letter. A delivery is not an entry."""
    subject = SubjectKey(row.subject_key_id, row.subject_hmac) if row.subject_hmac else None
    entry_id = row.entry_id if row.request_id else None
    return {"request_id": row.request_id, "entry_id": entry_id, "subject": subject}


def _event(row: Row[*tuple[Any, ...]], wanted: Change) -> Record:
    event = DeadLetterDecided(
        dead_letter_id=row.id, prior=row.status, status=wanted.to, **note_fields(wanted.note)
    )
    return Record(event, actor=wanted.actor, **event_links(row))
