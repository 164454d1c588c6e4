"""Retrying a whole set of dead letters, in small steps that anybody may make.

The letters are chosen once, at the start. A step takes the next few in one transaction with what became of
each, so that a step that dies leaves nothing half done and the next one goes on where it was. Each gets a
moment of its own at which it may be called: a vendor that has just come back is not flooded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Uuid, func, insert, literal, select, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.events import RedriveEnded, RedriveStarted
from effaced.audit.notes import NoteRef, note_fields, write_note
from effaced.core.crypto import Keyring
from effaced.core.db import Database, dbtime
from effaced.core.db.sql import update_rows
from effaced.core.errors import Conflict, NotFound, Problem, Refused
from effaced.core.log import get_logger
from effaced.core.paging import count_up_to
from effaced.deadletters.read import DeadLetterFilter, matching
from effaced.deadletters.rules import OPEN
from effaced.deadletters.tables import DeadLetter, Redrive, RedriveRow
from effaced.model import RedriveStatus, new_id
from effaced.triage.retry import Pace, RedriveResult, replay

MOST_OF_A_SET = 100_000
STEP = 100
PER_SECOND = 10.0
FASTEST = 1_000.0
# What is released, but not called yet. A cancel can't take it back, so it is little.
AHEAD = timedelta(seconds=60)
_log = get_logger(__name__)


def taken_of(which: DeadLetterFilter) -> DeadLetterFilter | None:
    """Those of a filter that a redrive takes, which are the open ones; None if it asks for others only."""
    statuses = tuple(each for each in which.statuses or OPEN if each in OPEN)
    return replace(which, statuses=statuses) if statuses else None


def count_taken(session: Session, which: DeadLetterFilter) -> int:
    """How many letters a redrive of this filter would choose now."""
    chosen = taken_of(which)
    return count_up_to(session, matching(chosen, DeadLetter.id), MOST_OF_A_SET - 1) if chosen else 0


def start_redrive(
    session: Session,
    keyring: Keyring,
    which: DeadLetterFilter,
    *,
    actor: str,
    reason: str,
    force: bool = False,
    per_second: float | None = PER_SECOND,
) -> UUID:
    """Choose the open letters of a filter, at most 100,000, and have them tried again; the redrive's id.

    Refuses a filter that fits no open letter. Nothing is requeued before the first step.
    """
    if per_second is not None and not 0.01 <= per_second <= FASTEST:
        said = f"must be from 0.01 to {FASTEST:g}"
        raise Refused(
            f"The pace {said} a second.", problems=[Problem("per_second", said, code="out_of_range")]
        )
    chosen = taken_of(which)
    if chosen is None:
        raise _nothing_matches()
    note = write_note(session, keyring, reason, author=actor)
    redrive_id, now = new_id(), dbtime.now(session)
    session.execute(
        insert(Redrive).values(
            id=redrive_id,
            status=RedriveStatus.RUNNING,
            filter=chosen.plain(),
            force=force,
            per_second=per_second,
            by=actor,
            note_id=note.note_id,
            note_hmac=note.note_hmac,
            total=0,
            done=0,
            requeued=0,
            next_at=now,
            created_at=now,
        )
    )
    total = _choose(session, redrive_id, chosen)
    if not total:
        raise _nothing_matches()
    session.execute(update(Redrive).where(Redrive.id == redrive_id).values(total=total))
    append_one(
        session,
        RedriveStarted(redrive_id=redrive_id, chosen=total, force=force, **note_fields(note)),
        actor=actor,
    )
    return redrive_id


def _nothing_matches() -> Refused:
    said = "fits no open dead letter"
    return Refused(
        f"Nothing to requeue: the filter {said}.", problems=[Problem("filter", said, code="nothing_matches")]
    )


def cancel_redrive(session: Session, redrive_id: UUID, *, actor: str) -> None:
    """End it where it is. What has been requeued stays so, the other letters stay as they were."""
    redrive = session.scalars(select(Redrive).where(Redrive.id == redrive_id).with_for_update()).first()
    if redrive is None:
        raise NotFound("There is no such redrive.")
    if redrive.status is not RedriveStatus.RUNNING:
        ended = redrive.status.value
        raise Conflict(
            f"This redrive is {ended} already.", problems=[Problem("status", f"is {ended}", code="ended")]
        )
    _end(session, redrive, RedriveStatus.CANCELLED, actor)


def step(session: Session, redrive_id: UUID, *, ahead: timedelta = AHEAD, limit: int = STEP) -> bool:
    """Requeue the next few. Returns whether there is more that may be requeued now.

    Whoever finds the redrive in other hands, or ended, does nothing.
    """
    redrive = _take(session, redrive_id)
    if redrive is None:
        return False
    now = dbtime.now(session)
    pace = Pace(redrive.per_second, _next_at(redrive, now, ahead))
    rows = _next(session, redrive, min(limit, _allowance(pace, now + ahead)))
    ids = [letter_id for _, letter_id in rows]
    note = NoteRef(redrive.note_id, redrive.note_hmac)
    results = replay(session, ids, actor=redrive.by, note=note, force=redrive.force, pace=pace) if ids else []
    _write_down(session, redrive, rows, results)
    redrive.next_at = pace.at
    if redrive.done >= redrive.total:
        _end(session, redrive, RedriveStatus.FINISHED, redrive.by)
        return False
    return len(rows) == limit


def running(session: Session) -> list[UUID]:
    """The redrives that are not at their end, oldest first."""
    return list(
        session.scalars(
            select(Redrive.id).where(Redrive.status == RedriveStatus.RUNNING).order_by(Redrive.id)
        )
    )


def advance(db: Database, redrive_id: UUID, *, ahead: timedelta = AHEAD) -> bool:
    """One step in a transaction of its own. A letter that can't be requeued does not hold the others up."""
    try:
        with db.begin() as session:
            return step(session, redrive_id, ahead=ahead)
    except OperationalError as error:  # a lock that was not given in time: the next step will have it
        _log.warning("redrive_step_failed", redrive=str(redrive_id), error=type(error).__name__)
        return False
    except Exception as error:
        _log.warning("redrive_step_failed", redrive=str(redrive_id), error=type(error).__name__)
    for _ in range(STEP):
        try:
            with db.begin() as session:
                if not step(session, redrive_id, ahead=ahead, limit=1):
                    return False
        except OperationalError:
            return False
        except Exception as error:
            _log.error("redrive_row_failed", redrive=str(redrive_id), error=type(error).__name__)
            with db.begin() as session:
                _give_up_next(session, redrive_id)
    return True


