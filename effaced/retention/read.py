"""Reading what is retained: for which request, in which table, why, until when, and what has come due."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from effaced.core.crypto import Keyring
from effaced.core.paging import PAGE, Page, after_key, count_up_to, decode, page_of
from effaced.datamap.plan.retention import DueRows, RetentionPlan
from effaced.requests.retention import Assessment, RetentionState, assess
from effaced.requests.tables import Request, Retention, RetentionEnding
from effaced.retention.run import is_due


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
    standing: RetentionState | None = None
    ended: DueRows | None = None
    erasing: tuple[int, int] | None = None


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
    query = (
        select(Retention, Request.ref, Request.subject_type, RetentionEnding)
        .join(Request, Retention.request_id == Request.id)
        .outerjoin(RetentionEnding, Retention.request_id == RetentionEnding.request_id)
        .where(is_due(plan.today))
    )
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
        standing=now.standing if now else None,
        ended=now.ended if now else None,
        erasing=(ending.rows, ending.of) if ending else None,
    )
