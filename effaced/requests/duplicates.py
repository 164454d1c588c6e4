"""Several erasure requests for one person: which one covers the others, and how those end.

Every submission is a request of its own. While an erasure of the person is open and a new one would change
nothing more, the new one is its duplicate: it is `received`, is never executed itself, and completes in
the transaction that completes the original. If the original ends in any other way, or did not reach what
the duplicate knew of the person, the duplicate is released and needs a review of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    String,
    Table,
    and_,
    bindparam,
    literal_column,
    null,
    or_,
    select,
)
from sqlalchemy.orm import Session, aliased
from sqlalchemy.sql.dml import ReturningUpdate

from effaced.audit.append import SYSTEM, Record, append, append_one
from effaced.audit.events import DuplicateCompleted, DuplicateReleased
from effaced.core.crypto import Keyring
from effaced.core.db import UtcDateTime, is_postgres
from effaced.core.db.pipeline import Pipeline
from effaced.core.db.sql import key_in_bound_ids
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.erase import dry_run
from effaced.datamap.run.subject import Subject
from effaced.model import RequestKind, RequestStatus, SubjectKey, SubjectRef
from effaced.requests.identity import is_same_person, read_recorded
from effaced.requests.lock import LOCK_PERSON, lock_numbers, lock_person
from effaced.requests.status import RequestEvent, transition, transition_many
from effaced.requests.subject import SealedSubject, unseal_subject
from effaced.requests.tables import Request


def find_original(
    session: Session, keyring: Keyring, plan: ErasurePlan, keys: Sequence[SubjectKey], subject: Subject
) -> Request | None:
    """The open erasure that covers a new one of this person; the caller holds the person's lock.

    One that was not executed always does. One that was does only if erasing again would change nothing:
    rows that are there again, a reused key, or a reference that it did not call need an erasure of their
    own. It stays locked, so that it can't complete before its new duplicate is there.
    """
    originals = _open_erasures(keys).where(Request.duplicate_of.is_(None)).order_by(Request.id)
    fresh = originals.execution_options(populate_existing=True)
    unexecuted = session.scalars(fresh.where(Request.executed_at.is_(None))).first()
    if unexecuted is not None:
        return unexecuted
    executed = session.scalars(fresh.where(Request.executed_at.is_not(None)).with_for_update()).all()
    if not executed:
        return None
    latest = max(executed, key=lambda each: each.executed_at or each.received_at)
    sealed = unseal_subject(keyring, latest)
    if sealed is None or not _refs(subject.refs) <= _covered(sealed):
        return None
    changes = any(effect.changed for effect in dry_run(session, plan, subject.subject_id))
    return None if changes else latest


def lock_and_look_for_erasures(session: Session, keys: Sequence[SubjectKey]) -> bool:
    """Lock the person until the transaction ends. Whether an erasure of theirs is open then."""
    hmacs = [each.hmac for each in keys]
    with Pipeline(session) as batch:
        if is_postgres(session):
            batch.run(LOCK_PERSON, lock_numbers(hmacs))
        values = {f"hmac_{place}": hmac for place, hmac in enumerate(hmacs)}
        found = batch.run(_any_open_erasure(len(hmacs)), values)
    return bool(found.rows)


@cache
def _any_open_erasure(keys: int) -> Select[*tuple[Any, ...]]:
    """Finds one open erasure of a person with so many keys."""
    hmacs = [bindparam(f"hmac_{place}", type_=String()) for place in range(keys)]
    return (
        select(literal_column("1"))
        .select_from(Request)
        .where(
            or_(*(Request.subject_hmac == hmac for hmac in hmacs)),
            Request.kind == literal_column("'erasure'"),
            Request.closed_at.is_(None),
        )
        .limit(1)
    )


def may_reveal(request: Request, other: Request) -> bool:
    """Whether the sender of the request may learn of the other one: both came with the same API key."""
    return request.api_key_id is not None and request.api_key_id == other.api_key_id


def visible_status(request: Request, original: Request | None) -> RequestStatus:
    """The status of a request as its API key may see it.

    A duplicate of another key's request shows what it would if nobody else had asked.
    """
    if request.status is not RequestStatus.RECEIVED or original is None or may_reveal(request, original):
        return request.status
    if original.executed_at is not None and original.executed_at >= request.received_at:
        return RequestStatus.RUNNING
    return RequestStatus.REVIEW if request.approvals_needed else RequestStatus.APPROVED


def visible_status_sql(status: RequestStatus) -> ColumnElement[bool]:
    """Whether `visible_status` is this, of `Request` in a query of requests that one API key has sent.

    Not as one CASE that is compared: PostgreSQL would take that to fit next to nothing, and sort everything.
    """
    original = aliased(Request)
    covering = select(original.id).where(
        original.id == Request.duplicate_of,
        or_(original.api_key_id.is_(None), original.api_key_id != Request.api_key_id),
    )
    hidden = and_(Request.status == RequestStatus.RECEIVED, covering.exists())
    executed = covering.where(original.executed_at >= Request.received_at).exists()
    shown_instead = {
        RequestStatus.RUNNING: executed,
        RequestStatus.REVIEW: and_(Request.approvals_needed > 0, ~executed),
        RequestStatus.APPROVED: and_(Request.approvals_needed == 0, ~executed),
    }
    if status is RequestStatus.RECEIVED:
        return and_(Request.status == status, ~covering.exists())
    if status in shown_instead:
        return or_(Request.status == status, and_(hidden, shown_instead[status]))
    return Request.status == status


def originals_of(session: Session, requests: Iterable[Request]) -> dict[UUID, Request]:
    """By the ids of these requests, the ones that they are duplicates of."""
    wanted = {each.id: each.duplicate_of for each in requests if each.duplicate_of is not None}
    if not wanted:
        return {}
    found = session.scalars(select(Request).where(Request.id.in_(set(wanted.values()))))
    by_id = {each.id: each for each in found}
    return {each: by_id[original] for each, original in wanted.items() if original in by_id}


@dataclass(frozen=True, slots=True)
class Reached:
    """What an executed erasure covers: the row it found, and the references that systems are called with.

    `kinds` are the kinds of reference that any system goes by; others make no difference.
    """

    subject: Subject | None
    refs: frozenset[SubjectRef]
    kinds: frozenset[str]


def release_unreached(
    session: Session, keyring: Keyring, plan: ErasurePlan, original: Request, reached: Reached
) -> None:
    """Release the duplicates that this execution does not answer, so that none completes by mistake."""
    _release(
        session,
        original,
        [
            each
            for each in _duplicates_of(session, original)
            if not _is_reached(session, keyring, plan, each, reached)
        ],
    )


def release_duplicates(session: Session, original: Request) -> None:
    """The original was refused or cancelled: the first duplicate is reviewed, the others wait for that one.

    Every verb that closes a request before its execution calls this, after it has closed it.
    """
    lock_person(session, [original.subject_hmac])
    _release(session, original, _duplicates_of(session, original))


@cache
def completing_statement(postgres: bool) -> ReturningUpdate[*tuple[Any, ...]]:
    """Closes the duplicates of the requests `ids`, as far as those are completed, at the moment `at`."""
    table = cast(Table, Request.__table__)
    original = table.alias("original")
    at = bindparam("at", type_=UtcDateTime())
    # The ids once more, so that PostgreSQL keeps the plan: it would make it anew for each flush.
    completed = select(original.c.id).where(
        key_in_bound_ids(original.c.id, postgres=postgres), original.c.status == RequestStatus.COMPLETED
    )
    return (
        transition_many(RequestEvent.COMPLETED_WITH_ORIGINAL)
        .where(
            key_in_bound_ids(table.c.duplicate_of, postgres=postgres),
            table.c.closed_at.is_(None),
            table.c.duplicate_of.in_(completed),
        )
        .values(completed_at=at, closed_at=at, subject_sealed=null())
        .returning(table.c.id, table.c.subject_key_id, table.c.subject_hmac)
    )


def record_completed_duplicates(session: Session, rows: Iterable[Sequence[Any]]) -> None:
    """Record the end of these duplicates, rows of `completing_statement`, in the trail."""
    event = DuplicateCompleted()
    append(
        session,
        [Record(event, request_id=each, subject=SubjectKey(key_id, hmac)) for each, key_id, hmac in rows],
    )


def _refs(refs: Mapping[str, str]) -> frozenset[SubjectRef]:
    return frozenset(SubjectRef(kind, value) for kind, value in refs.items())


def _covered(sealed: SealedSubject) -> frozenset[SubjectRef]:
    """The references that an executed erasure covers: those it calls, and those it knew that no system uses.

    None if its calls were not recorded: earlier versions did not always call what they knew.
    """
    return frozenset() if sealed.called is None else sealed.called | _refs(sealed.refs)


def _open_erasures(keys: Sequence[SubjectKey]) -> Select[Request]:
    return select(Request).where(
        Request.subject_hmac.in_([each.hmac for each in keys]),
        Request.kind == RequestKind.ERASURE,
        Request.closed_at.is_(None),
    )


def _duplicates_of(session: Session, original: Request) -> list[Request]:
    found = session.scalars(
        select(Request)
        .where(Request.duplicate_of == original.id, Request.closed_at.is_(None))
        .order_by(Request.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    return sorted(found, key=lambda each: each.received_at)


def _is_reached(
    session: Session, keyring: Keyring, plan: ErasurePlan, duplicate: Request, reached: Reached
) -> bool:
    sealed = unseal_subject(keyring, duplicate)
    if sealed is None:
        return False
    known = {each for each in _refs(sealed.refs) if each.kind in reached.kinds}
    if not known <= reached.refs:
        return False
    recorded = read_recorded(session, duplicate.id, sealed.refs)
    return reached.subject is None or is_same_person(session, keyring, plan, recorded, reached.subject)


def _release(session: Session, original: Request, duplicates: Sequence[Request]) -> None:
    if not duplicates:
        return
    session.flush()  # only one unexecuted original may be in the database at any moment
    head = session.scalars(
        select(Request).where(
            Request.subject_hmac.in_({each.subject_hmac for each in duplicates}),
            Request.kind == RequestKind.ERASURE,
            Request.executed_at.is_(None),
            Request.closed_at.is_(None),
            Request.duplicate_of.is_(None),
            Request.id != original.id,
        )
    ).first()
    for duplicate in duplicates:
        if head is not None:
            duplicate.duplicate_of = head.id
            continue
        head = duplicate
        needed = max(1, head.approvals_needed)
        transition(
            session, head, RequestEvent.RELEASED, by=SYSTEM, duplicate_of=None, approvals_needed=needed
        )
        append_one(session, DuplicateReleased(), request_id=head.id, subject=head.subject)
    session.flush()