def advance_all(db: Database, *, ahead: timedelta = AHEAD, steps: int = 50) -> int:
    """Advance every redrive as far as its pace allows, each by so many steps at most.

    Returns how many there are.
    """
    with db.read() as session:
        found = running(session)
    for redrive_id in found:
        for _ in range(steps):
            if not advance(db, redrive_id, ahead=ahead):
                break
    return len(found)


def _choose(session: Session, redrive_id: UUID, which: DeadLetterFilter) -> int:
    order = (DeadLetter.created_at, DeadLetter.id)
    numbered = matching(
        which, literal(redrive_id, Uuid()), func.row_number().over(order_by=order), DeadLetter.id
    )
    session.execute(
        insert(RedriveRow).from_select(
            ["redrive_id", "position", "dead_letter_id"],
            numbered.order_by(*order).limit(MOST_OF_A_SET),
            include_defaults=False,
        )
    )
    mine = select(func.count()).select_from(RedriveRow).where(RedriveRow.redrive_id == redrive_id)
    return session.scalar(mine) or 0


def _take(session: Session, redrive_id: UUID) -> Redrive | None:
    # Skipped, not waited for: who holds it makes the same step.
    query = select(Redrive).where(Redrive.id == redrive_id, Redrive.status == RedriveStatus.RUNNING)
    return session.scalars(query.with_for_update(skip_locked=True)).first()


def _next_at(redrive: Redrive, now: datetime, ahead: timedelta) -> datetime:
    """When the next one may be tried."""
    at, step = redrive.next_at or now, timedelta(seconds=1 / (redrive.per_second or FASTEST))
    # Nobody goes further ahead than that. If it looks so, the clock was set back since.
    return now if at < now or at > now + 2 * ahead + step else at


def _allowance(pace: Pace, until: datetime) -> int:
    """How many may be released until then."""
    if pace.per_second is None:
        return STEP
    room: timedelta = until - pace.at
    return max(0, math.ceil(room.total_seconds() * pace.per_second))


def _next(session: Session, redrive: Redrive, limit: int) -> Sequence[tuple[int, UUID]]:
    query = select(RedriveRow.position, RedriveRow.dead_letter_id).where(
        RedriveRow.redrive_id == redrive.id, RedriveRow.position > redrive.done
    )
    return [
        (row.position, row.dead_letter_id)
        for row in session.execute(query.order_by(RedriveRow.position).limit(limit))
    ]


def _write_down(
    session: Session,
    redrive: Redrive,
    rows: Sequence[tuple[int, UUID]],
    results: Sequence[RedriveResult],
) -> None:
    if not rows:
        return
    update_rows(
        session,
        RedriveRow,
        [
            {"redrive_id": redrive.id, "position": position, "requeued": result.requeued, "why": result.code}
            for (position, _), result in zip(rows, results, strict=True)
        ],
    )
    redrive.done += len(rows)
    redrive.requeued += sum(each.requeued for each in results)


def _give_up_next(session: Session, redrive_id: UUID) -> None:
    redrive = _take(session, redrive_id)
    if redrive is None:
        return
    rows = _next(session, redrive, 1)
    _write_down(session, redrive, rows, [RedriveResult(each, False, "failed") for _, each in rows])
    if redrive.done >= redrive.total:
        _end(session, redrive, RedriveStatus.FINISHED, redrive.by)


def _end(session: Session, redrive: Redrive, status: RedriveStatus, actor: str) -> None:
    redrive.status, redrive.ended_at, redrive.ended_by = status, dbtime.now(session), actor
    event = RedriveEnded(
        redrive_id=redrive.id,
        requeued=redrive.requeued,
        skipped=redrive.done - redrive.requeued,
        cancelled=status is RedriveStatus.CANCELLED,
    )
    append_one(session, event, actor=actor)
