"""Archiving dead letters that are settled, and what happens when their time is over.

Bounded per call and done with conditional writes, so any number of schedulers may run it. Nothing is removed:
that takes a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from effaced.audit.append import SYSTEM
from effaced.core import clock
from effaced.core.db.sql import key_in
from effaced.deadletters.decide import Change, change, changed_values
from effaced.deadletters.linked_work import work_not_done
from effaced.deadletters.read import ALL, count_exactly, is_expired
from effaced.deadletters.rules import ARCHIVED, CHANGES, PENDING, REQUIRES_REVIEW
from effaced.deadletters.tables import DeadLetter

ARCHIVED_AFTER = timedelta(days=30)
MAX_ARCHIVED = 1_000
EXPIRED = "expired"


def archive_settled(
    session: Session,
    *,
    older_than: timedelta = ARCHIVED_AFTER,
    limit: int = MAX_ARCHIVED,
    actor: str = SYSTEM,
) -> int:
    """Archive what was resolved or rejected that long ago. Returns how many. The rows stay."""
    return _archive(session, _archivable(older_than), limit, actor)


def archive_by_id(session: Session, ids: Sequence[UUID], *, actor: str) -> int:
    """Archive the dead letters with these ids; those that are not settled are left alone."""
    which = _archivable(timedelta(0)) & key_in(session, DeadLetter.id, ids)
    return _archive(session, which, len(ids), actor)


def count_archivable(session: Session, older_than: timedelta = ARCHIVED_AFTER) -> int:
    return count_exactly(session, ALL, _archivable(older_than))


def expire(session: Session, *, limit: int = MAX_ARCHIVED) -> int:
    """Archive expired dead letters that are settled, and send pending ones to review. Returns how many.

    Work that was not done does not end because the time of its dead letter is over.
    """
    expired = is_expired(clock.now())
    archived = _archive(session, expired & _archivable(timedelta(0)), limit, SYSTEM)
    return archived + _send_to_review(session, expired, limit)


def _archivable(older_than: timedelta) -> ColumnElement[bool]:
    settled = DeadLetter.status.in_(CHANGES[ARCHIVED]) & ~work_not_done()
    return settled & (DeadLetter.resolved_at <= clock.now() - older_than)


def _archive(session: Session, which: ColumnElement[bool], limit: int, actor: str) -> int:
    return change(session, which, Change(ARCHIVED, actor), limit=limit, skip_locked=True)


def _send_to_review(session: Session, expired: ColumnElement[bool], limit: int) -> int:
    pending = session.scalars(
        select(DeadLetter.id)
        .where(expired, DeadLetter.status == PENDING)
        .order_by(DeadLetter.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    values = changed_values(Change(REQUIRES_REVIEW)) | {"next_action_hint": EXPIRED}
    changed = session.execute(
        update(DeadLetter)
        .where(key_in(session, DeadLetter.id, pending), DeadLetter.status == PENDING)
        .values(values)
        .returning(DeadLetter.id)
    )
    return len(changed.all())
