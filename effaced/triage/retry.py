"""Retrying what had failed for good, because a person asked for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, and_, select
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.events import BulkRequeued, ExecutionRequeued, MessageRequeued, ReadBackRequested
from effaced.audit.notes import NoteRef, note_fields, write_note
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.db import dbtime
from effaced.core.db.sql import key_in
from effaced.core.errors import Conflict, NotFound, Problem, Refused
from effaced.deadletters.replay import Acquired, acquire_by_person, statuses
from effaced.deadletters.rules import OPEN, PENDING, REQUIRES_REVIEW
from effaced.deadletters.tables import DeadLetter
from effaced.doorbell import ring_after_commit
from effaced.model import DeadLetterDomain, DeadLetterStatus, OutboxOperation, RequestStatus, SubjectKey
from effaced.notify.settle import requeue as requeue_deliveries
from effaced.notify.tables import Delivery
from effaced.outbox.read import UNCONFIRMED
from effaced.outbox.requeue import requeue
from effaced.outbox.tables import OutboxRow
from effaced.requests.tables import Request
from effaced.saga.settle_read_back import request_read_back

MOST = 500
REQUEUED = "requeued"
# What is said of a letter that was chosen, by the code that is kept.
SAID = {
    REQUEUED: "is tried again",
    "reissue": "can't be tried again: its corrections are gone; send the correction again",
    "needs_force": "has used up its tries; force it if the cause is mended",
    "not_linked": "has nothing behind it that could be tried again",
    "reference_gone": "can't be tried again: the reference to the person is gone",
    "not_approved": "can't be tried again: its request is not waiting to be executed",
    "failed": "could not be requeued; the log says why",
    "unknown": "does not exist",
}
_ALREADY = "already_"


@dataclass(frozen=True, slots=True)
class RedriveResult:
    """The result for one of the chosen dead letters."""

    dead_letter_id: UUID
    requeued: bool
    code: str

    @property
    def why(self) -> str:
        return describe_outcome(self.code)


def describe_outcome(code: str) -> str:
    """What a retry did with a letter, as the end of a sentence for people."""
    return SAID.get(code) or f"is already {code.removeprefix(_ALREADY)}"


@dataclass(slots=True)
class Pace:
    """The moments at which calls may be made one after the other, so many a second."""

    per_second: float | None
    at: datetime = field(default_factory=clock.now)

    def next(self) -> datetime | None:
        if self.per_second is None:
            return None
        now, self.at = self.at, self.at + timedelta(seconds=1 / self.per_second)
        return now


def redrive(
    session: Session,
    keyring: Keyring,
    ids: Sequence[UUID],
    *,
    actor: str,
    reason: str,
    force: bool = False,
) -> list[RedriveResult]:
    """Retry what these dead letters are about. Those that somebody else took are left alone.

    `force` also takes those whose attempts are used up. Refuses more than 500 at once: for a longer list
    there is `redrive_set`.
    """
    ids = list(dict.fromkeys(ids))
    if not 1 <= len(ids) <= MOST:
        said = "choose at least one" if not ids else f"choose at most {MOST} at once"
        raise Refused(
            f"Requeue: {said}.", problems=[Problem("ids", said, code="too_long" if ids else "empty")]
        )
    note = write_note(session, keyring, reason, author=actor)
    results = replay(session, ids, actor=actor, note=note, force=force)
    requeued = sum(each.requeued for each in results)
    append_one(session, BulkRequeued(chosen=len(ids), requeued=requeued, **note_fields(note)), actor=actor)
    return results


def replay(
    session: Session,
    ids: Sequence[UUID],
    *,
    actor: str,
    note: NoteRef,
    force: bool = False,
    pace: Pace | None = None,
) -> list[RedriveResult]:
    """Take these letters and put what is behind them back to work, each at its moment of the pace."""
    _lock_in_order(session, ids)
    hopeless = _not_retryable(session, ids)
    acquired = acquire_by_person(session, [each for each in ids if each not in hopeless], force=force)
    letters = [_Replayed(acquired[each], pace.next() if pace else None) for each in ids if each in acquired]
    _requeue_external_calls(session, letters, actor, note)
    _read_backs(session, letters, actor, note)
    _requeue_local_executions(session, letters, actor, note)
    _messages(session, letters, actor, note)
    found = statuses(session, ids)
    return [
        RedriveResult(each, each in acquired, hopeless.get(each) or _code(each, acquired, found))
        for each in ids
    ]


@dataclass(frozen=True, slots=True)
class _Replayed:
    """A dead letter that was acquired, and when its work may begin; None means at once."""

    letter: Acquired
    at: datetime | None


def _not_retryable(session: Session, ids: Sequence[UUID]) -> dict[UUID, str]:
    """Dead letters that a retry can't help, and why."""
    found = session.execute(
        select(
            DeadLetter.id,
            DeadLetter.domain,
            DeadLetter.entry_id,
            DeadLetter.status,
            OutboxRow.operation,
            and_(OutboxRow.verification.in_(UNCONFIRMED), OutboxRow.ref_sealed.is_not(None)).label(
                "readable"
            ),
            Request.status.label("request_status"),
        )
        .outerjoin(OutboxRow, OutboxRow.entry_id == DeadLetter.entry_id)
        .outerjoin(Request, Request.id == DeadLetter.request_id)
        .where(key_in(session, DeadLetter.id, ids), DeadLetter.status.in_(OPEN))
    )
    return {row.id: why for row in found if (why := _reason_not_to_retry(row)) is not None}


