"""Message targets and deliveries as their API key sees them."""

from __future__ import annotations

from collections.abc import Iterable

from effaced.api.messages import models
from effaced.core.crypto import Keyring
from effaced.model import DeliveryStatus, NoticeType
from effaced.notify.read import AttemptLine, DeliveryLine
from effaced.notify.registered import old_secret_signs, url_of
from effaced.notify.tables import MessageTarget
from effaced.notify.webhook import origin_of


def show_target(keyring: Keyring, target: MessageTarget) -> models.MessageTarget:
    return models.MessageTarget(
        id=target.id,
        name=target.name,
        origin=origin_of(url_of(keyring, target)),
        events=[NoticeType(each) for each in target.events],
        all_requests=target.all_requests,
        enabled=target.disabled_at is None,
        created_at=target.created_at,
        disabled_at=target.disabled_at,
        old_secret_signs_until=target.previous_until if old_secret_signs(target) else None,
    )


def show_delivery(line: DeliveryLine) -> models.Delivery:
    return models.Delivery(
        id=line.id,
        message_id=line.message_id,
        type=line.type,
        request_id=line.request_id,
        status=line.status,
        attempts=line.attempts,
        created_at=line.created_at,
        next_attempt_at=line.gate if line.status is DeliveryStatus.PENDING else None,
        ended_at=line.ended_at,
        status_code=line.status_code,
        last_error=line.last_error,
    )


def show_attempts(lines: Iterable[AttemptLine]) -> list[models.DeliveryAttempt]:
    return [
        models.DeliveryAttempt(
            at=each.at,
            outcome="delivered" if each.delivered else "failed",
            status_code=each.status_code,
            latency_ms=each.latency_ms,
            error=each.error,
        )
        for each in lines
    ]
