"""Dead letters, what is left of compressed ones, and bulk redrives.

They hold ids, class names, codes and counts: no messages, no bodies. What people type is in the notes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Float, ForeignKey, Index, String, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, mapped_column

from effaced.core.db import Base, Json, UtcDateTime, Word
from effaced.model import DeadLetterDomain, DeadLetterStatus, RedriveStatus

_ARCHIVED = text("status = 'archived'")
_ACTIVE = text("status = 'active'")
_RUNNING = text("status = 'running'")


class DeadLetter(Base):
    """One thing that failed for good, until a person decides what becomes of it.

    `acquired` counts how often it was taken for another attempt and only grows: whoever took it completes it
    under that number, or not at all. `retry_count` is the budget and may start again.
    """

    __tablename__ = "effaced_dead_letters"
    __table_args__ = (
        UniqueConstraint("entry_id", "domain"),
        Index("ix_effaced_dead_letters_status", "status", "created_at", "id"),
        Index("ix_effaced_dead_letters_created", "created_at", "id"),
        Index("ix_effaced_dead_letters_request", "request_id"),
        Index(
            "ix_effaced_dead_letters_archived", "archived_at", "id",
            postgresql_where=_ARCHIVED, sqlite_where=_ARCHIVED,
        ),
    )  # fmt: skip

    id: Mapped[UUID] = mapped_column(primary_key=True)
    domain: Mapped[DeadLetterDomain] = mapped_column(Word(DeadLetterDomain))
    failure_type: Mapped[str] = mapped_column(String(255))
    error_code: Mapped[str] = mapped_column(String(64), default="")
    entry_id: Mapped[UUID | None]
    request_id: Mapped[UUID | None]
    resolver: Mapped[str | None] = mapped_column(String(255))
    subject_key_id: Mapped[str | None] = mapped_column(String(16))
    subject_hmac: Mapped[str | None] = mapped_column(String(64))
    status: Mapped[DeadLetterStatus] = mapped_column(Word(DeadLetterStatus))
    retry_count: Mapped[int] = mapped_column(default=0)
    max_retries: Mapped[int] = mapped_column(default=2)
    acquired: Mapped[int] = mapped_column(server_default=text("0"))
    recommended_action: Mapped[str] = mapped_column(String(32), default="")
    next_action_hint: Mapped[str] = mapped_column(String(64), server_default="")
    context: Mapped[dict[str, Any]] = mapped_column(Json)
    marks: Mapped[dict[str, Any] | None] = mapped_column("metadata", Json)
    assigned_to: Mapped[UUID | None]
    assigned_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_retry_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    resolved_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    resolved_by: Mapped[str | None] = mapped_column(String(80))
    resolution: Mapped[str] = mapped_column(String(32), default="")
    resolution_note_id: Mapped[UUID | None]
    archived_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class DeadLetterSummary(Base):
    """What is left of archived letters that were compressed: how many of a kind, from when to when."""

    __tablename__ = "effaced_dead_letter_summaries"
    __table_args__ = (
        Index(
            "uq_effaced_dead_letter_summaries_active", "domain", "failure_type", "error_code",
            unique=True, postgresql_where=_ACTIVE, sqlite_where=_ACTIVE,
        ),
    )  # fmt: skip

    id: Mapped[UUID] = mapped_column(primary_key=True)
    domain: Mapped[DeadLetterDomain] = mapped_column(Word(DeadLetterDomain))
    failure_type: Mapped[str] = mapped_column(String(255))
    error_code: Mapped[str] = mapped_column(String(64))
    count: Mapped[int]
    first_seen: Mapped[datetime] = mapped_column(UtcDateTime)
    last_seen: Mapped[datetime] = mapped_column(UtcDateTime)
    status: Mapped[str] = mapped_column(String(32))
    compressed_at: Mapped[datetime] = mapped_column(UtcDateTime)
    stale_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    archived_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Redrive(Base):
    """A retry of a whole set of dead letters, made in steps. `next_at` is when the next one may be called."""

    __tablename__ = "effaced_redrives"
    __table_args__ = (
        Index("ix_effaced_redrives_created", "created_at", "id"),
        Index("ix_effaced_redrives_running", "id", postgresql_where=_RUNNING, sqlite_where=_RUNNING),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    status: Mapped[RedriveStatus] = mapped_column(Word(RedriveStatus))
    filter: Mapped[dict[str, Any]] = mapped_column(Json)
    force: Mapped[bool] = mapped_column(default=False, server_default=false())
    per_second: Mapped[float | None] = mapped_column(Float)
    by: Mapped[str] = mapped_column(String(80))
    note_id: Mapped[UUID]
    note_hmac: Mapped[str] = mapped_column(String(64))
    total: Mapped[int]
    done: Mapped[int] = mapped_column(default=0)
    requeued: Mapped[int] = mapped_column(default=0)
    next_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    ended_by: Mapped[str | None] = mapped_column(String(80))


class RedriveRow(Base):
    """One letter of a redrive: chosen at the start, so that what was confirmed is what is done."""

    __tablename__ = "effaced_redrive_rows"

    redrive_id: Mapped[UUID] = mapped_column(ForeignKey("effaced_redrives.id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    dead_letter_id: Mapped[UUID]
    requeued: Mapped[bool | None]
    why: Mapped[str] = mapped_column(String(32), server_default="")
