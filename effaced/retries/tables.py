"""Every try at an external call, one row each."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from effaced.db import Base, UtcDateTime, Word
from effaced.model import AttemptOutcome, OutboxOperation


class Attempt(Base):
    """What one try came to. The error is a class name, never a message."""

    __tablename__ = "effaced_attempts"
    __table_args__ = (
        Index("ix_effaced_attempts_entry", "entry_id", "id"),
        Index("ix_effaced_attempts_request", "request_id", "id"),
        Index("ix_effaced_attempts_resolver", "resolver", "at"),
    )

    id: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    entry_id: Mapped[UUID]
    request_id: Mapped[UUID]
    number: Mapped[int]
    resolver: Mapped[str] = mapped_column(String(255))
    operation: Mapped[OutboxOperation] = mapped_column(Word(OutboxOperation))
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    outcome: Mapped[AttemptOutcome] = mapped_column(Word(AttemptOutcome))
    status_code: Mapped[int | None]
    latency_ms: Mapped[int]
    error: Mapped[str | None] = mapped_column(String(255))
