"""Writing messages in the caller's transaction: there is a message exactly if what it tells of has happened.

Who gets it is found out later, by whoever delivers. So writing waits for nobody and can't fail over a mail
server. Types of which there may be thousands in a second are written only while somebody subscribes to them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, literal_column, select
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.core.db import dbtime
from effaced.core.db.pipeline import run_statement
from effaced.core.db.sql import insert_rows
from effaced.model import DeliveryStatus, NoticeType, new_id
from effaced.notify.notices import Notice
from effaced.notify.tables import Delivery, Message, Subscription

# The key in a session's `info` under which the id of its last message is.
_LAST = "effaced.last_message"
STEPS = (
    NoticeType.STEP_SUCCEEDED,
    NoticeType.STEP_SCHEDULED,
    NoticeType.STEP_FAILED,
    NoticeType.STEP_ABANDONED,
)


def announce(session: Session, notices: Iterable[Notice], *, only_sender: bool = False) -> None:
    """Record these notices, to be delivered once this transaction has committed, in this order.

    With `only_sender` they are for the targets of the API key that sent the request.
    """
    now = dbtime.now(session)
    rows = []
    last: UUID | None = session.info.get(_LAST)
    for notice in notices:
        if not isinstance(notice, Notice):
            raise TypeError(f"{type(notice).__name__} is not a notice")
        rows.append(
            {
                "id": (last := _id_after(last)),
                "type": notice.type,
                "payload": payload_of(notice),
                "request_id": notice.request_id,
                "created_at": now,
                "only_sender": only_sender,
            }
        )
    session.info[_LAST] = last
    insert_rows(session, Message, rows)


def announce_wanted(
    session: Session,
    notices: Sequence[Notice],
    *,
    wanted: Collection[str] | None = None,
    only_sender: bool = False,
) -> None:
    """Record those of the notices that some target subscribes to; `wanted` says which, if it is known."""
    if not notices:
        return
    if wanted is None:
        wanted = subscribed(session, *sorted({notice.type for notice in notices}))
    announce(session, [each for each in notices if each.type in wanted], only_sender=only_sender)


def subscribed(session: Session, *types: NoticeType) -> set[str]:
    """Which of these types some target wants."""
    return types_of(run_statement(session, subscriptions_to(*types), {}).rows)


@cache
def subscriptions_to(*types: NoticeType) -> Select[NoticeType]:
    """`subscribed` as a statement, to travel with others; `types_of` reads its rows."""
    # Literals: the statement is compiled and planned once.
    words: list[ColumnElement[str]] = [literal_column(f"'{each.value}'") for each in types]
    return select(Subscription.type).where(Subscription.type.in_(words)).distinct()


def types_of(rows: Iterable[Sequence[Any]]) -> set[str]:
    return {str(word) for (word,) in rows}


def queue_test(session: Session, target: str) -> UUID:
    """Queue a test message to this target alone; the id of its delivery."""
    now, message_id, delivery_id = dbtime.now(session), new_id(), new_id()
    session.add(Message(id=message_id, type=NoticeType.TEST, payload={}, created_at=now, fanned_out_at=now))
    session.flush()
    session.add(
        Delivery(
            id=delivery_id,
            message_id=message_id,
            target=target,
            status=DeliveryStatus.PENDING,
            gate=now,
            aging_since=now,
        )
    )
    session.flush()
    return delivery_id


def _id_after(last: UUID | None) -> UUID:
    """An id that sorts after the last one: those of one millisecond are random beyond it.

    What one transaction writes is delivered in the order in which it was written.
    """
    fresh = new_id()
    return fresh if last is None or fresh > last else UUID(int=last.int + 1)


def payload_of(notice: Notice) -> dict[str, Any]:
    """What is kept and sent of a notice, moments as everywhere in the API."""
    plain = notice.model_dump(mode="json", exclude_none=True, exclude={"request_id"})
    for name in plain:
        if isinstance(value := getattr(notice, name), datetime):
            plain[name] = clock.text(value)
    return plain
