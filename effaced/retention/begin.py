"""Having the retentions of a request ended by the scheduler, because somebody asked for it."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy.orm import Session

from effaced.audit.notes import write_note
from effaced.core.crypto import Keyring
from effaced.core.db import dbtime
from effaced.core.errors import Conflict, Problem, Refused
from effaced.datamap.plan.retention import RetentionPlan
from effaced.requests.retention import RetentionState, assess, open_retentions_of
from effaced.requests.tables import Request, Retention, RetentionEnding
from effaced.retention.end import IN_USE

# Of these something is erased, or closed because the map has no such table.
_ENDABLE = (RetentionState.DUE, RetentionState.TABLE_GONE)
_WHY_NOT = {
    RetentionState.WAITING: "waits for rows that point at it",
    RetentionState.NOT_RETAINED: "is not retained by the data map any more: request another erasure",
    RetentionState.UNREADABLE: "can't be read: a key is missing, or people have another key in the map now",
}


def begin_ending(
    session: Session,
    keyring: Keyring,
    plan: RetentionPlan,
    request_id: UUID,
    *,
    actor: str,
    reason: str,
) -> None:
    """Have the scheduler erase what has come due of this request, in the name of `actor`.

    Refuses what ending would refuse, and where there is nothing to erase.
    """
    request = session.get(Request, request_id)
    if request is None:
        problem = Problem("request_id", "is not the id of a request", code="not_found")
        raise Refused("There is no request with this id.", problems=[problem])
    # Whoever is ending them holds these, so that only one of both begins.
    retentions = open_retentions_of(session, request_id, lock=True)
    if session.get(RetentionEnding, request_id) is not None:
        raise _conflict("This is being done already.", "is being ended already", "already_running")
    due = [each for each in retentions if each.first_due is not None and each.first_due <= plan.today]
    _require_endable(session, keyring, plan, request, due)
    note = write_note(session, keyring, reason, author=actor, request_id=request_id)
    session.add(
        RetentionEnding(
            request_id=request_id,
            actor=actor,
            note_id=note.note_id,
            note_hmac=note.note_hmac,
            rows=0,
            of=0,
            go_on_at=dbtime.now(session),
        )
    )
    session.flush()


def _require_endable(
    session: Session, keyring: Keyring, plan: RetentionPlan, request: Request, due: list[Retention]
) -> None:
    if not due:
        raise _conflict("Nothing of this request has come due.", "has nothing due", "nothing_due")
    states = {each.table_name: assess(session, keyring, plan, each, request.subject_type) for each in due}
    if any(each.standing is RetentionState.IN_USE for each in states.values()):
        raise _conflict(IN_USE, "is of a person whose key is in use again", "in_use")
    if not any(each.standing in _ENDABLE for each in states.values()):
        problems = [
            Problem(f"tables.{table}", why, code=now.standing)
            for table, now in states.items()
            if (why := _WHY_NOT.get(now.standing))
        ]
        if not problems:  # the rows have gone, or their dates have moved, since the register was written
            raise _conflict("Nothing of this request has come due.", "has nothing due", "nothing_due")
        raise Conflict("Nothing that has come due of this request can be erased now.", problems=problems)


def _conflict(message: str, said: str, code: str) -> Conflict:
    return Conflict(message, problems=[Problem("request_id", said, code=code)])
