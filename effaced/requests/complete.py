"""The last external call of a request has succeeded: the request is done."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from effaced import clock
from effaced.model import OutboxOperation, RequestStatus
from effaced.requests.tables import Request
from effaced.sql import among


def complete_operations(session: Session, completed: Sequence[tuple[UUID, OutboxOperation]]) -> None:
    """Close these requests, and forget whom they were about."""
    if not completed:
        return
    now = clock.now()
    ids = {request_id for request_id, _ in completed}
    session.execute(
        select(Request.id).where(among(session, Request.id, ids)).order_by(Request.id).with_for_update()
    )
    session.execute(
        update(Request)
        .where(among(session, Request.id, ids), Request.status == RequestStatus.RUNNING)
        .values(status=RequestStatus.COMPLETED, completed_at=now, closed_at=now, subject_sealed=None),
        execution_options={"synchronize_session": False},
    )
