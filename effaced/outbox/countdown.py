"""The counters of an operation: calls that have not succeeded, and read-backs that are not confirmed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from effaced.core.db import is_postgres
from effaced.core.db.pipeline import run_statement
from effaced.core.db.sql import bind_ids, key_in_bound_ids, update_rows
from effaced.model import OutboxOperation
from effaced.outbox.tables import Operation, operations

Completed = tuple[UUID, OutboxOperation]


@dataclass(frozen=True, slots=True)
class Progress:
    """Which operations this transaction has brought to an end.

    Of those in `succeeded` the last call has succeeded, with how many read-backs unconfirmed; those in
    `closed` have nothing left to do or to verify.
    """

    succeeded: Mapping[Completed, int] = field(default_factory=dict)
    closed: tuple[Completed, ...] = ()


def count_down(
    session: Session, done: Counter[Completed], unverified: Counter[Completed] | None = None
) -> Progress:
    """Count `done` calls as succeeded, and `unverified` more read-backs (fewer, if negative) as unconfirmed.

    The counters stay locked until the transaction ends, so exactly one of several transactions closes an
    operation. The order of locks everywhere is entries, counters, requests, dead letters.
    """
    more = unverified or Counter()
    keys = list(dict.fromkeys([*done, *more]))
    if not keys:
        return Progress()
    locked = run_statement(
        session, _lock_query(is_postgres(session)), bind_ids(session, {each for each, _ in keys})
    ).rows
    counters = {(request_id, operation): tuple(counts) for request_id, operation, *counts in locked}
    after = {key: (counters[key][0] - done[key], counters[key][1] + more[key]) for key in keys}
    rows: list[dict[str, Any]] = [
        {"request_id": request_id, "operation": operation, "remaining": remaining}
        for (request_id, operation), (remaining, _) in after.items()
    ]
    if any(more.values()):
        for row, (_, open_) in zip(rows, after.values(), strict=True):
            row["unverified"] = open_
    update_rows(session, Operation, rows)
    return Progress(
        succeeded={key: open_ for key, (remaining, open_) in after.items() if done[key] and not remaining},
        closed=tuple(key for key in keys if after[key] == (0, 0) != counters[key]),
    )


def remaining(session: Session, request_id: UUID, operation: OutboxOperation) -> int:
    """How many calls of the operation have not succeeded."""
    mine = operations.c.request_id == request_id, operations.c.operation == operation
    return int(session.execute(select(operations.c.remaining).where(*mine)).scalar_one())


@cache
def _lock_query(postgres: bool) -> Select[*tuple[Any, ...]]:
    columns = operations.c.request_id, operations.c.operation, operations.c.remaining, operations.c.unverified
    return (
        select(*columns)
        .where(key_in_bound_ids(operations.c.request_id, postgres=postgres))
        .order_by(operations.c.request_id, operations.c.operation)
        .with_for_update()
    )
