"""Counting down what a request still waits for: at zero, the operation is complete."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced.model import OutboxOperation
from effaced.outbox.tables import Operation, operations
from effaced.sql import among, update_rows

Completed = tuple[UUID, OutboxOperation]


def count_down(session: Session, done: Counter[Completed]) -> list[Completed]:
    """Take these many entries off their operations' counters; which of the operations are complete now.

    Entries are locked before this, requests and dead letters after it: the order that everybody keeps.
    """
    if not done:
        return []
    counters = {
        (row.request_id, row.operation): row.remaining
        for row in session.execute(
            select(operations.c.request_id, operations.c.operation, operations.c.remaining)
            .where(among(session, operations.c.request_id, {request_id for request_id, _ in done}))
            .order_by(operations.c.request_id, operations.c.operation)
            .with_for_update()
        )
    }
    update_rows(
        session,
        Operation,
        [
            {
                "request_id": request_id,
                "operation": operation,
                "remaining": counters[request_id, operation] - number,
            }
            for (request_id, operation), number in done.items()
        ],
    )
    return [key for key, number in done.items() if counters[key] == number]
