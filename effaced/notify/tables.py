"""Messages, their deliveries, and every attempt at one."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from effaced.core.db import Base, Json, UtcDateTime, Word
from effaced.model import DeliveryStatus, NoticeType

_WAITING = text("fanned_out_at IS NULL")
_PENDING = text("status = 'pending'")
_DELAYED = text("waiting_since IS NOT NULL AND status = 'pending'")


class Message(Base):
    """A message to be delivered, written in the transaction of the change it reports.

    Until `fanned_out_at` nobody has been found to tell it to. Holds ids, words and counts; no person.
    """

    __tablename__ = "effaced_messages"
    __table_args__ = (
        Index(
            "ix_effaced_messages_waiting",
            "created_at",
            "id",
            postgresql_where=_WAITING,
            sqlite_where=_WAITING,
        ),
        Index("ix_effaced_messages_created", "created_at"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    type: Mapped[NoticeType] = mapped_column(Word(NoticeType))
    payload: Mapped[dict[str, Any]] = mapped_column(Json)
    request_id: Mapped[UUID | None]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    fanned_out_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Delivery(Base):
    """One message for one target.

    `gate` is the earliest moment anybody may claim it: the lease while an attempt is under way, the backoff
    after one that failed. `token` only grows: a settle counts under the token of its claim alone.
    `aging_since` is when the time began in which it must arrive: at the fan-out, or at a requeue.
    `waiting_since` is when the wait for `gate` began, so that it keeps its length when the clock is set back.
    """

    __tablename__ = "effaced_deliveries"
    __table_args__ = (
        UniqueConstraint("message_id", "target"),
        Index(
            "ix_effaced_deliveries_due", "target", "gate", "id",
            postgresql_where=_PENDING, sqlite_where=_PENDING,
        ),
        Index(
            "ix_effaced_deliveries_waiting", "waiting_since",
            postgresql_where=_DELAYED, sqlite_where=_DELAYED,
        ),
    )  # fmt: skip

    id: Mapped[UUID] = mapped_column(primary_key=True)
    message_id: Mapped[UUID] = mapped_column(ForeignKey("effaced_messages.id"))
    target: Mapped[str] = mapped_column(String(63))
    status: Mapped[DeliveryStatus] = mapped_column(Word(DeliveryStatus))
    attempts: Mapped[int] = mapped_column(default=0)
    token: Mapped[int] = mapped_column(default=0)
    gate: Mapped[datetime] = mapped_column(UtcDateTime)
    waiting_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    aging_since: Mapped[datetime] = mapped_column(UtcDateTime)
    last_error: Mapped[str | None] = mapped_column(String(255))
    status_code: Mapped[int | None]
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class DeliveryAttempt(Base):
    """The result of one attempt. The error is a class name or a code, never a message."""

    __tablename__ = "effaced_delivery_attempts"
    __table_args__ = (Index("ix_effaced_delivery_attempts_delivery", "delivery_id", "id"),)

    id: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    delivery_id: Mapped[UUID] = mapped_column(ForeignKey("effaced_deliveries.id"))
    number: Mapped[int]
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    delivered: Mapped[bool]
    status_code: Mapped[int | None]
    latency_ms: Mapped[int]
    error: Mapped[str | None] = mapped_column(String(255))
