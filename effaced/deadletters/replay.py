"""Acquiring dead letters for a replay, and ending the replay.

Acquiring is one conditional write, so that of many callers one wins. It returns a number that only grows; a
replay is completed under the current number, or nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, case, select, update
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.core.db import dbtime
from effaced.core.db.sql import key_in
from effaced.deadletters.context import after_failed_replay as context_after_failed_replay
from effaced.deadletters.decide import Change, change, changed_values
from effaced.deadletters.linked_work import refuse_to_close, work_under_way
from effaced.deadletters.read import is_replayable
from effaced.deadletters.rules import (
    FORCIBLE,
    PENDING,
    REPLAYING,
    REQUIRES_REVIEW,
    after_failed_replay,
    marks_after_force,
)
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, DeadLetterStatus

STALE_AFTER = timedelta(minutes=30)
MAX_RELEASED = 1_000


@dataclass(frozen=True, slots=True)
class Acquired:
    """A dead letter that the caller may replay now, and the number under which to complete it."""

    id: UUID
    domain: DeadLetterDomain
    entry_id: UUID | None
    request_id: UUID | None
    acquired: int


_ACQUIRED = (
    DeadLetter.id,
    DeadLetter.domain,
    DeadLetter.entry_id,
    DeadLetter.request_id,
    DeadLetter.acquired,
)


def acquire_for_replay(session: Session, ids: Sequence[UUID], *, force: bool = False) -> dict[UUID, Acquired]:
    """Turn those that are pending and below their cap to `replaying`; others are left out.

    `force` takes pending ones and those for review, whatever the cap: their count starts again at 1, and
    their marks keep how many retries there were.
    """
    if force:
        return _force(session, ids)
    rows = session.execute(
        update(DeadLetter)
        .where(key_in(session, DeadLetter.id, ids), is_replayable())
        .values(_acquired_values(DeadLetter.retry_count + 1, dbtime.now(session)))
        .returning(*_ACQUIRED)
    )
    return {row.id: Acquired(*row) for row in rows}


def acquire_by_person(session: Session, ids: Sequence[UUID], *, force: bool) -> dict[UUID, Acquired]:
    """The same, where `force` resets the count only of those that can't be acquired without it."""
    acquired = acquire_for_replay(session, ids)
    if force and (rest := [each for each in ids if each not in acquired]):
        acquired |= acquire_for_replay(session, rest, force=True)
    return acquired


def lock_acquired(session: Session, dead_letter_id: UUID, acquired: int) -> bool:
    """Lock the dead letter if it is being replayed under this number. Returns whether it is."""
    query = select(DeadLetter.id).where(_current(dead_letter_id, acquired)).with_for_update()
    return session.execute(query).first() is not None


def complete_replay(
    session: Session,
    dead_letter_id: UUID,
    acquired: int,
    success: Change | None,
    *,
    details: Mapping[str, Any] | None = None,
) -> bool:
    """End the replay that has this number; False, and nothing changed, if it is not the current one.

    Refuses a success while the work behind the dead letter is not done. Without one it failed again.
    """
    current = _current(dead_letter_id, acquired)
    columns = ("retry_count", "max_retries", "domain", "failure_type", "error_code", "context")
    query = select(*(getattr(DeadLetter, name) for name in columns)).where(current).with_for_update()
    found = session.execute(query).first()
    if found is None:
        return False
    if success is not None:
        refuse_to_close(session, dead_letter_id)
        return change(session, current, success) == 1
    to = after_failed_replay(found.retry_count, found.max_retries)
    context = context_after_failed_replay(found._mapping, details)
    values = changed_values(Change(to)) | {"context": context}
    session.execute(update(DeadLetter).where(current).values(values))
    return True


def release_stale(session: Session, *, older_than: timedelta = STALE_AFTER, limit: int = MAX_RELEASED) -> int:
    """End replays that nobody will complete: nothing is under way behind them any more. How many.

    They are pending again, or for review if their retries are used up.
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
        .where(key_in(session, DeadLetter.id, stale), DeadLetter.status == REPLAYING)
        .values(
            status=case((at_cap, REQUIRES_REVIEW.value), else_=PENDING.value),
            updated_at=dbtime.now(session),
        )
        .returning(DeadLetter.id)
    )
    return len(released.all())


def count_retry(session: Session, dead_letter_id: UUID) -> bool:
    """Count a retry that was made elsewhere. Returns whether there is such a dead letter."""
    now = clock.now()
    counted = session.execute(
        update(DeadLetter)
        .where(DeadLetter.id == dead_letter_id)
        .values(retry_count=DeadLetter.retry_count + 1, last_retry_at=now, updated_at=now)
        .returning(DeadLetter.id)
    )
    return counted.first() is not None


def statuses(session: Session, ids: Sequence[UUID]) -> dict[UUID, DeadLetterStatus]:
    """Unknown ids are left out."""
    query = select(DeadLetter.id, DeadLetter.status).where(key_in(session, DeadLetter.id, ids))
    return {row.id: row.status for row in session.execute(query)}


def _force(session: Session, ids: Sequence[UUID]) -> dict[UUID, Acquired]:
    forcible: ColumnElement[bool] = DeadLetter.status.in_(FORCIBLE)
    locked = session.execute(
        select(DeadLetter.id, DeadLetter.acquired, DeadLetter.retry_count, DeadLetter.marks)
        .where(key_in(session, DeadLetter.id, ids), forcible)
        .order_by(DeadLetter.id)
        .with_for_update()
    ).all()
    acquired = {}
    for each in locked:
        marks = marks_after_force(each.marks, each.retry_count)
        row = session.execute(
            update(DeadLetter)
            # Under the number that was read: whoever else acquired it meanwhile has raised it.
            .where(DeadLetter.id == each.id, DeadLetter.acquired == each.acquired, forcible)
            .values(_acquired_values(1, dbtime.now(session)) | {"marks": marks})
            .returning(*_ACQUIRED)
        ).first()
        if row is not None:
            acquired[row.id] = Acquired(*row)
    return acquired


def _current(dead_letter_id: UUID, acquired: int) -> ColumnElement[bool]:
    mine = (DeadLetter.id == dead_letter_id) & (DeadLetter.acquired == acquired)
    return mine & (DeadLetter.status == REPLAYING)


def _acquired_values(retry_count: Any, now: datetime) -> dict[str, Any]:
    return changed_values(Change(REPLAYING)) | {
        "retry_count": retry_count,
        "acquired": DeadLetter.acquired + 1,
        "last_retry_at": now,
        "updated_at": now,
    }
