"""Corrections among a person's other requests: who overtakes whom, and what each goes by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from effaced import clock
from effaced.audit.append import append_one
from effaced.audit.events import RequestSuperseded
from effaced.datamap.model import DataMap
from effaced.datamap.plan import ErasurePlan
from effaced.db import is_postgres
from effaced.model import Correction, RequestKind, RequestStatus, SubjectKey
from effaced.requests.tables import Request


def name_by_category(data_map: DataMap, corrections: Sequence[Correction]) -> list[Correction]:
    """A category of one column is known by its own name, also where the column was named."""
    only = {
        f"{table}.{column}": rule.category
        for rule in data_map.rectify.values()
        for table, column in rule.columns
        if len(rule.columns) == 1
    }
    return [Correction(only.get(each.column, each.column), each.value) for each in corrections]


def overtaken_fields(data_map: DataMap, corrections: Iterable[Correction]) -> set[str]:
    """By which names an older correction may have the same: a category also stands for its columns."""
    names = {each.column for each in corrections}
    for name in list(names):
        rule = data_map.rectify.get(name)
        names |= {f"{table}.{column}" for table, column in rule.columns} if rule else set()
    return names


def lock_person(session: Session, subjects: Sequence[SubjectKey]) -> None:
    """Have this person's requests executed one after the other: the next one sees what this one did.

    `subjects` is the person's key under every key of the ring: a request from before a rotation is
    executed after one from behind it, or before it, but not beside it.
    """
    if is_postgres(session):
        numbers = sorted(int.from_bytes(bytes.fromhex(each.hmac)[:8], signed=True) for each in subjects)
        lock = "SELECT pg_advisory_xact_lock(number) FROM unnest(CAST(:numbers AS bigint[])) AS number"
        session.execute(text(lock), {"numbers": numbers})


def erased_since(
    session: Session, plan: ErasurePlan, subjects: Sequence[SubjectKey], since: datetime
) -> Request | None:
    """The erasure that leaves nothing to correct for a request received at `since`.

    Where a person's row stays, any erasure does; where it goes, an earlier one was somebody else's who
    had the same key.
    """
    query = select(Request).where(
        Request.subject_hmac.in_([each.hmac for each in subjects]),
        Request.kind == RequestKind.ERASURE,
        Request.executed_at.is_not(None),
    )
    if not plan.data_map.tables[plan.data_map.subject].stays:
        query = query.where(Request.executed_at >= since)
    return session.scalars(query.order_by(Request.executed_at.desc()).limit(1)).first()


def cancel_open_corrections(session: Session, subjects: Sequence[SubjectKey], *, by: Request) -> None:
    """Close this person's corrections that were not carried out. One that just is being sees to itself."""
    waiting = session.scalars(
        select(Request)
        .where(
            Request.subject_hmac.in_([each.hmac for each in subjects]),
            Request.kind == RequestKind.RECTIFICATION,
            Request.closed_at.is_(None),
            Request.executed_at.is_(None),
        )
        .order_by(Request.id)
        .with_for_update(skip_locked=True)
    )
    for request in waiting:
        close_as_superseded(session, request, by)


def close_as_superseded(session: Session, request: Request, by: Request) -> None:
    request.status = RequestStatus.CANCELLED
    request.closed_at = clock.now()
    request.execute_at = request.subject_sealed = request.corrections_sealed = None
    append_one(session, RequestSuperseded(by=by.id), request_id=request.id, subject=request.subject)
