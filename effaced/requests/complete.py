"""Nothing is left to call and nothing left to verify: the request is completed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, cast
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Table, bindparam, exists, null, or_, select, update
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningUpdate

from effaced.core import clock
from effaced.core.db import UtcDateTime, is_postgres
from effaced.core.pipeline import Together
from effaced.core.sql import among_ids, as_ids
from effaced.model import OutboxOperation, RequestStatus
from effaced.notify.notices import RequestCompleted
from effaced.notify.write import announce
from effaced.outbox.tables import operations
from effaced.requests.duplicates import complete_statement, record_completed
from effaced.requests.tables import Request


def complete_operations(session: Session, completed: Sequence[tuple[UUID, OutboxOperation]]) -> None:
    """Close those of these requests that have nothing left to do, and their duplicates; forget whom they were
    about; have it told.

    A request is completed when all its calls have succeeded and none of them is unverified.
    """
    if not completed:
        return
    now = clock.now()
    ids = as_ids(session, {request_id for request_id, _ in completed})
    lock, close = _statements(is_postgres(session))
    with Together(session) as batch:
        batch.run(lock, ids)
        closed = batch.run(close, ids | {"at": now})
        duplicates = batch.run(complete_statement(is_postgres(session)), ids | {"at": now})
    record_completed(session, duplicates.rows)
    operations = dict(completed)
    announce(
        session,
        [
            *(RequestCompleted(request_id=each, operation=operations[each]) for (each,) in closed.rows),
            *(
                RequestCompleted(request_id=each[0], operation=OutboxOperation.ERASE)
                for each in duplicates.rows
            ),
        ],
    )


def _anything_left(request: Table) -> ColumnElement[bool]:
    """The counters were locked by whoever counted them down, so they can't change under this."""
    return exists().where(
        operations.c.request_id == request.c.id,
        or_(operations.c.remaining > 0, operations.c.unverified > 0),
    )


@cache
def _statements(postgres: bool) -> tuple[Select[*tuple[Any, ...]], ReturningUpdate[*tuple[Any, ...]]]:
    """One that locks the requests in their order, and one that closes those that run."""
    table = cast(Table, Request.__table__)
    mine, at = among_ids(table.c.id, postgres=postgres), bindparam("at", type_=UtcDateTime())
    closed = {
        "status": RequestStatus.COMPLETED,
        "completed_at": at,
        "closed_at": at,
        "subject_sealed": null(),
    }
    return (
        select(table.c.id).where(mine).order_by(table.c.id).with_for_update(),
        update(table)
        .where(mine, table.c.status == RequestStatus.RUNNING, ~_anything_left(table))
        .values(closed)
        .returning(table.c.id),
    )
