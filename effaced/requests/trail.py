"""What an API key sees of the trail: of its own requests, nothing of what other keys have asked."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced.audit.events import (
    DuplicateCompleted,
    DuplicateReleased,
    RectificationStepFailed,
    RequestDuplicate,
    RequestSuperseded,
)
from effaced.audit.exports.claim import Claimed
from effaced.audit.read import AuditFilter
from effaced.audit.tables import AuditEvent
from effaced.core.errors import NotFound
from effaced.requests.duplicates import may_reveal
from effaced.requests.tables import Request

_DUPLICATE = frozenset(each.type for each in (RequestDuplicate, DuplicateCompleted, DuplicateReleased))
_NAMING = {RequestSuperseded.type: "by", RectificationStepFailed.type: "superseded_by"}


def original_of(session: Session, request: Request) -> Request | None:
    return session.get(Request, request.duplicate_of) if request.duplicate_of else None


def visible_trail(session: Session, request: Request) -> AuditFilter:
    """The events of a request that the key which sent it may see; ids in `unnamed` are to be left out.

    A released duplicate no longer knows whose duplicate it was, so it does not say that it was one.
    """
    original = original_of(session, request)
    own = original is not None and may_reveal(request, original)
    return AuditFilter(
        request_id=request.id,
        without=frozenset() if own else _DUPLICATE,
        repeated_by=f"api_key:{request.api_key_id}",
        unnamed=_of_other_keys(session, request),
    )


def sent_by(session: Session, request_id: UUID, api_key_id: UUID) -> Request | None:
    """The request of this id, if this key has sent it."""
    return session.scalar(select(Request).where(Request.id == request_id, Request.api_key_id == api_key_id))


def exported_trail(session: Session, asked: Claimed) -> AuditFilter:
    """The events of an export. What its key may see is decided here, in the snapshot that they come from.

    When the export was asked for, another key's request may not yet have been there to be left out.
    """
    which = AuditFilter(
        request_id=asked.request_id,
        type=asked.type,
        actor=asked.actor,
        since=asked.since,
        until=asked.until,
    )
    if not asked.own_request_only:
        return which
    request = sent_by(session, asked.request_id, asked.api_key_id) if asked.request_id else None
    if request is None:
        raise NotFound("The request is not there any more.")
    seen = visible_trail(session, request)
    return replace(which, without=seen.without, repeated_by=seen.repeated_by, unnamed=seen.unnamed)


def _of_other_keys(session: Session, request: Request) -> frozenset[str]:
    """The requests that have overtaken this one or its calls and that its key has not sent."""
    events = session.execute(
        select(AuditEvent.type, AuditEvent.payload).where(
            AuditEvent.request_id == request.id, AuditEvent.type.in_(_NAMING)
        )
    )
    named = {name for each, payload in events if (name := payload.get(_NAMING[each]))}
    if not named:
        return frozenset()
    ids = [UUID(name) for name in named]
    own = session.scalars(
        select(Request.id).where(Request.id.in_(ids), Request.api_key_id == request.api_key_id)
    )
    return frozenset(named - {str(each) for each in own})
