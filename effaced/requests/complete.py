"""The last external call of a request has succeeded: the request is done."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from effaced import clock
from effaced.model import OutboxOperation, RequestStatus
from effaced.notify.notices import RequestCompleted
from effaced.notify.write import announce
from effaced.requests.tables import Request
from effaced.sql import among


def complete_operations(session: Session, completed: Sequence[tuple[UUID, OutboxOperation]]) -> None:
    """Close these requests, forget whom they were about, and have it told."""
    if not completed:
        return
    now = clock.now()
    ids = {request_id for request_id, _ in completed}
    session.execute(
        select(Request.id).where(among(session, Request.id, ids)).order_by(Request.id).with_for_update()
    )
    closed = session.scalars(
        update(Request)
        .where(among(session, Request.id, ids), Request.status == RequestStatus.RUNNING)
        .values(status=RequestStatus.COMPLETED, completed_at=now, closed_at=now, subject_sealed=None)
        .returning(Request.id),
        execution_options={"synchronize_session": False},
    )
    operations = dict(completed)
    announce(session, [RequestCompleted(request_id=each, operation=operations[each]) for each in closed])
