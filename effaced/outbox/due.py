"""Which resolvers have due entries, and how many entries have which status."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement, Table, func, literal_column, select
from sqlalchemy.orm import Session

from effaced.core.db import dbtime
from effaced.model import OutboxStatus
from effaced.outbox.claim import FRESH, GATED, LEASED
from effaced.outbox.flow import not_paused
from effaced.outbox.tables import OutboxRow, outbox

_LOOKED_AT = 100
_UNVERIFIED = OutboxRow.verify_due_at.is_not(None)


def due_resolvers(session: Session) -> set[str]:
    """The resolvers with at least one entry that may be claimed now. Paused ones are not among them."""
    now = dbtime.now(session)
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


def status_counts(session: Session, entries: Table = outbox) -> dict[OutboxStatus, int]:
    """How many entries have which status; every status is there, with zero if need be."""
    counted = session.execute(select(entries.c.status, func.count()).group_by(entries.c.status))
    return dict.fromkeys(OutboxStatus, 0) | {OutboxStatus(status): number for status, number in counted}


def counts_by_resolver(
    session: Session, statuses: Collection[OutboxStatus]
) -> dict[tuple[str, OutboxStatus], int]:
    """How many entries of each resolver have which status. Not for `succeeded`: too many."""
    # As literals: a generic plan could not know that hardly any row is in one of them.
    chosen = OutboxRow.status.in_(
        [literal_column(f"'{status}'", OutboxRow.status.type) for status in statuses]
    )
    query = select(OutboxRow.resolver, OutboxRow.status, func.count()).where(chosen)
    counted = session.execute(query.group_by(OutboxRow.resolver, OutboxRow.status))
    return {(name, status): number for name, status, number in counted}


def oldest_due(session: Session) -> dict[str, datetime]:
    """Since when something of each resolver could have been called. Paused ones are among them."""
    now = dbtime.now(session)
    found: dict[str, datetime] = {}
    for branch in (FRESH, GATED, LEASED):
        for name in _names(session, branch):
            due = select(OutboxRow.gate.label("since")).where(branch, OutboxRow.resolver == name)
            due = due.where(OutboxRow.gate <= now).order_by(OutboxRow.gate).limit(1)
            if branch is FRESH:
                # By the index; but one that was requeued or waited for others is not as old as it looks.
                due = select(OutboxRow.aging_since.label("since")).where(branch, OutboxRow.resolver == name)
                due = due.order_by(OutboxRow.enqueued_at, OutboxRow.entry_id).limit(_LOOKED_AT)
            since = session.scalar(select(func.min(due.subquery().c.since)))
            if since is not None:
                found[name] = min(found.get(name, since), since)
    return found


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
