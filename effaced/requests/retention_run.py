"""Ending retentions, one transaction per request, and keeping the register of them true."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import Session

from effaced import clock
from effaced.audit.append import SYSTEM, append_one
from effaced.audit.events import RetentionFailed
from effaced.audit.notes import write_note
from effaced.crypto import Keyring
from effaced.datamap.retention import RetentionPlan
from effaced.db import Database
from effaced.errors import EffacedError, Refused
from effaced.log import get_logger
from effaced.requests.retention import Done, end, look_again, open_of
from effaced.requests.tables import Request, Retention

_log = get_logger(__name__)
_LOT = 200
# Dates may be filled in, rows may go by the company's own hand: so often everything is looked at again.
_UNDATED_EVERY = timedelta(days=1)
_ALL_EVERY = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one request: the rows that went, or why nothing was changed."""

    request_id: UUID
    done: tuple[Done, ...] = ()
    error: str | None = None

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.done)


def is_due(today: date) -> ColumnElement[bool]:
    """What the number, the list and the button go by."""
    return and_(Retention.closed_at.is_(None), Retention.first_due <= today)


def end_requests(
    database: Database,
    keyring: Keyring,
    plan: RetentionPlan,
    request_ids: Iterable[UUID],
    *,
    actor: str = SYSTEM,
    reason: str | None = None,
) -> list[Result]:
    """Erase what has come due of these requests. One that fails is as it was, and holds no other up.

    A person gives a reason, and is refused without one before anything happens.
    """
    results = []
    for request_id in request_ids:
        try:
            with database.begin() as session:
                note = None
                if reason is not None:
                    note = write_note(session, keyring, reason, author=actor, request_id=request_id)
                done = end(session, keyring, plan, request_id, actor=actor, note=note)
            results.append(Result(request_id, tuple(done)))
        except Refused:
            raise
        except Exception as error:
            name = type(error).__name__
            _log.error("retention_failed", request=str(request_id), error=name)
            with database.begin() as session:
                _failed(session, plan, request_id, name)
            said = error.message if isinstance(error, EffacedError) else f"It failed ({name})."
            results.append(Result(request_id, error=said))
    return results


def due_requests(session: Session, plan: RetentionPlan, *, limit: int | None = None) -> list[UUID]:
    """Whose retention has ended, those first that have not been looked at for longest."""
    query = select(Retention.request_id, Retention.looked_at).where(is_due(plan.today))
    rows = session.execute(query.order_by(Retention.looked_at, Retention.id).limit(limit))
    return list(dict.fromkeys(row.request_id for row in rows))


def end_due(database: Database, keyring: Keyring, plan: RetentionPlan) -> list[Result]:
    """Erase what has come due, as far as one pass goes; the next one takes the rest."""
    with database.read() as session:
        ids = due_requests(session, plan, limit=_LOT)
    return end_requests(database, keyring, plan, ids)


def refresh(database: Database, keyring: Keyring, plan: RetentionPlan) -> int:
    """Look again at what the map or the data may have changed, a lot at a time; at how many requests."""
    with database.read() as session:
        query = select(Retention.request_id, Retention.looked_at).where(
            Retention.closed_at.is_(None), _stale(plan)
        )
        rows = session.execute(query.order_by(Retention.looked_at).limit(_LOT))
        ids = list(dict.fromkeys(row.request_id for row in rows))
    seen = 0
    for request_id in ids:
        try:
            with database.begin() as session:
                request = session.get_one(Request, request_id)
                look_again(session, keyring, plan, request, open_of(session, request_id))
            seen += 1
        except Exception as error:
            _log.error("retention_look_failed", request=str(request_id), error=type(error).__name__)
            with database.begin() as session:
                _touch(open_of(session, request_id))
    return seen


def _stale(plan: RetentionPlan) -> ColumnElement[bool]:
    now = clock.now()
    yesterday = Retention.looked_at < now - _UNDATED_EVERY
    return or_(
        Retention.datamap_hash != plan.data_map.hash,
        and_(or_(Retention.undated > 0, Retention.first_due <= plan.today), yesterday),
        Retention.looked_at < now - _ALL_EVERY,
    )


def _failed(session: Session, plan: RetentionPlan, request_id: UUID, error: str) -> None:
    due = [each for each in open_of(session, request_id) if each.first_due and each.first_due <= plan.today]
    _touch(due)
    # Told once, not at every try.
    if any(each.error != error for each in due):
        request = session.get_one(Request, request_id)
        append_one(session, RetentionFailed(error=error), request_id=request_id, subject=request.subject)
    for each in due:
        each.error = error


def _touch(retentions: Sequence[Retention]) -> None:
    for each in retentions:
        each.looked_at = clock.now()
