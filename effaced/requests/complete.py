"""Completing requests that have nothing left to call and nothing left to verify."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, cast
from uuid import UUID

from sqlalchemy import Select, Table, bindparam, null, or_, select
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningUpdate

from effaced.core import clock
from effaced.core.db import UtcDateTime, is_postgres
from effaced.core.db.pipeline import Pipeline
from effaced.core.db.sql import bind_ids, key_in_bound_ids
from effaced.model import OutboxOperation
from effaced.notify.notices import RequestCompleted
from effaced.notify.write import announce, subscriptions_to, types_of
from effaced.outbox.tables import operations
from effaced.requests.duplicates import completing_statement, record_completed_duplicates
from effaced.requests.stages import COMPLETION, announce_before_completion, announce_verified
from effaced.requests.status import RequestEvent, transition_many
from effaced.requests.tables import Request


def complete_operations(session: Session, completed: Sequence[tuple[UUID, OutboxOperation]]) -> None:
    """Complete those of these requests that have nothing left to do, and their duplicates.

    That is when all calls have succeeded and none is unverified. Their sealed subjects are deleted, and the
    completion is announced.
    """
    if not completed:
        return
    now = clock.now()
    ids = bind_ids(session, {request_id for request_id, _ in completed})
    lock, close = _statements(is_postgres(session))
    with Pipeline(session) as batch:
        batch.run(lock, ids)
        closed = batch.run(close, ids | {"at": now})
        duplicates = batch.run(completing_statement(is_postgres(session)), ids | {"at": now})
        found = batch.run(subscriptions_to(*COMPLETION))
    wanted = types_of(found.rows)
    announce_before_completion(session, [each[0] for each in duplicates.rows], wanted)
    announce_verified(session, [each for (each,) in closed.rows], wanted)
    record_completed_duplicates(session, duplicates.rows)
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


def _unfinished(*, postgres: bool) -> Select[*tuple[Any, ...]]:
    """Those of the requests `ids` that have anything left to call or to verify.

    The counters were locked by whoever counted them down, so they can't change under this.
    """
    return select(operations.c.request_id).where(
        key_in_bound_ids(operations.c.request_id, postgres=postgres),
        or_(operations.c.remaining > 0, operations.c.unverified > 0),
    )


@cache
def _statements(postgres: bool) -> tuple[Select[*tuple[Any, ...]], ReturningUpdate[*tuple[Any, ...]]]:
    """Two statements: one locks the requests in order of their ids, one closes those that are running."""
    table = cast(Table, Request.__table__)
    mine, at = key_in_bound_ids(table.c.id, postgres=postgres), bindparam("at", type_=UtcDateTime())
    return (
        select(table.c.id).where(mine).order_by(table.c.id).with_for_update(),
        transition_many(RequestEvent.COMPLETED)
        .where(mine, table.c.id.not_in(_unfinished(postgres=postgres)))
        .values(completed_at=at, closed_at=at, subject_sealed=null())
        .returning(table.c.id),
    )
