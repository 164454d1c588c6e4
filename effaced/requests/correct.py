"""The rules of corrections: what is valid, what supersedes what, and which system gets which fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced.audit.events import RequestSuperseded
from effaced.core.errors import Problem, Refused
from effaced.datamap.model.data_map import DataMap
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.rectify import check_corrections
from effaced.deadletters.rules import SUPERSEDED
from effaced.model import Correction, RequestKind, SubjectKey
from effaced.requests.close import close_unexecuted
from effaced.requests.status import RequestEvent
from effaced.requests.tables import Request
from effaced.resolvers.registry import Registered


def validate_corrections(
    plan: ErasurePlan, kind: RequestKind, corrections: Sequence[Correction]
) -> list[Correction]:
    """Check the corrections, and return them under the names they are stored by.

    Refuses any with an erasure, none with a rectification, and what the data map does not allow.
    """
    if bool(corrections) != (kind is RequestKind.RECTIFICATION):
        said = "goes with a rectification only" if corrections else "is missing"
        raise Refused(
            f"Invalid request: `corrections` {said}.",
            problems=[Problem("corrections", said, code="not_allowed" if corrections else "missing")],
        )
    if not corrections:
        return []
    named = _named_by_category(plan.data_map, corrections)
    check_corrections(plan, named)
    return named


def _named_by_category(data_map: DataMap, corrections: Sequence[Correction]) -> list[Correction]:
    """Name a category that has one column by the category, also where the column was given."""
    only = {
        f"{table}.{column}": rule.category
        for rule in data_map.rectify.values()
        for table, column in rule.columns
        if len(rule.columns) == 1
    }
    return [Correction(only.get(each.column, each.column), each.value) for each in corrections]


def superseded_fields(data_map: DataMap, corrections: Iterable[Correction]) -> set[str]:
    """All names that older corrections of these fields may use: a category also stands for its columns."""
    names = {each.column for each in corrections}
    for name in list(names):
        rule = data_map.rectify.get(name)
        names |= {f"{table}.{column}" for table, column in rule.columns} if rule else set()
    return names


def corrections_for(
    data_map: DataMap, system: Registered, corrections: Sequence[Correction]
) -> tuple[Correction, ...]:
    """The corrections that a system gets: of fields it holds, and of the reference it knows the person by."""
    if system.fields is None:
        return tuple(corrections)
    key = _columns_of_ref(data_map, system.ref)
    return tuple(
        each
        for each in corrections
        if each.column in system.fields or key & _columns_of(data_map, each.column)
    )


def certain_refs(
    data_map: DataMap,
    systems: Iterable[Registered],
    refs: Mapping[str, str],
    corrections: Sequence[Correction],
) -> dict[str, str | None]:
    """The reference by which each system certainly knows the person; None where this corrects it."""
    changed = {column for each in corrections for column in _columns_of(data_map, each.column)}
    return {
        each.name: None if changed & _columns_of_ref(data_map, each.ref) else refs.get(each.ref)
        for each in systems
    }


def _columns_of(data_map: DataMap, name: str) -> set[tuple[str, str]]:
    rule = data_map.rectify.get(name)
    if rule is not None:
        return set(rule.columns)
    table, _, column = name.rpartition(".")
    return {(table, column)}


def _columns_of_ref(data_map: DataMap, kind: str) -> set[tuple[str, str]]:
    return {
        (data_map.subject, column) for rule in data_map.refs if rule.kind == kind for column in rule.columns
    }


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


def supersede_open_corrections(session: Session, subjects: Sequence[SubjectKey], *, by: Request) -> None:
    """Close this person's corrections that were not executed. One that is being executed notices itself."""
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
    event = RequestSuperseded(by=by.id)
    close_unexecuted(session, request, RequestEvent.SUPERSEDED, event, resolution=SUPERSEDED)
