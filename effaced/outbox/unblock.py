"""Releasing entries that wait for others of their request."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from effaced.core.db import dbtime
from effaced.core.db.sql import key_in
from effaced.doorbell import ring_after_commit
from effaced.model import OutboxOperation, OutboxStatus, StepOutcome
from effaced.outbox.entry import Entry
from effaced.outbox.tables import outbox


def waiting(session: Session, request_ids: Sequence[UUID]) -> ColumnElement[bool]:
    """Entries of these requests that wait for others. They are locked, by id, with the entry that ends."""
    return key_in(session, outbox.c.request_id, set(request_ids)) & outbox.c.waits_for.is_not(None)


def unblock(session: Session, ended: Sequence[Entry]) -> None:
    """Release what waited for these entries only; the caller holds the locks of `waiting`."""
    if not ended:
        return
    through = {(each.request_id, each.operation, each.resolver) for each in ended}
    rows = session.execute(
        select(
            outbox.c.entry_id, outbox.c.request_id, outbox.c.operation, outbox.c.resolver, outbox.c.waits_for
        ).where(waiting(session, [each.request_id for each in ended]))
    ).all()
    if rows:
        through -= _steps_with_calls_left(session, through)
    for row in rows:
        left = [name for name in row.waits_for if (row.request_id, row.operation, name) not in through]
        if len(left) == len(row.waits_for):
            continue
        # The time in which it has to end begins when it may be called.
        begins = {} if left else {"aging_since": dbtime.now(session)}
        session.execute(
            update(outbox).where(outbox.c.entry_id == row.entry_id).values(waits_for=left or None, **begins)
        )
        if not left:
            ring_after_commit(session, {row.resolver})


_Step = tuple[UUID, OutboxOperation, str]


def _steps_with_calls_left(session: Session, steps: set[_Step]) -> set[_Step]:
    """Those with another call to make: a system may know the person by more than one reference."""
    rows = session.execute(
        select(outbox.c.request_id, outbox.c.operation, outbox.c.resolver).where(
            key_in(session, outbox.c.request_id, {request_id for request_id, _, _ in steps}),
            outbox.c.resolver.in_({resolver for _, _, resolver in steps}),
            outbox.c.status != OutboxStatus.SUCCEEDED,
            outbox.c.outcome.is_distinct_from(StepOutcome.SUPERSEDED),
        )
    )
    return {(row.request_id, row.operation, row.resolver) for row in rows}
