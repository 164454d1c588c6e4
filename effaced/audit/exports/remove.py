"""Removing files that are no longer to be had, and exports that nobody asks about any more."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, delete, or_, select, tuple_, update
from sqlalchemy.orm import Session

from effaced.audit.tables import AuditExport, AuditExportChunk
from effaced.core.db import Database, dbtime
from effaced.model import ExportStatus

KEPT = timedelta(days=30)
"""How long an export is shown after it was asked for."""
_ENDED = (ExportStatus.FAILED, ExportStatus.EXPIRED)
# Of a quarter of a megabyte each.
CHUNKS_BATCH = 200
_KEY = tuple_(AuditExportChunk.export_id, AuditExportChunk.token, AuditExportChunk.number)


def remove_export(session: Session, export: AuditExport) -> None:
    """End an export before its time: nobody makes it further, and its file is gone."""
    if export.status not in _ENDED:
        export.status = ExportStatus.EXPIRED
        export.expires_at = dbtime.now(session)
        export.waiting_since = None
    session.flush()
    session.execute(delete(AuditExportChunk).where(AuditExportChunk.export_id == export.id))


def delete_superseded(database: Database, export_id: UUID, token: int) -> int:
    """Delete a batch of what earlier attempts have left. Returns how many chunks."""
    with database.begin() as session:
        return _delete(session, (AuditExportChunk.export_id == export_id) & (AuditExportChunk.token < token))


def delete_old_exports(session: Session) -> int:
    """Delete a batch of the chunks that belong to no file, and exports long over. Returns how many chunks."""
    now = dbtime.now(session)
    over = (AuditExport.status == ExportStatus.READY) & (AuditExport.expires_at <= now)
    session.execute(
        update(AuditExport)
        .where(over)
        .values(status=ExportStatus.EXPIRED)
        .execution_options(synchronize_session=False)
    )
    of_ended = (
        select(AuditExport.id)
        .where(
            AuditExport.id == AuditExportChunk.export_id,
            or_(AuditExport.status.in_(_ENDED), AuditExport.token > AuditExportChunk.token),
        )
        .exists()
    )
    deleted = _delete(session, of_ended)
    has_chunks = select(AuditExportChunk.number).where(AuditExportChunk.export_id == AuditExport.id).exists()
    session.execute(
        delete(AuditExport)
        .where(AuditExport.status.in_(_ENDED), AuditExport.created_at <= now - KEPT, ~has_chunks)
        .execution_options(synchronize_session=False)
    )
    return deleted


def _delete(session: Session, which: ColumnElement[bool]) -> int:
    keys = [tuple(each) for each in session.execute(select(*_KEY.clauses).where(which).limit(CHUNKS_BATCH))]
    if keys:
        session.execute(
            delete(AuditExportChunk).where(_KEY.in_(keys)).execution_options(synchronize_session=False)
        )
    return len(keys)
