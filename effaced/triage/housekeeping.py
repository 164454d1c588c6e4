"""The housekeeping of dead letters and redrives that the scheduler does."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from effaced.core.db import dbtime
from effaced.core.db.sql import key_in
from effaced.deadletters.archive import archive_settled, expire
from effaced.deadletters.replay import release_stale
from effaced.deadletters.tables import Redrive, RedriveRow
from effaced.model import RedriveStatus

REDRIVES_KEPT = timedelta(days=30)


def tidy_letters(session: Session) -> dict[str, int]:
    """What the scheduler does every hour, a bounded number each; how many. Nothing is removed."""
    return {
        "released": release_stale(session),
        "expired": expire(session),
        "archived": archive_settled(session),
        "redrives_forgotten": forget_old_redrives(session),
    }


def forget_old_redrives(session: Session, *, limit: int = 20) -> int:
    """Remove redrives that ended long ago, with their rows; how many. The trail has what they did."""
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