def _reason_not_to_retry(letter: Row[*tuple[Any, ...]]) -> str | None:
    if letter.domain is DeadLetterDomain.LOCAL_EXECUTION:
        return None if letter.request_status is RequestStatus.APPROVED else "not_approved"
    if letter.entry_id is None:
        return "not_linked"
    if letter.domain is DeadLetterDomain.VERIFICATION:
        return None if letter.readable else "reference_gone"
    # The values went with the end, so trying again would correct nothing.
    return "reissue" if letter.operation is OutboxOperation.RECTIFY else None


def reverify(session: Session, keyring: Keyring, entry_id: UUID, *, actor: str, reason: str) -> str:
    """Have an erasure made once more and read back.

    Returns its resolver. Its dead letter is replayed with it.
    """
    entry = session.execute(
        select(OutboxRow.request_id, OutboxRow.subject_key_id, OutboxRow.subject_hmac)
        .where(OutboxRow.entry_id == entry_id)
        .with_for_update()
    ).first()
    if entry is None:
        raise NotFound("There is no such external call.")
    note = write_note(session, keyring, reason, author=actor, request_id=entry.request_id)
    resolver = request_read_back(session, entry_id)
    if resolver is None:
        raise Conflict("Nothing can be read back here: the reference to the person is gone.")
    letters = session.scalars(
        select(DeadLetter.id).where(
            DeadLetter.entry_id == entry_id, DeadLetter.domain == DeadLetterDomain.VERIFICATION
        )
    ).all()
    acquire_by_person(session, letters, force=True)
    append_one(
        session,
        ReadBackRequested(resolver=resolver, **note_fields(note)),
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
        (Delivery.id, {row.entry_id for row in letters if row.entry_id}),
        (Request.id, {row.request_id for row in letters if row.request_id}),
    ):
        session.execute(select(column).where(column.in_(wanted)).order_by(column).with_for_update())


def _of(letters: Sequence[_Replayed], *domains: DeadLetterDomain) -> list[_Replayed]:
    return [each for each in letters if each.letter.domain in domains]


def _gates(letters: Sequence[_Replayed]) -> dict[UUID, datetime]:
    return {each.letter.entry_id: each.at for each in letters if each.letter.entry_id and each.at}


def _requeue_external_calls(
    session: Session, letters: Sequence[_Replayed], actor: str, note: NoteRef
) -> None:
    mine = _of(letters, DeadLetterDomain.EXTERNAL_CALL, DeadLetterDomain.ATTESTATION)
    ids = [each.letter.entry_id for each in mine if each.letter.entry_id]
    requeue(session, ids, actor=actor, note=note, gates=_gates(mine))


def _read_backs(session: Session, letters: Sequence[_Replayed], actor: str, note: NoteRef) -> None:
    for each in _of(letters, DeadLetterDomain.VERIFICATION):
        resolver = request_read_back(session, each.letter.entry_id, at=each.at)
        if resolver is None:
            continue
        ring_after_commit(session, {resolver})
        request = session.get_one(Request, each.letter.request_id)
        append_one(
            session,
            ReadBackRequested(resolver=resolver, **note_fields(note)),
            actor=actor,
            request_id=request.id,
            entry_id=each.letter.entry_id,
            subject=request.subject,
        )


def _requeue_local_executions(
    session: Session, letters: Sequence[_Replayed], actor: str, note: NoteRef
) -> None:
    for each in _of(letters, DeadLetterDomain.LOCAL_EXECUTION):
        request = session.get_one(Request, each.letter.request_id)
        request.execute_at, request.execute_attempts = each.at or dbtime.now(session), 0
        event = ExecutionRequeued(**note_fields(note))
        append_one(session, event, actor=actor, request_id=request.id, subject=request.subject)


def _messages(session: Session, letters: Sequence[_Replayed], actor: str, note: NoteRef) -> None:
    mine = _of(letters, DeadLetterDomain.MESSAGE)
    ids = [each.letter.entry_id for each in mine if each.letter.entry_id]
    for message_id, target in requeue_deliveries(session, ids, _gates(mine)):
        event = MessageRequeued(message_id=message_id, target=target, **note_fields(note))
        append_one(session, event, actor=actor)


def _code(each: UUID, acquired: Mapping[UUID, object], found: Mapping[UUID, DeadLetterStatus]) -> str:
    if each in acquired:
        return REQUEUED
    if each not in found:
        return "unknown"
    status = found[each]
    return "needs_force" if status in (PENDING, REQUIRES_REVIEW) else f"{_ALREADY}{status.value}"
