"""Housekeeping: replays that nobody will end, letters that are done with, letters whose time is over.

All of it is bounded per call and done with conditional writes, so any number of schedulers may do it.
Nothing is removed here: that takes a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, case, or_, select, update
from sqlalchemy.orm import Session

from effaced import clock, dbtime
from effaced.audit.append import SYSTEM, Record, append, append_one
from effaced.audit.events import DeadLetterDecided, DeadLettersArchived
from effaced.deadletters.behind import erasure_missing, under_way
from effaced.deadletters.change import about, status_values
from effaced.deadletters.rules import ARCHIVED, PENDING, REJECTED, REPLAYING, REQUIRES_REVIEW, RESOLVED
from effaced.deadletters.tables import DeadLetter
from effaced.sql import among

STALE_AFTER = timedelta(minutes=30)
ARCHIVED_AFTER = timedelta(days=30)
MOST = 1_000
EXPIRED = "expired"


def release_stale(
    session: Session,
    *,
    older_than: timedelta = STALE_AFTER,
    limit: int = MOST,
    also_under_way: Sequence[ColumnElement[bool]] = (),
) -> int:
    """Give letters back whose replay has nothing under way any more; how many.

    They are pending again, or for review if their tries are used up. `also_under_way` are conditions that
    other rooms know, such as an execution that is still to come.
    """
    stale = session.scalars(
        select(DeadLetter.id)
        .where(
            DeadLetter.status == REPLAYING,
            DeadLetter.updated_at <= dbtime.now(session) - older_than,
            ~or_(under_way(), *also_under_way),
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
    """Settled that long ago, and with no erasure behind them that was not made."""
    settled = DeadLetter.status.in_((RESOLVED, REJECTED)) & ~erasure_missing()
    return settled & (DeadLetter.resolved_at <= clock.now() - older_than)


def archive(session: Session, which: ColumnElement[bool], limit: int, *, actor: str) -> int:
    letters = session.execute(
        select(
            DeadLetter.id,
            DeadLetter.status,
            DeadLetter.entry_id,
            DeadLetter.request_id,
            DeadLetter.subject_key_id,
            DeadLetter.subject_hmac,
        )
        .where(which)
        .order_by(DeadLetter.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    if not letters:
        return 0
    append(
        session,
        [
            Record(
                DeadLetterDecided(dead_letter_id=letter.id, prior=letter.status, status=ARCHIVED),
                actor=actor,
                **about(letter),
            )
            for letter in letters
        ],
    )
    append_one(session, DeadLettersArchived(count=len(letters)), actor=actor)
    session.execute(
        update(DeadLetter)
        .where(among(session, DeadLetter.id, [letter.id for letter in letters]))
        .values(status_values(ARCHIVED))
    )
    return len(letters)


def expire(session: Session, *, limit: int = MOST) -> int:
    """Letters whose time is over: settled ones are archived, pending ones are for review; how many.

    An erasure that was not made does not end because its letter has.
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
    values = status_values(REQUIRES_REVIEW) | {"next_action_hint": EXPIRED}
    changed = session.execute(
        update(DeadLetter)
        .where(among(session, DeadLetter.id, pending), DeadLetter.status == PENDING)
        .values(values)
        .returning(DeadLetter.id)
    )
    return len(changed.all())
