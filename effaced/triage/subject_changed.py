"""Deciding about an execution that stopped because the row under the key may be somebody else's."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced.audit.append import SYSTEM, append_one
from effaced.audit.events import RequestCancelled, SubjectConfirmed
from effaced.audit.notes import note_fields, write_note
from effaced.core.crypto import Keyring
from effaced.core.errors import Conflict, NotFound, Problem
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.subject import find_subject
from effaced.deadletters.rules import CANCELLED, OPEN, SUBJECT_CHANGED
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, DeadLetterStatus
from effaced.requests.close import close_unexecuted
from effaced.requests.identity import confirm_row
from effaced.requests.status import RequestEvent, check_transition
from effaced.requests.subject import unseal_subject
from effaced.requests.tables import Request
from effaced.triage.retry import replay


def awaits_decision(domain: DeadLetterDomain, code: str, status: DeadLetterStatus) -> bool:
    """Whether a dead letter is about this, and a person still has to decide."""
    return domain is DeadLetterDomain.LOCAL_EXECUTION and code == SUBJECT_CHANGED and status in OPEN


def confirm_subject(
    session: Session, keyring: Keyring, plan: ErasurePlan, letter_id: UUID, *, actor: str, reason: str
) -> Request:
    """Confirm that the row, as it is now, is the person's, and have the request executed.

    If the row changes once more before that, execution stops again.
    """
    request = _lock_undecided(session, letter_id)
    note = write_note(session, keyring, reason, author=actor, request_id=request.id)
    sealed = unseal_subject(keyring, request)
    subject = (
        find_subject(session, plan.for_people(request.subject_type), sealed.subject_id) if sealed else None
    )
    if subject is not None:
        confirm_row(session, keyring, request.id, subject, by=request.id)
    event = SubjectConfirmed(**note_fields(note))
    append_one(session, event, actor=actor, request_id=request.id, subject=request.subject)
    replay(session, [letter_id], actor=actor, note=note, force=True)
    return request


def cancel_for_changed_subject(
    session: Session, keyring: Keyring, letter_id: UUID, *, actor: str, reason: str
) -> Request:
    """Cancel the request: the row is somebody else's. Nothing is erased, here or at any system."""
    request = _lock_undecided(session, letter_id)
    note = write_note(session, keyring, reason, author=actor, request_id=request.id)
    event = RequestCancelled(**note_fields(note))
    close_unexecuted(session, request, RequestEvent.CANCELLED, event, resolution=CANCELLED, actor=actor)
    return request


def _lock_undecided(session: Session, letter_id: UUID) -> Request:
    """The letter's request, both locked. Raises Conflict if there is nothing left to decide."""
    about = session.execute(select(DeadLetter.request_id).where(DeadLetter.id == letter_id)).first()
    if about is None:
        raise NotFound("There is no such dead letter.")
    # Requests before dead letters: the order that everybody keeps.
    request = session.get(Request, about.request_id, with_for_update=True, populate_existing=True)
    letter = session.get_one(DeadLetter, letter_id, with_for_update=True, populate_existing=True)
    if request is None or not awaits_decision(letter.domain, letter.error_code, letter.status):
        raise Conflict(
            "This dead letter does not ask whether the row is still the person's.",
            problems=[Problem("code", f"is not an open {SUBJECT_CHANGED}", code="nothing_to_decide")],
        )
    check_transition(request, RequestEvent.EXECUTED, by=SYSTEM)
    return request
