"""From messages to deliveries: one for each target that wants the notice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from effaced.core.db import dbtime
from effaced.core.db.sql import insert_rows, key_in
from effaced.model import DeliveryStatus, new_id
from effaced.notify.subscriptions import MessageFacts, subscribers
from effaced.notify.tables import Delivery, Message

SendersOf = Callable[[Session, Collection[UUID]], Mapping[UUID, UUID]]
# What is older was written while nobody was to be told. It is no news to whoever comes into the file now.
NEWS = timedelta(days=3)
_BATCH = 200


def fan_out(session: Session, senders_of: SendersOf) -> int:
    """Make a delivery for each target that wants one and may get it, for a batch of messages.

    Returns how many messages. Those that somebody else is about to fan out are skipped. `senders_of` says
    which API keys have sent requests.
    """
    now = dbtime.now(session)
    messages = session.execute(
        select(Message.id, Message.type, Message.created_at, Message.request_id, Message.only_sender)
        .where(Message.fanned_out_at.is_(None))
        .order_by(Message.created_at, Message.id)
        .limit(_BATCH)
        .with_for_update(skip_locked=True)
    ).all()
    if not messages:
        return 0
    wanting = subscribers(session)
    senders = senders_of(session, {each.request_id for each in messages if each.request_id})
    facts = {
        each.id: MessageFacts(each.type, each.created_at, each.only_sender, senders.get(each.request_id))
        for each in messages
    }
    wanted = [
        (message.id, each.target)
        for message in messages
        if message.created_at > now - NEWS
        for each in wanting.get(message.type, ())
        if each.may_get(facts[message.id])
    ]
    # Deliveries of one moment are claimed by their ids: a target gets messages as they were written.
    ids = sorted(new_id() for _ in wanted)
    insert_rows(
        session,
        Delivery,
        [
            {
                "id": delivery_id,
                "message_id": message_id,
                "target": target,
                "status": DeliveryStatus.PENDING,
                "attempts": 0,
                "token": 0,
                "gate": now,
                "aging_since": now,
            }
            for delivery_id, (message_id, target) in zip(ids, wanted, strict=True)
        ],
    )
    session.execute(
        update(Message)
        .where(key_in(session, Message.id, [message.id for message in messages]))
        .values(fanned_out_at=now),
        execution_options={"synchronize_session": False},
    )
    return len(messages)
