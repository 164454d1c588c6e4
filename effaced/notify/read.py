"""Looking at deliveries: what went out last, and what still waits for a target that is gone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from effaced.model import DeliveryStatus, NoticeType
from effaced.notify.tables import Delivery, Message


@dataclass(frozen=True, slots=True)
class DeliveryLine:
    """One message on its way to one target, to be shown."""

    message_id: UUID
    type: NoticeType
    request_id: UUID | None
    created_at: datetime
    target: str
    status: DeliveryStatus
    attempts: int
    gate: datetime
    last_error: str | None
    status_code: int | None
    ended_at: datetime | None


def last_deliveries(session: Session, *, limit: int) -> list[DeliveryLine]:
    """The deliveries that were made last, newest first."""
    rows = session.execute(
        select(
            Delivery.message_id, Message.type, Message.request_id, Message.created_at, Delivery.target,
            Delivery.status, Delivery.attempts, Delivery.gate, Delivery.last_error, Delivery.status_code,
            Delivery.ended_at,
        )
        .join(Message, Message.id == Delivery.message_id)
        .order_by(Delivery.id.desc())
        .limit(limit)
    )  # fmt: skip
    return [DeliveryLine(*row) for row in rows]


def waiting_counts(session: Session) -> dict[str, int]:
    """How many deliveries wait, by target."""
    counted = session.execute(
        select(Delivery.target, func.count())
        .where(Delivery.status == DeliveryStatus.PENDING)
        .group_by(Delivery.target)
    )
    return {row[0]: row[1] for row in counted}
