"""Dead letters where they touch requests: people's decisions, and the housekeeping on schedule."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, and_, delete, exists, select
from sqlalchemy.orm import Session

from effaced import dbtime
from effaced.crypto import Keyring
from effaced.deadletters.change import STILL_MISSING, decide, is_missing, lock
from effaced.deadletters.read import DeadLetterLine
from effaced.deadletters.rules import SETTLED
from effaced.deadletters.tables import DeadLetter, Redrive, RedriveRow
from effaced.deadletters.tidy import archive_settled, expire, release_stale
from effaced.errors import Conflict
from effaced.model import DeadLetterDomain, DeadLetterStatus, RedriveStatus, RequestStatus
from effaced.requests.tables import Request
from effaced.sql import among

REDRIVES_KEPT = timedelta(days=30)
_NOT_EXECUTED = "The request behind this letter was not executed. Mend the cause and requeue it."


def execution_to_come() -> ColumnElement[bool]:
    """The condition for letters whose request is yet to be executed: such a replay is not stale."""
    return and_(
        DeadLetter.domain == DeadLetterDomain.LOCAL_EXECUTION,
        exists().where(
            Request.id == DeadLetter.request_id,
            Request.status == RequestStatus.APPROVED,
            Request.execute_at.is_not(None),
        ),
    )


def decide_letter(
    session: Session, keyring: Keyring, letter_id: UUID, to: DeadLetterStatus, *, actor: str, reason: str
) -> None:
    """Resolve, reject or give up a letter, or take it into review or out of it, with a reason.

    Refuses to close a letter over something that was not done: an erasure at a vendor or at home.
    """
    letter = lock(session, letter_id)
    if to in SETTLED and _not_executed(session, letter.domain, letter.request_id):
        raise Conflict(_NOT_EXECUTED)
    decide(session, keyring, letter_id, to, actor=actor, reason=reason)


def why_not_closed(session: Session, letter: DeadLetterLine) -> str | None:
    """What `decide_letter` would say to whoever wants to resolve or reject it; None if it would do it."""
    if _not_executed(session, letter.domain, letter.request_id):
        return _NOT_EXECUTED
    return STILL_MISSING if is_missing(session, DeadLetter.id == letter.id) else None


def _not_executed(session: Session, domain: DeadLetterDomain, request_id: UUID | None) -> bool:
    if domain is not DeadLetterDomain.LOCAL_EXECUTION or request_id is None:
        return False
    request = session.get(Request, request_id)
    return request is not None and request.status is RequestStatus.APPROVED


def tidy_letters(session: Session) -> dict[str, int]:
    """What the scheduler does every hour, a bounded number each; how many. Nothing is removed."""
    return {
        "released": release_stale(session, also_under_way=(execution_to_come(),)),
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
    session.execute(delete(RedriveRow).where(among(session, RedriveRow.redrive_id, ended)))
    session.execute(delete(Redrive).where(among(session, Redrive.id, ended)))
    return len(ended)
