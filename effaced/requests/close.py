"""The one way in which a request ends without being executed."""

from __future__ import annotations

from sqlalchemy.orm import Session

from effaced.audit.append import SYSTEM, append_one
from effaced.audit.events import Event
from effaced.core import clock
from effaced.deadletters.record import record_execution_recovery
from effaced.model import RequestKind, RequestStatus
from effaced.requests.duplicates import release_duplicates
from effaced.requests.tables import Request


def close_unexecuted(
    session: Session,
    request: Request,
    status: RequestStatus,
    event: Event,
    *,
    resolution: str,
    actor: str = SYSTEM,
) -> None:
    """Refuse, cancel or supersede a request that was not executed, and forget whom it was about.

    `resolution` is how its dead letter ends, if it has one. Duplicates of it are released: nobody's request
    ends because somebody else's was refused.
    """
    request.status, request.closed_at = status, clock.now()
    request.execute_at = request.subject_sealed = request.corrections_sealed = None
    append_one(session, event, actor=actor, request_id=request.id, subject=request.subject)
    by = None if actor == SYSTEM else actor
    record_execution_recovery(session, request.id, resolution=resolution, by=by)
    if request.kind is RequestKind.ERASURE:
        release_duplicates(session, request)
