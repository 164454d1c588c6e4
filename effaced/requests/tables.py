"""Subject requests and what belongs to them."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ForeignKey, Index, LargeBinary, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from effaced.accounts.tables import ApiKey, Officer
from effaced.core.db import Base, Json, UtcDateTime, Word
from effaced.model import RequestKind, RequestStatus, SubjectKey

_UNEXECUTED_ERASURE = text(
    "kind = 'erasure' AND executed_at IS NULL AND closed_at IS NULL AND duplicate_of IS NULL"
)
_DUPLICATE = text("duplicate_of IS NOT NULL")
_OPEN = text("closed_at IS NULL")
_EXECUTABLE = text("status = 'approved' AND execute_at IS NOT NULL")


class Request(Base):
    """What one person asked for, and its status."""

    __tablename__ = "effaced_requests"
    __table_args__ = (
        # One erasure per person waits to be executed; further ones are its duplicates.
        Index(
            "uq_effaced_requests_unexecuted_erasure", "subject_hmac", unique=True,
            postgresql_where=_UNEXECUTED_ERASURE, sqlite_where=_UNEXECUTED_ERASURE,
        ),
        Index(
            "ix_effaced_requests_duplicate_of", "duplicate_of",
            postgresql_where=_DUPLICATE, sqlite_where=_DUPLICATE,
        ),
        Index("ix_effaced_requests_open_due", "due_at", "id", postgresql_where=_OPEN, sqlite_where=_OPEN),
        Index("ix_effaced_requests_due", "due_at", "id"),
        Index("ix_effaced_requests_status", "status", "due_at", "id"),
        Index(
            "ix_effaced_requests_executable", "execute_at",
            postgresql_where=_EXECUTABLE, sqlite_where=_EXECUTABLE,
        ),
        Index("ix_effaced_requests_subject", "subject_hmac"),
        Index("ix_effaced_requests_received", "received_at"),
        Index("ix_effaced_requests_completed", "completed_at"),
        Index("ix_effaced_requests_sender", "api_key_id", "due_at", "id"),
    )  # fmt: skip

    id: Mapped[UUID] = mapped_column(primary_key=True)
    ref: Mapped[str] = mapped_column(String(16), unique=True)
    kind: Mapped[RequestKind] = mapped_column(Word(RequestKind))
    status: Mapped[RequestStatus] = mapped_column(Word(RequestStatus))
    api_key_id: Mapped[UUID | None] = mapped_column(ForeignKey(ApiKey.__table__.c.id))
    entered_by: Mapped[UUID | None] = mapped_column(ForeignKey(Officer.__table__.c.id))
    """The officer who entered it, or in whose name its API key acts."""
    duplicate_of: Mapped[UUID | None]
    """The open erasure of the same person that this one ends with. Never shown to another API key."""
    subject_type: Mapped[str | None] = mapped_column(String(64))
    """Which of the map's kinds of people; None for the first."""
    subject_key_id: Mapped[str] = mapped_column(String(16))
    subject_hmac: Mapped[str] = mapped_column(String(64))
    subject_sealed: Mapped[bytes | None] = mapped_column(LargeBinary)
    corrections_sealed: Mapped[bytes | None] = mapped_column(LargeBinary)
    correction_fields: Mapped[list[str] | None] = mapped_column(Json)
    datamap_hash: Mapped[str] = mapped_column(String(64))
    approvals_needed: Mapped[int]
    metadata_values: Mapped[dict[str, str] | None] = mapped_column("metadata", Json)
    """What its API key has attached, by the names that it declares. Erased when the request is closed."""
    received_at: Mapped[datetime] = mapped_column(UtcDateTime)
    due_at: Mapped[datetime] = mapped_column(UtcDateTime)
    execute_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    execute_attempts: Mapped[int] = mapped_column(default=0)
    batch_counts: Mapped[dict[str, list[int]] | None] = mapped_column("worked_off", Json)
    """Of a person with very many rows: per table, the rows changed before the execution itself, and all."""
    executed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    completed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    closed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    @property
    def subject(self) -> SubjectKey:
        return SubjectKey(self.subject_key_id, self.subject_hmac)


