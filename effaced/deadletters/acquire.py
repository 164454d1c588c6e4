"""Taking dead letters for another try, and ending it.

Taking is one conditional write, so that of many who try one wins. Each taking has a number that only
grows; whoever took a letter ends the try under that number, or changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from effaced.core import dbtime
from effaced.core.sql import among
from effaced.deadletters.change import Change, change, changed_values, refuse_undone
from effaced.deadletters.letter import after_failed_try
from effaced.deadletters.rules import (
    FORCIBLE,
    PENDING,
    REPLAYING,
    after_failed_replay,
    scarred,
)
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, DeadLetterStatus


@dataclass(frozen=True, slots=True)
class Acquired:
    """A dead letter that is ours to replay now."""

    id: UUID
    domain: DeadLetterDomain
    entry_id: UUID | None
    request_id: UUID | None
    acquired: int


_TAKEN = (
    DeadLetter.id,
    DeadLetter.domain,
    DeadLetter.entry_id,
    DeadLetter.request_id,
    DeadLetter.acquired,
)


def acquire_for_replay(session: Session, ids: Sequence[UUID], *, force: bool = False) -> dict[UUID, Acquired]:
    """Turn those of the letters that are pending and below their cap to `replaying`; others are left out.

    `force` takes pending ones and those whose tries are used up, whatever the cap: their count starts again
    at 1, and their marks say how many tries there had been.
    """
    if force:
        return _force(session, ids)
    below = DeadLetter.retry_count < DeadLetter.max_retries
    taken = session.execute(
        update(DeadLetter)
        .where(among(session, DeadLetter.id, ids), DeadLetter.status == PENDING, below)
        .values(_taking(DeadLetter.retry_count + 1, dbtime.now(session)))
        .returning(*_TAKEN)
    )
    return {row.id: Acquired(*row) for row in taken}


def acquire_by_person(session: Session, ids: Sequence[UUID], *, force: bool) -> dict[UUID, Acquired]:
    """As above, where `force` overrides the cap only for letters that have reached it."""
    taken = acquire_for_replay(session, ids)
    if force and (rest := [each for each in ids if each not in taken]):
        taken |= acquire_for_replay(session, rest, force=True)
    return taken


def is_ours(session: Session, letter_id: UUID, acquired: int) -> bool:
    """Whether the letter is being replayed under this number. It is locked then."""
    return (
        session.execute(select(DeadLetter.id).where(_ours(letter_id, acquired)).with_for_update()).first()
        is not None
    )


def complete_replay(
    session: Session,
    letter_id: UUID,
    acquired: int,
    ended: Change | None,
    *,
    details: Mapping[str, Any] | None = None,
) -> bool:
    """End the try that has this number; False, and nothing changed, if it is not the present one.

    With a change it has succeeded. Refuses that while the work behind it is not done.
    """
    ours = _ours(letter_id, acquired)
    found = session.execute(
        select(
            DeadLetter.retry_count,
            DeadLetter.max_retries,
            DeadLetter.domain,
            DeadLetter.failure_type,
            DeadLetter.error_code,
            DeadLetter.context,
        )
        .where(ours)
        .with_for_update()
    ).first()
    if found is None:
        return False
    if ended is not None:
        refuse_undone(session, ours)
        return change(session, ours, ended) == 1
    to = after_failed_replay(found.retry_count, found.max_retries)
    values = changed_values(Change(to)) | {"context": after_failed_try(found._mapping, details)}
    session.execute(update(DeadLetter).where(ours).values(values))
    return True


def statuses(session: Session, ids: Sequence[UUID]) -> dict[UUID, DeadLetterStatus]:
    """Where these letters stand; unknown ids are left out."""
    found = session.execute(
        select(DeadLetter.id, DeadLetter.status).where(among(session, DeadLetter.id, ids))
    )
    return {row.id: row.status for row in found}


def _force(session: Session, ids: Sequence[UUID]) -> dict[UUID, Acquired]:
    may: ColumnElement[bool] = DeadLetter.status.in_(FORCIBLE)
    locked = session.execute(
        select(DeadLetter.id, DeadLetter.acquired, DeadLetter.retry_count, DeadLetter.marks)
        .where(among(session, DeadLetter.id, ids), may)
        .order_by(DeadLetter.id)
        .with_for_update()
    ).all()
    taken = {}
    for letter in locked:
        row = session.execute(
            update(DeadLetter)
            # Under the number that was read: whoever else took it meanwhile has raised it.
            .where(DeadLetter.id == letter.id, DeadLetter.acquired == letter.acquired, may)
            .values(_taking(1, dbtime.now(session)) | {"marks": scarred(letter.marks, letter.retry_count)})
            .returning(*_TAKEN)
        ).first()
        if row is not None:
            taken[row.id] = Acquired(*row)
    return taken


def _ours(letter_id: UUID, acquired: int) -> ColumnElement[bool]:
    return (DeadLetter.id == letter_id) & (DeadLetter.status == REPLAYING) & (DeadLetter.acquired == acquired)


def _taking(retry_count: Any, now: datetime) -> dict[str, Any]:
    return changed_values(Change(REPLAYING)) | {
        "retry_count": retry_count,
        "acquired": DeadLetter.acquired + 1,
        "last_retry_at": now,
        "updated_at": now,
    }
