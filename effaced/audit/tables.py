"""The trail. Triggers refuse UPDATE and DELETE; see the migrations."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Index, Integer, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from effaced.core.db import APPEND_ONLY, Base, Json, UtcDateTime


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
