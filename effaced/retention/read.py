"""Reading what is retained: for which request, in which table, why, until when, and what has come due."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.orm import Session

from effaced.core.crypto import Keyring
from effaced.core.errors import NotFound
from effaced.core.paging import PAGE, Page, after_key, count_up_to, decode, page_of
from effaced.datamap.plan.retention import DueRows, RetentionPlan
from effaced.requests.retention import Assessment, RetentionState, assess
from effaced.requests.tables import Request, Retention, RetentionEnding
from effaced.retention.run import is_due


class RetentionPhase(StrEnum):
    """What the register says of a retention, without looking at the rows."""

    KEPT = "kept"
    DUE = "due"
    """The first of it need not be kept any more."""
    ENDED = "ended"
    """Nothing of it is left, or a later erasure of the same person has taken it over."""


class EndingStatus(StrEnum):
    """How far ending the retentions of a request is."""

    RUNNING = "running"
    FAILED = "failed"
    """Nobody is at it, and the last attempt failed."""
    DUE = "due"
    """Nobody is at it, and something is due."""
    FINISHED = "finished"
    """Nothing is due."""


@dataclass(frozen=True, slots=True)
class RetentionFilter:
    """Which retentions; all that are given have to hold."""

    request_id: UUID | None = None
    table: str | None = None
    due_before: date | None = None
    state: RetentionPhase | None = None


@dataclass(frozen=True, slots=True)
class RetentionLine:
    """One table of one request. `reasons` are (basis, until) as the map in force has them.

    `standing` and `ended` are counted at this moment; both are None where nobody asked for them. While the
    request's rows are being erased, `erasing` says how many are done, of how many (0: not counted yet).
    """

    id: UUID
    request_id: UUID
    ref: str
    table: str
    reasons: tuple[tuple[str, str | None], ...]
    rows: int
    undated: int
    first_due: date | None
    error: str | None
    created_at: datetime
    looked_at: datetime
    closed_at: datetime | None
    standing: RetentionState | None = None
    ended: DueRows | None = None
    erasing: tuple[int, int] | None = None

    def phase(self, today: date) -> RetentionPhase:
        if self.closed_at is not None:
            return RetentionPhase.ENDED
        due = self.first_due is not None and self.first_due <= today
        return RetentionPhase.DUE if due else RetentionPhase.KEPT


@dataclass(frozen=True, slots=True)
class Ending:
    """How far the end of a request's retentions is; `by` and `erasing` while it is under way."""

    request_id: UUID
    status: EndingStatus
    lines: tuple[RetentionLine, ...]
    by: str | None = None
    erasing: tuple[int, int] | None = None

    @property
    def error(self) -> str | None:
        return next((each.error for each in self.lines if each.error), None)


def list_retentions(
    session: Session,
    plan: RetentionPlan,
    which: RetentionFilter,
    *,
    by_due_date: bool = False,
    after: str | None = None,
    limit: int = PAGE,
) -> Page[RetentionLine]:
    """The register, in the order of the erasures; by due date only what is open and has one."""
    query = _register().where(*_conditions(which, plan.today))
    order: tuple[Any, ...] = (Retention.id,)
    if by_due_date:
        order = (Retention.first_due, Retention.id)
        query = query.where(Retention.closed_at.is_(None), Retention.first_due.is_not(None))
    if after:
        query = query.where(after_key(order, decode(after, *((date, UUID) if by_due_date else (UUID,)))))
    rows = session.execute(query.order_by(*order).limit(limit + 1)).all()
    lines = [_line(plan, retention, ref, None, ending) for retention, ref, _, ending in rows]
    keys = [(each.first_due, each.id) if by_due_date and each.first_due else (each.id,) for each in lines]
    return page_of(lines, limit, keys)


def get_retention(
    session: Session, keyring: Keyring, plan: RetentionPlan, retention_id: UUID
) -> RetentionLine:
    """One retention; if it is open, counted now by the map in force."""
    found = session.execute(_register().where(Retention.id == retention_id)).first()
    if found is None:
        raise NotFound("There is no such retention.")
    retention, ref, people, ending = found
    now = None if retention.closed_at else assess(session, keyring, plan, retention, people)
    return _line(plan, retention, ref, now, ending)


def get_ending(session: Session, plan: RetentionPlan, request_id: UUID) -> Ending:
    """Refuses a request that has never retained anything."""
    rows = session.execute(_register().where(Retention.request_id == request_id).order_by(Retention.id)).all()
    if not rows:
        raise NotFound("No request with this id has retained anything.")
    lines = tuple(_line(plan, retention, ref, None, ending) for retention, ref, _, ending in rows)
    ending = rows[0][3]
    if ending is not None:
        erasing = (ending.rows, ending.of)
        return Ending(request_id, EndingStatus.RUNNING, lines, ending.actor, erasing)
    due = [each for each in lines if each.phase(plan.today) is RetentionPhase.DUE]
    failed = any(each.error for each in due)
    status = EndingStatus.FAILED if failed else EndingStatus.DUE if due else EndingStatus.FINISHED
    return Ending(request_id, status, lines)


