"""Looking at deliveries: what went out last, to whom, and what still waits for a target that is gone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from effaced.core.paging import Page, after_key, decode, page_of
from effaced.model import DeliveryStatus, NoticeType
from effaced.notify.tables import Delivery, DeliveryAttempt, Message


@dataclass(frozen=True, slots=True)
class DeliveryLine:
    """One message on its way to one target, to be shown."""

    id: UUID
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


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """Which deliveries of a target; all that are given have to hold."""

    target: str
    status: DeliveryStatus | None = None
    type: NoticeType | None = None
    request_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """One attempt at a delivery."""

    at: datetime
    delivered: bool
    status_code: int | None
    latency_ms: int
    error: str | None


def last_deliveries(session: Session, *, limit: int) -> list[DeliveryLine]:
    """The deliveries that were made last, newest first."""
    rows = session.execute(_lines().order_by(Delivery.id.desc()).limit(limit))
    return [DeliveryLine(*row) for row in rows]


def find_deliveries(
    session: Session, which: DeliveryFilter, *, after: str | None, limit: int
) -> Page[DeliveryLine]:
    """A page of a target's deliveries, newest first."""
    query = _lines().where(Delivery.target == which.target)
    if which.status is not None:
        query = query.where(Delivery.status == which.status)
    if which.type is not None:
        query = query.where(Message.type == which.type)
    if which.request_id is not None:
        query = query.where(Message.request_id == which.request_id)
    if after is not None:
        query = query.where(after_key([Delivery.id], decode(after, UUID), descending=True))
    rows = [
        DeliveryLine(*row) for row in session.execute(query.order_by(Delivery.id.desc()).limit(limit + 1))
    ]
    return page_of(rows, limit, [(each.id,) for each in rows])


def find_delivery(session: Session, target: str, delivery_id: UUID) -> DeliveryLine | None:
    row = session.execute(_lines().where(Delivery.target == target, Delivery.id == delivery_id)).first()
    return None if row is None else DeliveryLine(*row)


def attempts_at(session: Session, delivery_id: UUID) -> list[AttemptLine]:
    """All attempts at a delivery, oldest first."""
    columns = (
        DeliveryAttempt.at, DeliveryAttempt.delivered, DeliveryAttempt.status_code,
        DeliveryAttempt.latency_ms, DeliveryAttempt.error,
    )  # fmt: skip
    mine = select(*columns).where(DeliveryAttempt.delivery_id == delivery_id)
    return [AttemptLine(*row) for row in session.execute(mine.order_by(DeliveryAttempt.id))]


def _lines() -> Select[*tuple[Any, ...]]:
    return select(
        Delivery.id, Delivery.message_id, Message.type, Message.request_id, Message.created_at,
        Delivery.target, Delivery.status, Delivery.attempts, Delivery.gate, Delivery.last_error,
        Delivery.status_code, Delivery.ended_at,
    ).join(Message, Message.id == Delivery.message_id)  # fmt: skip


def waiting_counts(session: Session) -> dict[str, int]:
    """How many deliveries wait, by target."""
    counted = session.execute(
        select(Delivery.target, func.count())
        .where(Delivery.status == DeliveryStatus.PENDING)
        .group_by(Delivery.target)
    )
    return {row[0]: row[1] for row in counted}
