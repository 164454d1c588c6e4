"""Approvals: who may give one, and what the last one does."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from effaced.accounts.tables import Officer
from effaced.audit.append import append_one
from effaced.audit.events import RequestApproved
from effaced.audit.notes import write_note
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.db import dbtime
from effaced.core.errors import NotFound, Refused
from effaced.model import RequestStatus, Role
from effaced.requests.execute import Executor
from effaced.requests.stages import announce_approved
from effaced.requests.status import RequestEvent, check_transition, transition
from effaced.requests.tables import Approval, Request


def approve_and_execute(executor: Executor, request_id: UUID, *, by: UUID, reason: str) -> Request:
    """Give one approval, and have the request executed if it was the last one needed.

    The approval is committed first: should the execution fail, be it at its very commit, the approval
    stands and a dead letter records the failure.
    """
    with executor.begin() as session:
        officer = session.get_one(Officer, by)
        request = approve(session, executor.keyring, request_id, by=officer, reason=reason)
    if request.status is RequestStatus.APPROVED:
        executor.execute_now(request_id)
    with executor.begin() as session:
        return session.get_one(Request, request_id)


def approve(
    session: Session,
    keyring: Keyring,
    request_id: UUID,
    *,
    by: Officer,
    reason: str,
    through: UUID | None = None,
) -> Request:
    """Give one approval. The last one needed makes the request due for execution.

    `through` is the API key that speaks for the officer, if one does.
    """
    request = lock_request(session, request_id)
    actor = f"officer:{by.id}"
    check_transition(request, RequestEvent.APPROVED, by=actor)
    already = {by.id} if session.get(Approval, (request.id, by.id)) is not None else set[UUID]()
    if reason_against := why_not_approve(request, by.id, by.role, already):
        raise Refused(reason_against)
    note = write_note(session, keyring, reason, author=actor, request_id=request.id)
    session.add(Approval(request_id=request.id, officer_id=by.id, at=clock.now(), note_id=note.note_id))
    session.flush()
    given = session.scalar(select(func.count()).where(Approval.request_id == request.id)) or 0
    append_one(
        session,
        RequestApproved(
            approvals_given=given,
            approvals_needed=request.approvals_needed,
            note_id=note.note_id,
            note_hmac=note.note_hmac,
            api_key_id=through,
        ),
        actor=actor,
        request_id=request.id,
        subject=request.subject,
    )
    if given >= request.approvals_needed:
        now = dbtime.now(session)
        transition(session, request, RequestEvent.APPROVED, by=actor, execute_at=now)
        announce_approved(session, request)
    return request


def why_not_approve(request: Request, officer: UUID, role: Role, approved_by: Collection[UUID]) -> str | None:
    """Why this officer may not approve the request, as a sentence to them; None if they may.

    API, CLI and console all ask this. Whether the request waits for approvals at all is for the status table.
    """
    if role is Role.AUDITOR:
        return "Your role reads everything and changes nothing."
    if officer == request.entered_by:
        return "You entered this request, so another officer has to approve it."
    if officer in approved_by:
        return "You have approved this request. The next approval has to come from another officer."
    return None


def lock_request(session: Session, request_id: UUID) -> Request:
    """Read the request and lock it until the transaction ends."""
    # As it is now, not as this session may have read it before somebody else was faster.
    request = session.get(Request, request_id, with_for_update=True, populate_existing=True)
    if request is None:
        raise NotFound("There is no such request.")
    return request
