"""Forgetting tries whose story is over."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from effaced.core.db import dbtime
from effaced.deadletters.rules import ACTIVE
from effaced.deadletters.tables import DeadLetter
from effaced.outbox.tables import OutboxRow
from effaced.retries.aggregate import final_until
from effaced.retries.tables import Attempt

KEPT = timedelta(hours=24)
LOT = 5_000


def forget_attempts(session: Session) -> int:
    """Remove a lot of tries whose entry ended a day ago, and whose hour is counted for good; how many.

    Those of an entry whose dead letter is not settled stay: they say why.
    """
    undecided = select(DeadLetter.id).where(
        DeadLetter.entry_id == OutboxRow.entry_id, DeadLetter.status.in_(ACTIVE)
    )
    over = (
        select(Attempt.id)
        .join(OutboxRow, OutboxRow.entry_id == Attempt.entry_id)
        .where(
            Attempt.at < final_until(session),
            OutboxRow.ended_at <= dbtime.now(session) - KEPT,
            ~undecided.exists(),
        )
        .order_by(Attempt.id)
        .limit(LOT)
    )
    ids = list(session.scalars(over))
    session.execute(delete(Attempt).where(Attempt.id.in_(ids)))
    return len(ids)
