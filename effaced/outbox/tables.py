"""The outbox: one row per external call, and one counter per request and operation."""

from __future__ import annotations

from datetime import datetime
from typing import cast
from uuid import UUID

from sqlalchemy import Index, LargeBinary, String, Table, false, text
from sqlalchemy.orm import Mapped, mapped_column

from effaced.core.db import Base, Json, UtcDateTime, Word
from effaced.model import OutboxOperation, OutboxStatus, StepOutcome, Verification

_FRESH = text("status = 'pending' AND gate IS NULL AND waits_for IS NULL")
_GATED = text("status IN ('pending', 'failed', 'scheduled') AND gate IS NOT NULL")
_LEASED = text("status = 'in_flight'")
_VERIFIED = text("verification IS NOT NULL")
_CORRECTING = text("operation = 'rectify' AND status <> 'succeeded'")
_UNVERIFIED = text("verify_due_at IS NOT NULL")
# Without those in flight, of which there are few: a claim needs no entry in a further index.
_WAITING = text("waiting_since IS NOT NULL AND status <> 'in_flight'")
_STANDING_OUT = text("unverified > 0")


class OutboxRow(Base):
    """One external call.

    `gate` is the earliest moment anybody may claim the row: null for at once, the lease while in flight, the
    backoff while failed, the vendor's horizon while scheduled. `token` only grows: a settle counts while the
    row is in flight under the token of its claim. `aging_since` is when the time began in which the call must
    come to an end: at the enqueue, at a requeue, at the horizon of a parked one, when nothing is left to wait
    for. `idle_since` is when the last attempt since then ended; null before the first. `waiting_since` is
    when the wait began that ends at `gate` or `verify_due_at`; null where there is none, or where somebody
    else has named the date. So a wait keeps its length when the clock is set back.

    `claimed_alone` says that nothing else ran in the process of the claim, so that its death counts in
    `crashes`. `returned_at` is when a call returned whose result could not be written down yet. While
    `verifying` is set a read-back is under way, and `verify_due_at` is its lease.

    `fields` are the names of what a rectification corrects; the values are sealed and go at the end.
    `waits_for` names the resolvers of the same request and operation that have to succeed first, and
    `unblocks` says that others wait for this one.
    """

    __tablename__ = "effaced_outbox"
    __table_args__ = (
        Index(
            "ix_effaced_outbox_fresh", "resolver", "enqueued_at", "entry_id",
            postgresql_where=_FRESH, sqlite_where=_FRESH,
        ),
        Index("ix_effaced_outbox_gated", "resolver", "gate", postgresql_where=_GATED, sqlite_where=_GATED),
        Index("ix_effaced_outbox_leased", "resolver", "gate", postgresql_where=_LEASED, sqlite_where=_LEASED),
        Index(
            "ix_effaced_outbox_unverified", "resolver", "verify_due_at",
            postgresql_where=_UNVERIFIED, sqlite_where=_UNVERIFIED,
        ),
        Index(
            "ix_effaced_outbox_verification", "verification", "entry_id",
            postgresql_where=_VERIFIED, sqlite_where=_VERIFIED,
        ),
        Index(
            "ix_effaced_outbox_corrections", "subject_hmac", "resolver",
            postgresql_where=_CORRECTING, sqlite_where=_CORRECTING,
        ),
        Index(
            "ix_effaced_outbox_waiting", "waiting_since", postgresql_where=_WAITING, sqlite_where=_WAITING
        ),
        Index("ix_effaced_outbox_request", "request_id", "entry_id"),
        Index("ix_effaced_outbox_status", "status", "gate", "entry_id"),
    )  # fmt: skip

    entry_id: Mapped[UUID] = mapped_column(primary_key=True)
    request_id: Mapped[UUID]
    operation: Mapped[OutboxOperation] = mapped_column(Word(OutboxOperation))
    resolver: Mapped[str] = mapped_column(String(255))
    subject_key_id: Mapped[str] = mapped_column(String(16))
    subject_hmac: Mapped[str] = mapped_column(String(64))
    ref_kind: Mapped[str] = mapped_column(String(64))
    ref_sealed: Mapped[bytes | None] = mapped_column(LargeBinary)
    status: Mapped[OutboxStatus] = mapped_column(Word(OutboxStatus))
    attempts: Mapped[int] = mapped_column(default=0)
    token: Mapped[int] = mapped_column(default=0)
    claimed_alone: Mapped[bool] = mapped_column(default=False)
    crashes: Mapped[int] = mapped_column(default=0)
    returned_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    gate: Mapped[datetime | None] = mapped_column(UtcDateTime)
    enqueued_at: Mapped[datetime] = mapped_column(UtcDateTime)
    aging_since: Mapped[datetime] = mapped_column(UtcDateTime)
    idle_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_attempt_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_error: Mapped[str | None] = mapped_column(String(255))
    times_parked: Mapped[int] = mapped_column(default=0)
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    outcome: Mapped[StepOutcome | None] = mapped_column(Word(StepOutcome))
    retained_basis: Mapped[str | None] = mapped_column(String(64))
    verification: Mapped[Verification | None] = mapped_column(Word(Verification))
    verified_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    verify_due_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    verifying: Mapped[bool] = mapped_column(default=False, server_default=false())
    waiting_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    corrections_sealed: Mapped[bytes | None] = mapped_column(LargeBinary)
    fields: Mapped[list[str] | None] = mapped_column(Json)
    waits_for: Mapped[list[str] | None] = mapped_column(Json)
    unblocks: Mapped[bool] = mapped_column(default=False, server_default=false())


# Claiming and settling speak to the table itself: a mapped object per row is more than the row is worth.
outbox = cast(Table, OutboxRow.__table__)


class Operation(Base):
    """How far the calls of one request and operation have come.

    `remaining` have not succeeded yet. `unverified` have, but their read-back is due, was given up or says
    that the data is still there. The operation is closed when both are zero.
    """

    __tablename__ = "effaced_operations"
    __table_args__ = (
        Index(
            "ix_effaced_operations_unverified", "request_id",
            postgresql_where=_STANDING_OUT, sqlite_where=_STANDING_OUT,
        ),
    )  # fmt: skip

    request_id: Mapped[UUID] = mapped_column(primary_key=True)
    operation: Mapped[OutboxOperation] = mapped_column(Word(OutboxOperation), primary_key=True)
    total: Mapped[int]
    remaining: Mapped[int]
    unverified: Mapped[int] = mapped_column(default=0, server_default=text("0"))


class Flow(Base):
    """How a resolver may be driven now, for all processes alike. The row named `*` is about all of them.

    While `paused_at` is set nothing of the resolver is claimed, until `paused_until` if that is known.
    `booked_until` is how far the rate limit has been used up: calls are booked when they are claimed.
    """

    __tablename__ = "effaced_flow"

    resolver: Mapped[str] = mapped_column(String(255), primary_key=True)
    paused_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    paused_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    paused_by: Mapped[str | None] = mapped_column(String(80))
    pause_code: Mapped[str | None] = mapped_column(String(64))
    note_id: Mapped[UUID | None]
    booked_until: Mapped[datetime | None] = mapped_column(UtcDateTime)


flow = cast(Table, Flow.__table__)
operations = cast(Table, Operation.__table__)
