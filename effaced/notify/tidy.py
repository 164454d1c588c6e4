"""Deleting messages that have been delivered."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from effaced.core.db import dbtime
from effaced.model import DeliveryStatus
from effaced.notify.fanout import NEWS
from effaced.notify.tables import Delivery, DeliveryAttempt, Message

KEPT = timedelta(days=90)
_BATCH = 1_000


def delete_old_messages(session: Session) -> int:
    """Remove a batch of messages that everybody got long ago, or that were for nobody. Returns how many.

    One that still has to get out, or could not, stays: a person may have it sent again.
    """
    now = dbtime.now(session)
    open_ = select(Delivery.id).where(
        Delivery.message_id == Message.id, Delivery.status != DeliveryStatus.DELIVERED
    )
    over = (Message.created_at < now - KEPT) & Message.fanned_out_at.is_not(None) & ~open_.exists()
    stale = (Message.created_at < now - NEWS) & Message.fanned_out_at.is_(None)
    gone = list(session.scalars(select(Message.id).where(over | stale).limit(_BATCH)))
    theirs = select(Delivery.id).where(Delivery.message_id.in_(gone))
    session.execute(delete(DeliveryAttempt).where(DeliveryAttempt.delivery_id.in_(theirs)))
    session.execute(delete(Delivery).where(Delivery.message_id.in_(gone)))
    session.execute(delete(Message).where(Message.id.in_(gone)))
    return len(gone)