class Identifier(Base):
    """An identifier by which a request can be found, as a keyed hash."""

    __tablename__ = "effaced_identifiers"
    __table_args__ = (Index("ix_effaced_identifiers_lookup", "hmac", "kind"),)

    request_id: Mapped[UUID] = mapped_column(ForeignKey("effaced_requests.id"), primary_key=True)
    kind: Mapped[str] = mapped_column(String(64), primary_key=True)
    key_id: Mapped[str] = mapped_column(String(16), primary_key=True)
    hmac: Mapped[str] = mapped_column(String(64))


class Approval(Base):
    """One officer's approval."""

    __tablename__ = "effaced_approvals"

    request_id: Mapped[UUID] = mapped_column(ForeignKey("effaced_requests.id"), primary_key=True)
    officer_id: Mapped[UUID] = mapped_column(ForeignKey(Officer.__table__.c.id), primary_key=True)
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    note_id: Mapped[UUID | None]


class IdempotentAnswer(Base):
    """The answer to an Idempotency-Key, to be replayed."""

    __tablename__ = "effaced_idempotency"

    api_key_id: Mapped[UUID] = mapped_column(ForeignKey(ApiKey.__table__.c.id), primary_key=True)
    key_hmac: Mapped[str] = mapped_column(String(64), primary_key=True)
    body_hmac: Mapped[str] = mapped_column(String(64))
    status_code: Mapped[int]
    answer: Mapped[dict[str, Any]] = mapped_column(Json)
    headers: Mapped[dict[str, str] | None] = mapped_column(Json)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class SandboxRequest(Base):
    """What a sandbox key has tried out. It is in no list but its key's, and nothing ever executes it.

    The person is not kept, in no form. `answer` is the request as its key sees it.
    """

    __tablename__ = "effaced_sandbox_requests"
    __table_args__ = (Index("ix_effaced_sandbox_requests_key", "api_key_id", "id"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    ref: Mapped[str] = mapped_column(String(16), unique=True)
    api_key_id: Mapped[UUID] = mapped_column(ForeignKey(ApiKey.__table__.c.id))
    answer: Mapped[dict[str, Any]] = mapped_column(Json)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class Retention(Base):
    """What an erasure has left in one table under `retain`, for as long as something of it is there."""

    __tablename__ = "effaced_retentions"
    __table_args__ = (
        UniqueConstraint("request_id", "table_name"),
        Index(
            "ix_effaced_retentions_due", "first_due", "id", postgresql_where=_OPEN, sqlite_where=_OPEN
        ),
        Index("ix_effaced_retentions_looked", "looked_at", postgresql_where=_OPEN, sqlite_where=_OPEN),
    )  # fmt: skip

    id: Mapped[UUID] = mapped_column(primary_key=True)
    request_id: Mapped[UUID] = mapped_column(ForeignKey("effaced_requests.id"))
    table_name: Mapped[str] = mapped_column(String(255))
    subject_sealed: Mapped[bytes | None] = mapped_column(LargeBinary)
    datamap_hash: Mapped[str] = mapped_column(String(64))
    rows: Mapped[int]
    undated: Mapped[int]
    first_due: Mapped[date | None]
    error: Mapped[str | None] = mapped_column(String(255))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    looked_at: Mapped[datetime] = mapped_column(UtcDateTime)
    closed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class RetentionEnding(Base):
    """The end of a person's retentions that is more than one transaction, while it lasts.

    After `go_on_at` any process may continue it in the name of who began it; each transaction moves it ahead.
    """

    __tablename__ = "effaced_retention_endings"
    __table_args__ = (Index("ix_effaced_retention_endings_go_on_at", "go_on_at"),)

    request_id: Mapped[UUID] = mapped_column(ForeignKey("effaced_requests.id"), primary_key=True)
    actor: Mapped[str] = mapped_column(String(80))
    note_id: Mapped[UUID | None]
    note_hmac: Mapped[str | None] = mapped_column(String(64))
    rows: Mapped[int]
    of: Mapped[int]
    go_on_at: Mapped[datetime] = mapped_column(UtcDateTime)
