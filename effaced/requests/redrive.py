"""A person has another try made at what had failed for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced import clock
from effaced.audit.append import append_one
from effaced.audit.events import BulkRequeued, ExecutionRequeued, ReadBackRequested
from effaced.audit.notes import NoteRef, noted, write_note
from effaced.crypto import Keyring
from effaced.deadletters.acquire import Acquired, acquire_for_replay, statuses
from effaced.deadletters.tables import DeadLetter
from effaced.doorbell import ring_after_commit
from effaced.errors import Conflict, NotFound, Problem, Refused
from effaced.model import DeadLetterDomain, OutboxOperation, RequestStatus, SubjectKey
from effaced.outbox.requeue import requeue
from effaced.outbox.tables import OutboxRow
from effaced.requests.execute import Executor
from effaced.requests.tables import Request
from effaced.saga.readback import ask_for_read_back

MOST = 500
_REISSUE = "can't be tried again: its corrections are gone; send the correction again"


@dataclass(frozen=True, slots=True)
class RedriveResult:
    """What became of one of the chosen dead letters."""

    dead_letter_id: UUID
    requeued: bool
    why: str


def redrive(
    session: Session, executor: Executor, ids: Sequence[UUID], *, actor: str, reason: str
) -> list[RedriveResult]:
    """Try again what is behind these dead letters. Those that somebody else took are left alone.

    Refuses more than 500 at once: a longer list is better narrowed by a filter first.
    """
    ids = list(dict.fromkeys(ids))
    if not 1 <= len(ids) <= MOST:
        said = "choose at least one" if not ids else f"choose at most {MOST} at once"
        raise Refused(f"Requeue: {said}.", problems=[Problem("ids", said)])
    note = write_note(session, executor.keyring, reason, author=actor)
    _lock_in_order(session, ids)
    gone = _without_corrections(session, ids)
    acquired = acquire_for_replay(session, [each for each in ids if each not in gone])
    _external_calls(session, acquired, actor, note)
    _read_backs(session, acquired, actor, note)
    _local_executions(session, acquired, actor, note)
    append_one(
        session,
        BulkRequeued(chosen=len(ids), requeued=len(acquired), note_id=note.note_id, note_hmac=note.note_hmac),
        actor=actor,
    )
    found = statuses(session, ids)
    return [
        RedriveResult(each, each in acquired, _REISSUE if each in gone else _why(each, acquired, found))
        for each in ids
    ]


def _without_corrections(session: Session, ids: Sequence[UUID]) -> set[UUID]:
    """Letters of corrections: the values went with the end, so trying again would correct nothing."""
    return set(
        session.scalars(
            select(DeadLetter.id)
            .join(OutboxRow, OutboxRow.entry_id == DeadLetter.entry_id)
            .where(DeadLetter.id.in_(ids), OutboxRow.operation == OutboxOperation.RECTIFY)
        )
    )


def reverify(session: Session, keyring: Keyring, entry_id: UUID, *, actor: str, reason: str) -> str:
    """Have an erasure made once more and read back; its resolver. A letter about it is replayed with it."""
    entry = session.execute(
        select(OutboxRow.request_id, OutboxRow.subject_key_id, OutboxRow.subject_hmac)
        .where(OutboxRow.entry_id == entry_id)
        .with_for_update()
    ).first()
    if entry is None:
        raise NotFound("There is no such external call.")
    note = write_note(session, keyring, reason, author=actor, request_id=entry.request_id)
    resolver = ask_for_read_back(session, entry_id)
    if resolver is None:
        raise Conflict("Nothing can be read back here: the reference to the person is gone.")
    letters = session.scalars(
        select(DeadLetter.id).where(
            DeadLetter.entry_id == entry_id, DeadLetter.domain == DeadLetterDomain.VERIFICATION
        )
    ).all()
    acquire_for_replay(session, letters)
    append_one(
        session,
        ReadBackRequested(resolver=resolver, **noted(note)),
        actor=actor,
        request_id=entry.request_id,
        entry_id=entry_id,
        subject=SubjectKey(entry.subject_key_id, entry.subject_hmac),
    )
    ring_after_commit(session, {resolver})
    return resolver


def _lock_in_order(session: Session, ids: Sequence[UUID]) -> None:
    # Entries, then requests, then dead letters: the order in which the settle takes them.
    letters = session.execute(
        select(DeadLetter.entry_id, DeadLetter.request_id).where(DeadLetter.id.in_(ids))
    ).all()
    for column, wanted in (
        (OutboxRow.entry_id, {row.entry_id for row in letters if row.entry_id}),
        (Request.id, {row.request_id for row in letters}),
    ):
        session.execute(select(column).where(column.in_(wanted)).order_by(column).with_for_update())


def _of(acquired: dict[UUID, Acquired], domain: DeadLetterDomain) -> list[Acquired]:
    return [letter for letter in acquired.values() if letter.domain is domain]


def _external_calls(session: Session, acquired: dict[UUID, Acquired], actor: str, note: NoteRef) -> None:
    letters = [
        *_of(acquired, DeadLetterDomain.EXTERNAL_CALL),
        *_of(acquired, DeadLetterDomain.ATTESTATION),
    ]
    requeue(session, [letter.entry_id for letter in letters if letter.entry_id], actor=actor, note=note)


def _read_backs(session: Session, acquired: dict[UUID, Acquired], actor: str, note: NoteRef) -> None:
    for letter in _of(acquired, DeadLetterDomain.VERIFICATION):
        resolver = ask_for_read_back(session, letter.entry_id)
        if resolver is None:
            continue
        ring_after_commit(session, {resolver})
        request = session.get_one(Request, letter.request_id)
        append_one(
            session,
            ReadBackRequested(resolver=resolver, note_id=note.note_id, note_hmac=note.note_hmac),
            actor=actor,
            request_id=request.id,
            entry_id=letter.entry_id,
            subject=request.subject,
        )


def _local_executions(session: Session, acquired: dict[UUID, Acquired], actor: str, note: NoteRef) -> None:
    for letter in _of(acquired, DeadLetterDomain.LOCAL_EXECUTION):
        request = session.get_one(Request, letter.request_id)
        if request.status is RequestStatus.APPROVED:
            request.execute_at, request.execute_attempts = clock.now(), 0
        event = ExecutionRequeued(note_id=note.note_id, note_hmac=note.note_hmac)
        append_one(session, event, actor=actor, request_id=request.id, subject=request.subject)


def _why(each: UUID, acquired: dict[UUID, Acquired], found: Mapping[UUID, object]) -> str:
    if each in acquired:
        return "is tried again"
    return f"is already {found[each]}" if each in found else "does not exist"
