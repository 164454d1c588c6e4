"""Recording the result of a delivery attempt, and giving up in the end, with a dead letter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from effaced.core.db import dbtime
from effaced.model import DeliveryStatus
from effaced.notify.claim import Claimed
from effaced.notify.tables import Delivery, DeliveryAttempt
from effaced.retries.policy import BackoffPolicy

_GATE = dbtime.moment("new_gate")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an attempt. `error` is a class name or a code; a reservation may go with a success."""

    delivered: bool
    error: str | None = None
    status_code: int | None = None
    retry_after: timedelta | None = None
    latency_ms: int = 0
    final: bool = False


@dataclass(frozen=True, slots=True)
class Undeliverable:
    """A delivery that was given up, for whoever opens a dead letter."""

    id: UUID
    target: str
    attempts: int
    error: str
    code: str


@dataclass(frozen=True, slots=True)
class Rules:
    """When to retry, when to give up, and what happens at the end, in the same transaction."""

    max_attempts: int
    max_age: timedelta
    backoff: BackoffPolicy
    on_undeliverable: Callable[[Session, Undeliverable], None]
    on_delivered: Callable[[Session, UUID], None]


def settle(session: Session, claimed: Claimed, outcome: Outcome, rules: Rules) -> bool:
    """Record the outcome. False, and nothing changes, if the lease ended and somebody else claimed it."""
    now = dbtime.now(session)
    wait = max(rules.backoff.delay(claimed.attempts), outcome.retry_after or timedelta(0))
    code = None if outcome.delivered else _reason_to_give_up(claimed, outcome, rules, now + wait)
    status = DeliveryStatus.DELIVERED if outcome.delivered else DeliveryStatus.PENDING
    status = DeliveryStatus.UNDELIVERABLE if code else status
    ours = session.execute(
        update(Delivery)
        .where(
            Delivery.id == claimed.id,
            Delivery.token == claimed.token,
            Delivery.status == DeliveryStatus.PENDING,
        )
        .values(
            status=status,
            gate=_GATE,
            waiting_since=dbtime.NOW if status is DeliveryStatus.PENDING else None,
            last_error=outcome.error,
            status_code=outcome.status_code,
            ended_at=None if status is DeliveryStatus.PENDING else now,
        )
        .returning(Delivery.id),
        dbtime.from_now(session, new_gate=wait if status is DeliveryStatus.PENDING else timedelta(0)),
    ).first()
    if ours is None:
        return False
    session.execute(
        insert(DeliveryAttempt).values(
            delivery_id=claimed.id,
            number=claimed.attempts,
            at=claimed.claimed_at,
            delivered=outcome.delivered,
            status_code=outcome.status_code,
            latency_ms=outcome.latency_ms,
            error=outcome.error,
        )
    )
    if code:
        error = outcome.error or "NotDelivered"
        rules.on_undeliverable(
            session, Undeliverable(claimed.id, claimed.target, claimed.attempts, error, code)
        )
    elif outcome.delivered:
        rules.on_delivered(session, claimed.id)
    return True


def requeue(
    session: Session, ids: Iterable[UUID], gates: Mapping[UUID, datetime] | None = None
) -> list[tuple[UUID, str]]:
    """Give undeliverable ones another full set of attempts; the message and the target of each.

    Others are skipped: asking twice is fine. `gates` says of some that they wait a while.
    """
    locked = session.scalars(
        select(Delivery.id)
        .where(Delivery.id.in_(list(ids)), Delivery.status == DeliveryStatus.UNDELIVERABLE)
        .order_by(Delivery.id)
        .with_for_update()
    )
    now = dbtime.now(session)
    flipped = session.execute(
        update(Delivery)
        .where(Delivery.id.in_(list(locked)))
        .values(status=DeliveryStatus.PENDING, attempts=0, gate=now, aging_since=now, ended_at=None)
        .returning(Delivery.id, Delivery.message_id, Delivery.target)
    ).all()
    for each in flipped:
        if gates and each.id in gates:
            at = gates[each.id]
            session.execute(
                update(Delivery)
                .where(Delivery.id == each.id)
                .values(gate=at, aging_since=at, waiting_since=now)
            )
    return [(each.message_id, each.target) for each in flipped]


def send_again(session: Session, delivery_id: UUID) -> bool:
    """Queue a delivery that has ended once more: the same message, under the same id. False if it waits."""
    now = dbtime.now(session)
    queued = session.execute(
        update(Delivery)
        .where(Delivery.id == delivery_id, Delivery.status != DeliveryStatus.PENDING)
        .values(
            status=DeliveryStatus.PENDING,
            attempts=0,
            gate=now,
            aging_since=now,
            waiting_since=None,
            ended_at=None,
        )
        .returning(Delivery.id)
    ).first()
    return queued is not None


def _reason_to_give_up(claimed: Claimed, outcome: Outcome, rules: Rules, again_at: datetime) -> str | None:
    """Why there is no further attempt, or None if there is one."""
    if outcome.final:
        return outcome.error
    if claimed.attempts >= rules.max_attempts:
        return "attempts_exhausted"
    return "max_age" if again_at > claimed.aging_since + rules.max_age else None
