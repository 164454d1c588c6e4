"""Housekeeping that the scheduler does: dead letters, redrives, and attempts that nobody needs any more."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from effaced.core.db import dbtime
from effaced.core.db.sql import key_in
from effaced.deadletters.archive import archive_settled, expire
from effaced.deadletters.replay import release_stale
from effaced.deadletters.rules import ACTIVE
from effaced.deadletters.tables import DeadLetter, Redrive, RedriveRow
from effaced.model import RedriveStatus
from effaced.outbox.tables import OutboxRow
from effaced.retries.aggregate import final_until
from effaced.retries.tables import Attempt

REDRIVES_KEPT = timedelta(days=30)
ATTEMPTS_KEPT = timedelta(hours=24)
ATTEMPTS_BATCH = 5_000


def tidy_dead_letters(session: Session) -> dict[str, int]:
    """Release, expire and archive dead letters, a bounded number of each.

    Returns how many. None is removed.
    """
    return {
        "released": release_stale(session),
        "expired": expire(session),
        "archived": archive_settled(session),
        "redrives_forgotten": delete_old_redrives(session),
    }


def delete_old_redrives(session: Session, *, limit: int = 20) -> int:
    """Remove redrives that ended long ago, with their rows. Returns how many. The trail has what they did."""
    ended = session.scalars(
        select(Redrive.id)
        .where(
            Redrive.status != RedriveStatus.RUNNING,
            Redrive.ended_at < dbtime.now(session) - REDRIVES_KEPT,
        )
        .order_by(Redrive.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    session.execute(delete(RedriveRow).where(key_in(session, RedriveRow.redrive_id, ended)))
    session.execute(delete(Redrive).where(key_in(session, Redrive.id, ended)))
    return len(ended)


def delete_old_attempts(session: Session, *, limit: int = ATTEMPTS_BATCH) -> int:
    """Delete up to `limit` attempts of entries that ended a day ago, if their hour is final. Returns how
    many.

    Those of an entry with an unresolved dead letter stay: they show what was tried.
    """
    unresolved = select(DeadLetter.id).where(
        DeadLetter.entry_id == OutboxRow.entry_id, DeadLetter.status.in_(ACTIVE)
    )
    over = (
        select(Attempt.id)
        .join(OutboxRow, OutboxRow.entry_id == Attempt.entry_id)
        .where(
            Attempt.at < final_until(session),
            OutboxRow.ended_at <= dbtime.now(session) - ATTEMPTS_KEPT,
            ~unresolved.exists(),
        )
        .order_by(Attempt.id)
        .limit(limit)
    )
    ids = list(session.scalars(over))
    session.execute(delete(Attempt).where(Attempt.id.in_(ids)))
    return len(ids)
