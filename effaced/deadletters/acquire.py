"""Taking dead letters for another try: one conditional write, so that of many who try one wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from effaced import clock
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, DeadLetterStatus

# A person's word is enough for another try also when the automatic budget is used up.
ACQUIRABLE = (DeadLetterStatus.PENDING, DeadLetterStatus.REVIEWING, DeadLetterStatus.REQUIRES_REVIEW)


@dataclass(frozen=True, slots=True)
class Acquired:
    """A dead letter that is ours to replay now."""

    id: UUID
    domain: DeadLetterDomain
    entry_id: UUID | None
    request_id: UUID | None


def acquire_for_replay(session: Session, ids: Sequence[UUID]) -> dict[UUID, Acquired]:
    """Turn those of the letters that wait for a person to `replaying`; others are left out."""
    now = clock.now()
    taken = session.execute(
        update(DeadLetter)
        .where(DeadLetter.id.in_(ids), DeadLetter.status.in_(ACQUIRABLE))
        .values(
            status=DeadLetterStatus.REPLAYING,
            retry_count=DeadLetter.retry_count + 1,
            last_retry_at=now,
            updated_at=now,
        )
        .returning(DeadLetter.id, DeadLetter.domain, DeadLetter.entry_id, DeadLetter.request_id)
    )
    return {row.id: Acquired(row.id, row.domain, row.entry_id, row.request_id) for row in taken}


def statuses(session: Session, ids: Sequence[UUID]) -> dict[UUID, DeadLetterStatus]:
    """Where these letters stand; unknown ids are left out."""
    found = session.execute(select(DeadLetter.id, DeadLetter.status).where(DeadLetter.id.in_(ids)))
    return {row.id: row.status for row in found}
