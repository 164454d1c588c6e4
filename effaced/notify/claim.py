"""Claiming a due delivery under a lease and a token, and checking whether there is one.

A claim is an attempt. Whoever is killed between sending and settling has used it up, and the message is
sent again, under the same id, when the lease ends.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Table, literal, select, update
from sqlalchemy.orm import Session

from effaced.core.db import dbtime
from effaced.core.db.waits import restart
from effaced.model import DeliveryStatus, NoticeType
from effaced.notify.tables import Delivery, Message

# A literal: with a bound value a generic plan can't use the partial index.
_PENDING = Delivery.status == literal(DeliveryStatus.PENDING, Delivery.status.type, literal_execute=True)

_UNTIL = dbtime.moment("until")


@dataclass(frozen=True, slots=True)
class Claimed:
    """One delivery that is ours until the lease ends."""

    id: UUID
    message_id: UUID
    target: str
    attempts: int
    token: int
    claimed_at: datetime
    aging_since: datetime
    type: NoticeType
    payload: dict[str, Any]
    request_id: UUID | None
    created_at: datetime


def claim(session: Session, target: str, *, lease: timedelta) -> Claimed | None:
    """Claim the target's delivery that has been due for longest."""
    due = select(Delivery.id).where(Delivery.target == target, _PENDING, Delivery.gate <= dbtime.NOW)
    return _take(session, due.order_by(Delivery.gate, Delivery.id), lease)


def claim_for_removed_target(
    session: Session, names: Collection[str], *, older_than: datetime, lease: timedelta
) -> Claimed | None:
    """Claim a delivery whose target has been missing from these names since `older_than`."""
    lost = select(Delivery.id).where(_of_removed(names, older_than), Delivery.gate <= dbtime.NOW)
    return _take(session, lost, lease)


def is_due(session: Session, names: Collection[str], *, max_age: timedelta) -> bool:
    """Whether there is anything to fan out, or to deliver or give up for the targets of these names."""
    now = dbtime.now(session)
    looks: list[Select[Any]] = [
        select(Message.id).where(Message.fanned_out_at.is_(None)),
        select(Delivery.id).where(Delivery.target.in_(sorted(names)), _PENDING, Delivery.gate <= now),
        select(Delivery.id).where(_of_removed(names, now - max_age), Delivery.gate <= now),
    ]
    return any(session.execute(look.limit(1)).first() is not None for look in looks)


def restart_waits(session: Session) -> int:
    """Restart waits that began in the future, with the length they had. Returns how many."""
    table = cast(Table, Delivery.__table__)
    waiting = _PENDING & table.c.waiting_since.is_not(None)
    return restart(session, table.c.waiting_since, (table.c.gate,), waiting)


def _of_removed(names: Collection[str], older_than: datetime) -> ColumnElement[bool]:
    return _PENDING & Delivery.target.not_in(sorted(names)) & (Delivery.aging_since < older_than)


def _take(session: Session, due: Select[Any], lease: timedelta) -> Claimed | None:
    # Through a CTE, which is evaluated once: a plain subquery with SKIP LOCKED may be run for every row.
    picked = due.limit(1).with_for_update(skip_locked=True).cte("picked")
    taken = session.execute(
        update(Delivery)
        .where(Delivery.id.in_(select(picked.c.id)))
        .execution_options(synchronize_session=False)
        .values(
            attempts=Delivery.attempts + 1,
            token=Delivery.token + 1,
            gate=_UNTIL,
            waiting_since=dbtime.NOW,
        )
        .returning(Delivery),
        dbtime.from_now(session, until=lease),
    ).scalar_one_or_none()
    if taken is None:
        return None
    message = session.get_one(Message, taken.message_id)
    return Claimed(
        id=taken.id,
        message_id=message.id,
        target=taken.target,
        attempts=taken.attempts,
        token=taken.token,
        claimed_at=taken.gate - lease,
        aging_since=taken.aging_since,
        type=message.type,
        payload=message.payload,
        request_id=message.request_id,
        created_at=message.created_at,
    )
