"""The trail, notes and exports. Triggers refuse UPDATE and DELETE of events; see the migrations."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, LargeBinary, String, text
from sqlalchemy.orm import Mapped, mapped_column

from effaced.core.db import APPEND_ONLY, CHANGEABLE, Base, Json, UtcDateTime, Word
from effaced.model import ExportFormat, ExportStatus

_OPEN = text("status IN ('pending', 'running')")


class AuditEvent(Base):
    """One thing that happened. Holds ids, words and counts; nothing that names a person.

    A new column is added here, in `append`, and in a migration; the export has every column of the table.
    """

    __tablename__ = "effaced_audit_events"
    __table_args__ = (
        Index("ix_effaced_audit_events_request", "request_id", "id"),
        Index("ix_effaced_audit_events_type", "type", "id"),
        Index("ix_effaced_audit_events_actor", "actor", "id"),
        Index("ix_effaced_audit_events_subject", "subject_hmac", "id"),
        {"info": APPEND_ONLY},
    )

    id: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    type: Mapped[str] = mapped_column(String(64))
    actor: Mapped[str] = mapped_column(String(80))
    request_id: Mapped[UUID | None]
    entry_id: Mapped[UUID | None]
    subject_key_id: Mapped[str | None] = mapped_column(String(16))
    subject_hmac: Mapped[str | None] = mapped_column(String(64))
    payload: Mapped[dict[str, Any]] = mapped_column(Json)


class Note(Base):
    """What a person typed. Sealed, and erasable; the trail holds its id and keyed hash."""

    __tablename__ = "effaced_notes"
    __table_args__ = (
        Index("ix_effaced_notes_request", "request_id", "at"),
        Index("ix_effaced_notes_dead_letter", "dead_letter_id", "at"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    request_id: Mapped[UUID | None]
    dead_letter_id: Mapped[UUID | None]
    author: Mapped[str] = mapped_column(String(80))
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    text_sealed: Mapped[bytes | None] = mapped_column(LargeBinary)


class AuditExport(Base):
    """An export of the trail that an API key has asked for: a job, and then a file in chunks.

    `gate` is the earliest moment anybody may claim it: the lease while it is made, the backoff after a
    failure. `waiting_since` is when that wait began. `token` only grows: what a process writes counts under
    the token of its claim alone. `total` is how many events the running attempt will write.
    """

    __tablename__ = "effaced_audit_exports"
    __table_args__ = (
        Index("ix_effaced_audit_exports_key", "api_key_id", "id"),
        Index("ix_effaced_audit_exports_open", "gate", "id", postgresql_where=_OPEN, sqlite_where=_OPEN),
        {"info": CHANGEABLE},
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    api_key_id: Mapped[UUID] = mapped_column(ForeignKey("effaced_api_keys.id"))
    own_request_only: Mapped[bool]
    format: Mapped[ExportFormat] = mapped_column(Word(ExportFormat))
    request_id: Mapped[UUID | None]
    type: Mapped[str | None] = mapped_column(String(64))
    actor: Mapped[str | None] = mapped_column(String(80))
    since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    status: Mapped[ExportStatus] = mapped_column(Word(ExportStatus))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    attempts: Mapped[int] = mapped_column(default=0)
    token: Mapped[int] = mapped_column(default=0)
    gate: Mapped[datetime] = mapped_column(UtcDateTime)
    waiting_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    total: Mapped[int | None] = mapped_column(BigInteger)
    events: Mapped[int] = mapped_column(BigInteger, default=0)
    size: Mapped[int] = mapped_column(BigInteger, default=0)
    chunks: Mapped[int] = mapped_column(default=0)
    sha256: Mapped[str | None] = mapped_column(String(64))
    ready_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_error: Mapped[str | None] = mapped_column(String(255))


class AuditExportChunk(Base):
    """A piece of an export's file, sealed. Only those under the export's token belong to it."""

    __tablename__ = "effaced_audit_export_chunks"
    __table_args__ = ({"info": CHANGEABLE},)

    export_id: Mapped[UUID] = mapped_column(ForeignKey("effaced_audit_exports.id"), primary_key=True)
    token: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
