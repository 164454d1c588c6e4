"""Asking for an export. It is a row, so that it is made whatever happens to the process that took it in."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from effaced.audit.exports.read import FILE_KEPT
from effaced.audit.read import AuditFilter
from effaced.audit.tables import AuditExport
from effaced.core.db import dbtime
from effaced.core.errors import Conflict, Problem
from effaced.model import ExportFormat, ExportStatus, new_id

MOST_OPEN = 10
"""How many exports of one key are under way or have a file."""


def create_export(
    session: Session, which: AuditFilter, fmt: ExportFormat, *, api_key_id: UUID, own_request_only: bool
) -> AuditExport:
    """Queue an export. The caller holds the API key's lock, or two at once could exceed the limit.

    Refuses more than MOST_OPEN exports of a key.
    """
    now = dbtime.now(session)
    _require_room(session, api_key_id)
    export = AuditExport(
        id=new_id(),
        api_key_id=api_key_id,
        own_request_only=own_request_only,
        format=fmt,
        request_id=which.request_id,
        type=which.type,
        actor=which.actor,
        since=which.since,
        until=which.until,
        status=ExportStatus.PENDING,
        created_at=now,
        gate=now,
    )
    session.add(export)
    session.flush()
    return export


def _require_room(session: Session, api_key_id: UUID) -> None:
    under_way = AuditExport.status.in_((ExportStatus.PENDING, ExportStatus.RUNNING))
    has_file = (AuditExport.status == ExportStatus.READY) & (AuditExport.expires_at > dbtime.now(session))
    counted = select(func.count()).where(AuditExport.api_key_id == api_key_id, or_(under_way, has_file))
    if (session.scalar(counted) or 0) >= MOST_OPEN:
        hours = round(FILE_KEPT.total_seconds() / 3_600)
        said = f"{MOST_OPEN} exports of this API key are under way or can be fetched"
        raise Conflict(
            f"{said}. Delete one that is no longer needed, or wait: a file expires after {hours} hours.",
            problems=[Problem("body", said, code="too_many_exports")],
        )
