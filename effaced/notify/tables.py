"""Messages, their deliveries, and every attempt at one."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from effaced.accounts.tables import ApiKey
from effaced.core.db import Base, Json, UtcDateTime, Word
from effaced.model import DeliveryStatus, NoticeType

REGISTERED = "api:"
_WAITING = text("fanned_out_at IS NULL")
_PENDING = text("status = 'pending'")
_DELAYED = text("waiting_since IS NOT NULL AND status = 'pending'")


class Message(Base):
    """A message to be delivered, written in the transaction of the change it reports.

    Until `fanned_out_at` it has no deliveries. Holds ids, words and counts; no person. `only_sender`: it
    shows a request as the key that sent it may see it, so it is for that key's targets alone.
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
    only_sender: Mapped[bool] = mapped_column(default=False, server_default=false())


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
        Index("ix_effaced_deliveries_target", "target", "id"),
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


class MessageTarget(Base):
    """A webhook that an API key has registered. Address and secrets are sealed.

    It gets messages about the key's own requests; with `all_requests` about everybody's. Until
    `previous_until` messages are signed with the secret before the last rotation as well.
    """

    __tablename__ = "effaced_message_targets"
    __table_args__ = (UniqueConstraint("api_key_id", "name"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    api_key_id: Mapped[UUID] = mapped_column(ForeignKey(ApiKey.__table__.c.id))
    name: Mapped[str] = mapped_column(String(63))
    url_sealed: Mapped[bytes] = mapped_column(LargeBinary)
    secret_sealed: Mapped[bytes] = mapped_column(LargeBinary)
    previous_sealed: Mapped[bytes | None] = mapped_column(LargeBinary)
    previous_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    events: Mapped[list[str]] = mapped_column(Json)
    all_requests: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    disabled_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    @property
    def address(self) -> str:
        """By what its deliveries and subscriptions name it; no target of notify.yaml can be named so."""
        return f"{REGISTERED}{self.id}"


class Subscription(Base):
    """That a target wants messages of a type: those of notify.yaml and those registered, alike.

    Whoever writes a message of a type that is written on demand looks here, in its own transaction.
    """

    __tablename__ = "effaced_subscriptions"

    type: Mapped[NoticeType] = mapped_column(Word(NoticeType), primary_key=True)
    target: Mapped[str] = mapped_column(String(63), primary_key=True)
