"""From messages to deliveries: one for each target that wants the notice."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from effaced.core.db import dbtime
from effaced.core.db.sql import insert_rows, key_in
from effaced.model import DeliveryStatus, new_id
from effaced.notify.config import Targets
from effaced.notify.tables import Delivery, Message

# What is older was written while nobody was to be told. It is no news to whoever comes into the file now.
NEWS = timedelta(days=3)
_BATCH = 200


def fan_out(session: Session, targets: Targets) -> int:
    """Make a delivery for each target that wants one, for a batch of messages. Returns how many messages.

    Messages that somebody else is about to fan out are skipped.
    """
    now = dbtime.now(session)
    messages = session.execute(
        select(Message.id, Message.type, Message.created_at)
        .where(Message.fanned_out_at.is_(None))
        .order_by(Message.created_at, Message.id)
        .limit(_BATCH)
        .with_for_update(skip_locked=True)
    ).all()
    if not messages:
        return 0
    insert_rows(
        session,
        Delivery,
        [
            {
                "id": new_id(),
                "message_id": message.id,
                "target": name,
                "status": DeliveryStatus.PENDING,
                "attempts": 0,
                "token": 0,
                "gate": now,
                "aging_since": now,
            }
            for message in messages
            if message.created_at > now - NEWS
            for name in targets.wanting(message.type)
        ],
    )
    session.execute(
        update(Message)
        .where(key_in(session, Message.id, [message.id for message in messages]))
        .values(fanned_out_at=now),
        execution_options={"synchronize_session": False},
    )
    return len(messages)