def _register() -> Select[*tuple[Any, ...]]:
    """Retention, ref and kind of people of its request, and its ending while it is under way."""
    return (
        select(Retention, Request.ref, Request.subject_type, RetentionEnding)
        .join(Request, Retention.request_id == Request.id)
        .outerjoin(RetentionEnding, Retention.request_id == RetentionEnding.request_id)
    )


def _conditions(which: RetentionFilter, today: date) -> list[ColumnElement[bool]]:
    conditions = []
    if which.request_id is not None:
        conditions.append(Retention.request_id == which.request_id)
    if which.table is not None:
        conditions.append(Retention.table_name == which.table)
    if which.due_before is not None:
        conditions.append(Retention.first_due < which.due_before)
    if which.state is RetentionPhase.DUE:
        conditions.append(is_due(today))
    elif which.state is RetentionPhase.KEPT:
        conditions.append(Retention.closed_at.is_(None))
        conditions.append(or_(Retention.first_due.is_(None), Retention.first_due > today))
    elif which.state is RetentionPhase.ENDED:
        conditions.append(Retention.closed_at.is_not(None))
    return conditions


def list_kept(
    session: Session, plan: RetentionPlan, *, after: str | None = None, limit: int = PAGE
) -> Page[RetentionLine]:
    """Everything that is retained, in the order of the erasures."""
    query = select(Retention, Request.ref).join(Request).where(Retention.closed_at.is_(None))
    if after:
        query = query.where(after_key((Retention.id,), decode(after, UUID)))
    rows = session.execute(query.order_by(Retention.id).limit(limit + 1)).all()
    lines = [_line(plan, retention, ref) for retention, ref in rows]
    return page_of(lines, limit, [(each.id,) for each in lines])


def list_due(
    session: Session,
    keyring: Keyring,
    plan: RetentionPlan,
    *,
    after: str | None = None,
    limit: int = PAGE,
    only: list[UUID] | None = None,
) -> Page[RetentionLine]:
    """What has come due, longest first, each counted now by the map in force; of some requests, or of all."""
    query = _register().where(is_due(plan.today))
    order = (Retention.first_due, Retention.id)
    if after:
        query = query.where(after_key(order, decode(after, date, UUID)))
    if only is not None:
        query = query.where(Retention.request_id.in_(only))
    rows = session.execute(query.order_by(*order).limit(limit + 1)).all()
    lines = [
        _line(plan, each, ref, assess(session, keyring, plan, each, people), ending)
        for each, ref, people, ending in rows[:limit]
    ]
    # The one beyond the page is not looked at.
    lines += [_line(plan, each, ref) for each, ref, *_ in rows[limit:]]
    return page_of(lines, limit, [(each.first_due or plan.today, each.id) for each in lines])


def count_due(session: Session, today: date) -> int:
    """How many lines `list_due` has; 10,001 stands for any number above 10,000."""
    return count_up_to(session, select(Retention.id).where(is_due(today)))


def count_kept(session: Session) -> int:
    return session.scalar(select(func.count()).where(Retention.closed_at.is_(None))) or 0


def retention_json(line: RetentionLine) -> dict[str, Any]:
    """The line as JSON for the API and the command line."""
    plain: dict[str, Any] = {
        "request": line.ref,
        "table": line.table,
        "retained": [{"basis": basis, "until": until} for basis, until in line.reasons],
        "first_due": line.first_due.isoformat() if line.first_due else None,
        "rows": line.rows,
        "rows_without_a_date": line.undated,
        "error": line.error,
    }
    if line.standing and line.ended:
        plain["standing"] = line.standing.value
        plain["due"] = {
            "deleted": line.ended.deleted,
            "anonymised": line.ended.changed,
            "waiting": line.ended.waiting,
        }
        done, of = line.erasing or (0, 0)
        plain["erasing"] = {"rows": done, "of": of} if line.erasing else None
    return plain


def _line(
    plan: RetentionPlan,
    retention: Retention,
    ref: str,
    now: Assessment | None = None,
    ending: RetentionEnding | None = None,
) -> RetentionLine:
    rule = (plan.data_map.whole or plan.data_map).tables.get(retention.table_name)
    reasons = dict.fromkeys((each.basis, each.until) for each in rule.retained) if rule else {}
    return RetentionLine(
        id=retention.id,
        request_id=retention.request_id,
        ref=ref,
        table=retention.table_name,
        reasons=tuple(reasons),
        rows=retention.rows,
        undated=retention.undated,
        first_due=retention.first_due,
        error=retention.error,
        created_at=retention.created_at,
        looked_at=retention.looked_at,
        closed_at=retention.closed_at,
        standing=now.standing if now else None,
        ended=now.ended if now else None,
        erasing=(ending.rows, ending.of) if ending else None,
    )
