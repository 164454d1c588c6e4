"""Forgetting what has served its time."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete
from sqlalchemy.orm import Session

from effaced import clock
from effaced.requests.tables import IdempotentAnswer

ANSWERS_KEPT = timedelta(days=30)


def forget_old_answers(session: Session) -> int:
    """Remove answers to Idempotency-Keys that nobody will ask for again; how many."""
    gone = session.execute(
        delete(IdempotentAnswer)
        .where(IdempotentAnswer.created_at < clock.now() - ANSWERS_KEPT)
        .returning(IdempotentAnswer.key_hmac)
    )
    return len(gone.all())
