"""Counting down what a request still waits for: at zero, the operation is complete."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from effaced.db import is_postgres
from effaced.model import OutboxOperation
from effaced.outbox.tables import Operation, operations
from effaced.sql import among_ids, as_ids, update_rows
from effaced.together import run

Completed = tuple[UUID, OutboxOperation]


def count_down(session: Session, done: Counter[Completed]) -> list[Completed]:
    """Take these many entries off their operations' counters; which of the operations are complete now.

    Entries are locked before this, requests and dead letters after it: the order that everybody keeps.
    """
    if not done:
        return []
    locked = run(session, _locking(is_postgres(session)), as_ids(session, {each for each, _ in done})).rows
    counters = {(request_id, operation): remaining for request_id, operation, remaining in locked}
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


@cache
def _locking(postgres: bool) -> Select[*tuple[Any, ...]]:
    return (
        select(operations.c.request_id, operations.c.operation, operations.c.remaining)
        .where(among_ids(operations.c.request_id, postgres=postgres))
        .order_by(operations.c.request_id, operations.c.operation)
        .with_for_update()
    )
