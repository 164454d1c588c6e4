"""Messages about the stages of a request's life, written in the transaction of the stage.

A duplicate is never executed itself, and its sender may not learn that another API key has asked for the same
person. So the targets of that key get what they would if nobody else had asked: the stages that
`visible_status` shows. Everybody else gets what happened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from effaced.model import NoticeType, Verification
from effaced.notify.notices import (
    Notice,
    RequestApproved,
    RequestCancelled,
    RequestExecuted,
    RequestReceived,
    RequestVerified,
)
from effaced.notify.write import announce_wanted
from effaced.outbox.tables import OutboxRow
from effaced.requests.duplicates import may_reveal
from effaced.requests.tables import Request

EXECUTION = (NoticeType.REQUEST_APPROVED, NoticeType.REQUEST_EXECUTED)
COMPLETION = (*EXECUTION, NoticeType.REQUEST_VERIFIED)


def announce_received(session: Session, request: Request, original: Request | None) -> None:
    """It was taken in; where no approval is needed, it may be executed as well."""
    received = RequestReceived(request_id=request.id, kind=request.kind, due_at=request.due_at)
    if request.approvals_needed or (original is not None and may_reveal(request, original)):
        announce_wanted(session, [received])
        return
    approved = RequestApproved(request_id=request.id, kind=request.kind)
    if original is None:
        announce_wanted(session, [received, approved])
    else:
        announce_wanted(session, [received])
        announce_wanted(session, [approved], only_sender=True)


def announce_approved(session: Session, request: Request) -> None:
    announce_wanted(session, [RequestApproved(request_id=request.id, kind=request.kind)])


def announce_cancelled(session: Session, request: Request) -> None:
    announce_wanted(session, [RequestCancelled(request_id=request.id, kind=request.kind)])


def announce_executed(
    session: Session, request: Request, wanted: Collection[str], *, has_duplicates: bool
) -> None:
    """It was executed, and so, to their senders, were the duplicates that it answers."""
    if not wanted:
        return
    executed = RequestExecuted(request_id=request.id, kind=request.kind)
    announce_wanted(session, [executed], wanted=wanted)
    if has_duplicates:
        session.flush()
        waiting = select(Request).where(Request.duplicate_of == request.id, Request.closed_at.is_(None))
        _announce_hidden(session, ((each, request) for each in session.scalars(waiting)), wanted)


def announce_before_completion(
    session: Session, duplicates: Collection[UUID], wanted: Collection[str]
) -> None:
    """To their senders, duplicates that came after the original's execution pass through it at the end."""
    if not wanted or not duplicates:
        return
    original = aliased(Request)
    late = session.execute(
        select(Request, original)
        .join(original, original.id == Request.duplicate_of)
        .where(Request.id.in_(duplicates), Request.received_at > original.executed_at)
    )
    _announce_hidden(session, ((each, other) for each, other in late), wanted)


def announce_verified(session: Session, closed: Collection[UUID], wanted: Collection[str]) -> None:
    """Of these completed requests, those with calls that were all confirmed by a read-back."""
    if NoticeType.REQUEST_VERIFIED not in wanted or not closed:
        return
    confirmed = func.count().filter(OutboxRow.verification == Verification.CONFIRMED)
    found = session.execute(
        select(Request.id, Request.kind, func.count())
        .join(OutboxRow, OutboxRow.request_id == Request.id)
        .where(Request.id.in_(closed))
        .group_by(Request.id, Request.kind)
        .having(func.count() == confirmed)
    )
    notices = [RequestVerified(request_id=each, kind=kind, calls=calls) for each, kind, calls in found]
    announce_wanted(session, notices, wanted=wanted)


def _announce_hidden(
    session: Session, duplicates: Iterable[tuple[Request, Request]], wanted: Collection[str]
) -> None:
    notices: list[Notice] = []
    for duplicate, original in duplicates:
        if duplicate.api_key_id is None or may_reveal(duplicate, original):
            continue
        if duplicate.approvals_needed:
            notices.append(RequestApproved(request_id=duplicate.id, kind=duplicate.kind))
        notices.append(RequestExecuted(request_id=duplicate.id, kind=duplicate.kind))
    announce_wanted(session, notices, wanted=wanted, only_sender=True)
