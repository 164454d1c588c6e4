"""Changing the status of dead letters, and what a person may decide about one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, select, update
from sqlalchemy.orm import Session

from effaced.audit.append import SYSTEM, Record, append
from effaced.audit.events import DeadLetterDecided
from effaced.audit.notes import NoteRef, noted, write_note
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.errors import Conflict, NotFound, Problem
from effaced.core.sql import among
from effaced.deadletters.context import code
from effaced.deadletters.linked_work import WHY_NOT_CLOSED, work_not_done
from effaced.deadletters.rules import (
    ARCHIVED,
    BY_HAND,
    DECISIONS,
    PERMANENTLY_FAILED,
    REJECTED,
    RESOLVED,
    SETTLED,
    UNSETTLED_VALUES,
    reopened,
)
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, DeadLetterStatus, SubjectKey


@dataclass(frozen=True, slots=True)
class Change:
    """Another status, and what is said about it. Empty texts keep what is there."""

    to: DeadLetterStatus
    actor: str = SYSTEM
    resolution: str = ""
    by: str | None = None
    note: NoteRef | None = None
    recommended: str = ""


def decide(
    session: Session, keyring: Keyring, letter_id: UUID, to: DeadLetterStatus, *, actor: str, reason: str
) -> None:
    """A person's decision, with a reason. Refuses what `rules.DECISIONS` does not have.

    Refuses to close a dead letter over work that was not done. Only of an undelivered message the decision
    itself is the statement that nothing is left to do.
    """
    letter = lock(session, letter_id)
    if letter.status not in DECISIONS.get(to, ()):
        raise Conflict(
            f"The letter is {letter.status.value}; it can't become {to.value}.",
            problems=[Problem("status", f"is {letter.status.value}")],
        )
    if to in SETTLED and (why := why_not_closed(session, letter_id)) is not None:
        raise Conflict(why)
    note = write_note(
        session, keyring, reason, author=actor, request_id=letter.request_id, dead_letter_id=letter_id
    )
    resolution = BY_HAND if to in SETTLED else ""
    decision = Change(to, actor, resolution=resolution, by=actor, note=note)
    change(session, DeadLetter.id == letter_id, decision)


def why_not_closed(session: Session, letter_id: UUID) -> str | None:
    """What `decide` would say to whoever wants to resolve or reject it; None if it would do it."""
    closable = DeadLetter.domain == DeadLetterDomain.MESSAGE
    return _why(session, (DeadLetter.id == letter_id) & ~closable)


def refuse_undone(session: Session, which: ColumnElement[bool]) -> None:
    """Refuses to close dead letters over work that was not done."""
    if (why := _why(session, which)) is not None:
        raise Conflict(why)


def _why(session: Session, which: ColumnElement[bool]) -> str | None:
    domain = session.scalar(select(DeadLetter.domain).where(which, work_not_done()).limit(1))
    return None if domain is None else WHY_NOT_CLOSED[domain]


def change(
    session: Session,
    which: ColumnElement[bool],
    wanted: Change,
    *,
    limit: int | None = None,
    skip_locked: bool = False,
) -> int:
    """Give dead letters another status, with an event for each; how many. Callers check whether they may."""
    letters = session.execute(
        select(*_LOCKED)
        .where(which)
        .order_by(DeadLetter.id)
        .limit(limit)
        .with_for_update(skip_locked=skip_locked)
    ).all()
    if not letters:
        return 0
    append(session, [_event(letter, wanted) for letter in letters])
    ids = [letter.id for letter in letters]
    values = changed_values(wanted)
    session.execute(update(DeadLetter).where(among(session, DeadLetter.id, ids)).values(values))
    for letter in letters:
        if letter.status in SETTLED and wanted.to not in SETTLED:
            marks = reopened(letter.marks)
            session.execute(update(DeadLetter).where(DeadLetter.id == letter.id).values(marks=marks))
    return len(letters)


def changed_values(wanted: Change) -> dict[str, Any]:
    """The columns that go with a change. How a dead letter was settled is said of settled ones only."""
    now, to = clock.now(), wanted.to
    values: dict[str, Any] = {"status": to, "updated_at": now}
    if to not in SETTLED:
        values |= UNSETTLED_VALUES
    elif wanted.by is not None:
        values["resolved_by"] = wanted.by
    if to in (RESOLVED, REJECTED):
        values["resolved_at"] = now
    elif to is ARCHIVED:
        values["archived_at"] = now
    resolution = code("resolution_type", wanted.resolution, 32)
    if to in (*SETTLED, PERMANENTLY_FAILED):
        if resolution:
            values["resolution"] = resolution
        if wanted.note is not None:
            values["resolution_note_id"] = wanted.note.note_id
    if wanted.recommended:
        values["recommended_action"] = code("recommended_action", wanted.recommended, 32)
    return values


def change_some(session: Session, ids: Sequence[UUID], wanted: Change) -> int:
    """The same for many. Those whose work was not done are not closed, and not counted."""
    which = among(session, DeadLetter.id, ids)
    if wanted.to in SETTLED:
        which &= ~work_not_done()
    return change(session, which, wanted)


def count_retry(session: Session, letter_id: UUID) -> bool:
    now = clock.now()
    counted = session.execute(
        update(DeadLetter)
        .where(DeadLetter.id == letter_id)
        .values(retry_count=DeadLetter.retry_count + 1, last_retry_at=now, updated_at=now)
        .returning(DeadLetter.id)
    )
    return counted.first() is not None


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


def lock(session: Session, letter_id: UUID) -> Row[*tuple[Any, ...]]:
    found = session.execute(select(*_LOCKED).where(DeadLetter.id == letter_id).with_for_update()).first()
    if found is None:
        raise NotFound("There is no such dead letter.")
    return found


def about(letter: Row[*tuple[Any, ...]]) -> dict[str, Any]:
    """What an event about this letter is about. A delivery is no entry."""
    subject = SubjectKey(letter.subject_key_id, letter.subject_hmac) if letter.subject_hmac else None
    entry_id = letter.entry_id if letter.request_id else None
    return {"request_id": letter.request_id, "entry_id": entry_id, "subject": subject}


def _event(letter: Row[*tuple[Any, ...]], wanted: Change) -> Record:
    note: Mapping[str, Any] = noted(wanted.note)
    event = DeadLetterDecided(dead_letter_id=letter.id, prior=letter.status, status=wanted.to, **note)
    return Record(event, actor=wanted.actor, **about(letter))
