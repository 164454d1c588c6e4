"""Exports as those see them who may: their state, and the bytes of their files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from effaced.audit.tables import AuditExport, AuditExportChunk
from effaced.core.crypto import Keyring
from effaced.core.db import Database
from effaced.core.errors import NotFound, Unavailable
from effaced.core.log import get_logger
from effaced.core.paging import PAGE, Page, after_key, decode, page_of
from effaced.model import ExportStatus

FILE_KEPT = timedelta(hours=24)
CHUNK_BYTES = 262_144
_PURPOSE = "audit-export"
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ExportReader:
    """An API key. With `whole_trail` it also sees what other keys have exported of the whole trail."""

    api_key_id: UUID
    whole_trail: bool

    def condition(self) -> ColumnElement[bool]:
        mine = AuditExport.api_key_id == self.api_key_id
        if self.whole_trail:
            return mine | AuditExport.own_request_only.is_(False)
        # Not what it has made while it could read the whole trail.
        return mine & AuditExport.own_request_only.is_(True)


def list_exports(
    session: Session, reader: ExportReader, *, after: str | None = None, limit: int = PAGE
) -> Page[AuditExport]:
    """A page of exports, newest first."""
    query = select(AuditExport).where(reader.condition())
    if after:
        query = query.where(after_key([AuditExport.id], decode(after, UUID), descending=True))
    found = list(session.scalars(query.order_by(AuditExport.id.desc()).limit(limit + 1)))
    return page_of(found, limit, [(each.id,) for each in found])


def find_export(session: Session, reader: ExportReader, name: str, *, lock: bool = False) -> AuditExport:
    """The export of this id; to whoever may not see it, it does not exist."""
    try:
        query = select(AuditExport).where(AuditExport.id == UUID(name), reader.condition())
    except ValueError:
        query = None
    found = None if query is None else session.scalar(query.with_for_update() if lock else query)
    if found is None:
        raise NotFound("There is no export with this id, or not for this API key.")
    return found


def status_of(export: AuditExport, now: datetime) -> ExportStatus:
    """Its status; a file is over when its time has come, whether or not it was tidied up."""
    over = export.expires_at is not None and export.expires_at <= now
    return ExportStatus.EXPIRED if export.status is ExportStatus.READY and over else export.status


def seal_chunk(keyring: Keyring, data: bytes, export_id: UUID, token: int, number: int) -> bytes:
    """A chunk as it is stored. It opens only in its place, so that none can be swapped for another."""
    return keyring.seal(data, purpose=_PURPOSE, context=f"{export_id}:{token}:{number}")


def read_file(database: Database, keyring: Keyring, export: AuditExport) -> Iterator[bytes]:
    """The file of a ready export, a chunk at a time. No transaction stays open while it is sent.

    Breaks off if the file is deleted meanwhile, or is not what was stored.
    """
    for number in range(export.chunks):
        with database.look() as session:
            sealed = session.scalar(
                select(AuditExportChunk.sealed).where(
                    AuditExportChunk.export_id == export.id,
                    AuditExportChunk.token == export.token,
                    AuditExportChunk.number == number,
                )
            )
        if sealed is None:
            _log.warning("export_file_gone", export=str(export.id), chunk=number)
            raise Unavailable("The file was deleted while it was being sent.")
        yield keyring.open(sealed, purpose=_PURPOSE, context=f"{export.id}:{export.token}:{number}")
