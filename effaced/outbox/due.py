"""Which resolvers have something to do, and how many entries stand where."""

from __future__ import annotations

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from effaced import clock
from effaced.model import OutboxStatus
from effaced.outbox.claim import FRESH, GATED, LEASED
from effaced.outbox.flow import not_paused
from effaced.outbox.tables import OutboxRow

_UNVERIFIED = OutboxRow.verify_due_at.is_not(None)


def due_resolvers(session: Session) -> set[str]:
    """The resolvers with at least one entry that may be claimed now. Paused ones are not among them."""
    now = clock.now()
    branches: tuple[tuple[ColumnElement[bool], ColumnElement[bool] | None], ...] = (
        (FRESH, None),
        (GATED, OutboxRow.gate <= now),
        (LEASED, OutboxRow.gate <= now),
        (_UNVERIFIED, OutboxRow.verify_due_at <= now),
    )
    found: set[str] = set()
    for branch, gate in branches:
        for name in _names(session, branch):
            if name in found:
                continue
            due = select(OutboxRow.entry_id).where(branch, OutboxRow.resolver == name)
            if gate is not None:
                due = due.where(gate)
            if session.execute(due.limit(1)).first() is not None:
                found.add(name)
    return not_paused(session, found) if found else found


def status_counts(session: Session) -> dict[OutboxStatus, int]:
    """How many entries stand where; every status is there, with zero if need be."""
    counted = session.execute(select(OutboxRow.status, func.count()).group_by(OutboxRow.status))
    return dict.fromkeys(OutboxStatus, 0) | {row[0]: row[1] for row in counted}


def _names(session: Session, branch: ColumnElement[bool]) -> list[str]:
    # From name to name along the index: a DISTINCT would read every waiting entry.
    names: list[str] = []
    last: str | None = None
    while True:
        beyond = OutboxRow.resolver > (last or "")
        last = session.scalar(select(func.min(OutboxRow.resolver)).where(branch, beyond))
        if last is None:
            return names
        names.append(last)
