"""Closing a request that was not executed."""

from __future__ import annotations

from sqlalchemy.orm import Session

from effaced.audit.append import SYSTEM, append_one
from effaced.audit.events import Event
from effaced.core import clock
from effaced.deadletters.record import record_execution_recovery
from effaced.model import RequestKind
from effaced.requests.duplicates import release_duplicates
from effaced.requests.stages import announce_cancelled
from effaced.requests.status import RequestEvent, transition
from effaced.requests.tables import Request


def close_unexecuted(
    session: Session,
    request: Request,
    how: RequestEvent,
    event: Event,
    *,
    resolution: str,
    actor: str = SYSTEM,
) -> None:
    """Cancel or supersede a request that was not executed, and forget who it was about.

    `event` goes into the trail; `resolution` is how the request's dead letter ends, if it has one. Its
    duplicates are released: nobody's request ends because somebody else's was cancelled.
    """
    forgotten = dict.fromkeys(("execute_at", "subject_sealed", "corrections_sealed"))
    transition(session, request, how, by=actor, closed_at=clock.now(), **forgotten)
    append_one(session, event, actor=actor, request_id=request.id, subject=request.subject)
    by = None if actor == SYSTEM else actor
    record_execution_recovery(session, request.id, resolution=resolution, by=by)
    announce_cancelled(session, request)
    if request.kind is RequestKind.ERASURE:
        release_duplicates(session, request)
