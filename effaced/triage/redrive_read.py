"""Reading redrives: how far one is, the result for each dead letter, and a list of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from effaced.core.clock import text
from effaced.core.errors import NotFound
from effaced.core.paging import PAGE, Page, after_key, decode, page_of
from effaced.deadletters.tables import Redrive, RedriveRow
from effaced.model import RedriveStatus
from effaced.triage.retry import RedriveResult


@dataclass(frozen=True, slots=True)
class RedriveView:
    """How far a redrive is. `skipped` says how many were left alone, by why."""

    id: UUID
    status: RedriveStatus
    filter: dict[str, Any]
    force: bool
    per_second: float | None
    by: str
    note_id: UUID
    total: int
    done: int
    requeued: int
    created_at: datetime
    ended_at: datetime | None
    ended_by: str | None
    skipped: dict[str, int]

    @property
    def running(self) -> bool:
        return self.status is RedriveStatus.RUNNING


_COLUMNS = [getattr(Redrive, name) for name in RedriveView.__slots__ if name != "skipped"]


def redrive_view(session: Session, redrive_id: UUID) -> RedriveView:
    """One redrive. Raises NotFound for an unknown id."""
    found = session.execute(select(*_COLUMNS).where(Redrive.id == redrive_id)).first()
    if found is None:
        raise NotFound("There is no such redrive.")
    why = select(RedriveRow.why, func.count().label("number")).where(
        RedriveRow.redrive_id == redrive_id, RedriveRow.requeued.is_(False)
    )
    skipped = {row.why: row.number for row in session.execute(why.group_by(RedriveRow.why))}
    return RedriveView(**found._asdict(), skipped=skipped)


def list_redrives(session: Session, *, after: str | None = None, limit: int = PAGE) -> Page[RedriveView]:
    """The newest first, without why letters were left alone."""
    order = (Redrive.created_at, Redrive.id)
    query = select(*_COLUMNS).order_by(*(each.desc() for each in order)).limit(limit + 1)
    if after:
        query = query.where(after_key(order, decode(after, datetime, UUID), descending=True))
    found = [RedriveView(**row._asdict(), skipped={}) for row in session.execute(query)]
    return page_of(found, limit, [(each.created_at, each.id) for each in found])


def redrive_results(
    session: Session, redrive_id: UUID, *, after: str | None = None, limit: int = PAGE
) -> Page[RedriveResult]:
    """The result for each dead letter so far, in the order in which they are taken."""
    query = select(RedriveRow.position, RedriveRow.dead_letter_id, RedriveRow.requeued, RedriveRow.why).where(
        RedriveRow.redrive_id == redrive_id, RedriveRow.requeued.is_not(None)
    )
    if after:
        query = query.where(after_key((RedriveRow.position,), decode(after, int)))
    rows = session.execute(query.order_by(RedriveRow.position).limit(limit + 1)).all()
    results = [RedriveResult(row.dead_letter_id, bool(row.requeued), row.why) for row in rows]
    return page_of(results, limit, [(row.position,) for row in rows])


def plain_redrive(redrive: RedriveView) -> dict[str, Any]:
    """As API and command line show it."""
    # A stored filter has a name of its own for the statuses.
    named = {"statuses": "status"}
    return {
        "id": str(redrive.id),
        "status": redrive.status.value,
        "filter": {named.get(name, name): value for name, value in redrive.filter.items()},
        "force": redrive.force,
        "per_second": redrive.per_second,
        "created_by": redrive.by,
        "total": redrive.total,
        "done": redrive.done,
        "retried": redrive.requeued,
        "skipped": redrive.skipped,
        "created_at": text(redrive.created_at),
        "ended_at": text(redrive.ended_at),
        "ended_by": redrive.ended_by,
    }


def plain_result(result: RedriveResult) -> dict[str, Any]:
    """Whether a dead letter is retried; else why not, for programs and for people."""
    return {
        "dead_letter_id": str(result.dead_letter_id),
        "retried": result.requeued,
        "code": None if result.requeued else result.code,
        "message": None if result.requeued else result.why,
    }
