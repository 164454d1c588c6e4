"""Housekeeping: replays that nobody will end, letters that are done with, letters whose time is over.

All of it is bounded per call and done with conditional writes, so any number of schedulers may do it.
Nothing is removed here: that takes a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, case, select, update
from sqlalchemy.orm import Session

from effaced.audit.append import SYSTEM, append_one
from effaced.audit.events import DeadLettersArchived
from effaced.core import clock, dbtime
from effaced.core.sql import among
from effaced.deadletters.change import Change, change, changed_values
from effaced.deadletters.linked_work import work_not_done, work_under_way
from effaced.deadletters.rules import ARCHIVED, PENDING, REJECTED, REPLAYING, REQUIRES_REVIEW, RESOLVED
from effaced.deadletters.tables import DeadLetter

STALE_AFTER = timedelta(minutes=30)
ARCHIVED_AFTER = timedelta(days=30)
MOST = 1_000
EXPIRED = "expired"


def release_stale(session: Session, *, older_than: timedelta = STALE_AFTER, limit: int = MOST) -> int:
    """Give letters back whose replay has nothing under way any more; how many.

    They are pending again, or for review if their tries are used up.
    """
    stale = session.scalars(
        select(DeadLetter.id)
        .where(
            DeadLetter.status == REPLAYING,
            DeadLetter.updated_at <= dbtime.now(session) - older_than,
            ~work_under_way(),
        )
        .order_by(DeadLetter.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    at_cap = DeadLetter.retry_count >= DeadLetter.max_retries
    released = session.execute(
        update(DeadLetter)
        .where(among(session, DeadLetter.id, stale), DeadLetter.status == REPLAYING)
        .values(
            status=case((at_cap, REQUIRES_REVIEW.value), else_=PENDING.value),
            updated_at=dbtime.now(session),
        )
        .returning(DeadLetter.id)
    )
    return len(released.all())


def archive_settled(
    session: Session, *, older_than: timedelta = ARCHIVED_AFTER, limit: int = MOST, actor: str = SYSTEM
) -> int:
    """Put letters away that were resolved or rejected that long ago; how many. Their rows stay."""
    return archive(session, archivable(older_than), limit, actor=actor)


def archive_these(session: Session, ids: Sequence[UUID], *, actor: str) -> int:
    """The same for chosen ones; those that are not settled are left alone."""
    return archive(session, archivable() & among(session, DeadLetter.id, ids), len(ids), actor=actor)


def archivable(older_than: timedelta = timedelta(0)) -> ColumnElement[bool]:
    """Settled that long ago, and over work that was done."""
    settled = DeadLetter.status.in_((RESOLVED, REJECTED)) & ~work_not_done()
    return settled & (DeadLetter.resolved_at <= clock.now() - older_than)


def archive(session: Session, which: ColumnElement[bool], limit: int, *, actor: str) -> int:
    archived = change(session, which, Change(ARCHIVED, actor), limit=limit, skip_locked=True)
    if archived:
        append_one(session, DeadLettersArchived(count=archived), actor=actor)
    return archived


def expire(session: Session, *, limit: int = MOST) -> int:
    """Letters whose time is over: settled ones are archived, pending ones are for review; how many.

    Work that was not done does not end because the time of its dead letter is over.
    """
    over = DeadLetter.expires_at <= clock.now()
    archived = archive(session, over & archivable(), limit, actor=SYSTEM)
    return archived + _for_review(session, over, limit)


def _for_review(session: Session, over: ColumnElement[bool], limit: int) -> int:
    pending = session.scalars(
        select(DeadLetter.id)
        .where(over, DeadLetter.status == PENDING)
        .order_by(DeadLetter.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    values = changed_values(Change(REQUIRES_REVIEW)) | {"next_action_hint": EXPIRED}
    changed = session.execute(
        update(DeadLetter)
        .where(among(session, DeadLetter.id, pending), DeadLetter.status == PENDING)
        .values(values)
        .returning(DeadLetter.id)
    )
    return len(changed.all())
