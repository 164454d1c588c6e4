"""Officers say yes."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from effaced.accounts.tables import Officer
from effaced.audit.append import append_one
from effaced.audit.events import RequestApproved
from effaced.audit.notes import write_note
from effaced.core import clock, dbtime
from effaced.core.crypto import Keyring
from effaced.core.errors import NotFound, Refused
from effaced.model import RequestStatus, Role
from effaced.requests.execute import Executor
from effaced.requests.tables import Approval, Request


def approve_and_execute(executor: Executor, request_id: UUID, *, by: UUID, reason: str) -> Request:
    """Give one approval, and have the request executed if it was the last one needed.

    The approval is committed first: should the execution fail, be it at its very commit, the approval
    stands and a dead letter tells of the failure.
    """
    with executor.begin() as session:
        officer = session.get_one(Officer, by)
        request = approve(session, executor.keyring, request_id, by=officer, reason=reason)
    if request.status is RequestStatus.APPROVED:
        executor.execute_now(request_id)
    with executor.begin() as session:
        return session.get_one(Request, request_id)


def approve(session: Session, keyring: Keyring, request_id: UUID, *, by: Officer, reason: str) -> Request:
    """Give one approval. The last one needed makes the request due for execution."""
    request = lock_request(session, request_id)
    request.expect(RequestStatus.REVIEW)
    if by.role is Role.AUDITOR:
        raise Refused("An auditor reads; approving needs an officer.")
    if by.id == request.entered_by:
        raise Refused("Whoever entered a request can't approve it.")
    if session.get(Approval, (request.id, by.id)) is not None:
        raise Refused("You have approved this request already; the next approval is another officer's.")
    actor = f"officer:{by.id}"
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
        ),
        actor=actor,
        request_id=request.id,
        subject=request.subject,
    )
    if given >= request.approvals_needed:
        request.status = RequestStatus.APPROVED
        request.execute_at = dbtime.now(session)
    return request


def lock_request(session: Session, request_id: UUID) -> Request:
    """The request, locked until the transaction ends."""
    # As it is now, not as this session may have read it before somebody else was faster.
    request = session.get(Request, request_id, with_for_update=True, populate_existing=True)
    if request is None:
        raise NotFound("There is no such request.")
    return request
