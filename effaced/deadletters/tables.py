"""Dead letters. They hold ids, class names and codes: no messages, no bodies."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from effaced.db import Base, Json, UtcDateTime, Word
from effaced.model import DeadLetterDomain, DeadLetterStatus


class DeadLetter(Base):
    """One thing that failed for good, until a person decides what becomes of it."""

    __tablename__ = "effaced_dead_letters"
    __table_args__ = (
        UniqueConstraint("entry_id", "domain"),
        Index("ix_effaced_dead_letters_status", "status", "created_at", "id"),
        Index("ix_effaced_dead_letters_request", "request_id"),
    )

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
    recommended_action: Mapped[str] = mapped_column(String(32), default="")
    context: Mapped[dict[str, Any]] = mapped_column(Json)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_retry_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    resolved_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    resolution: Mapped[str] = mapped_column(String(32), default="")
