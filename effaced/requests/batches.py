"""A person with very many rows: tables are worked off in batches, a transaction each, before the execution.

The request stays approved meanwhile. Whoever does it says so on the request and is left alone for a while;
if that process dies, another one goes on where it stopped.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.events import LocalErasureBegun, LocalTableErased
from effaced.core import dbtime
from effaced.core.errors import Unavailable
from effaced.core.log import get_logger
from effaced.datamap.compile.batches import batch, limited_to
from effaced.datamap.compile.step import Step
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.erase import refusal
from effaced.datamap.run.subject import find_subject
from effaced.datamap.run.values import values_for
from effaced.model import RequestStatus
from effaced.requests.identity import read_recorded, require_same_person
from effaced.requests.subject import unseal_subject
from effaced.requests.tables import Request

if TYPE_CHECKING:
    from effaced.requests.execute import Executor

_log = get_logger(__name__)
_LEFT_ALONE = timedelta(minutes=5)


def work_off(executor: Executor, request_id: UUID) -> bool:
    """Work off what one transaction should not; False if the request is no longer to be executed."""
    steps = _begin(executor, request_id)
    for step in steps or ():
        while (changed := _one_batch(executor, request_id, step)) and changed >= executor.batch_rows:
            pass
        if changed is None:
            return False
    return steps is not None


def _begin(executor: Executor, request_id: UUID) -> list[Step] | None:
    """Count what there is to do and say so in the trail, once; the steps up to the last with many rows."""
    with executor.begin() as session:
        request = _held(session, request_id)
        if request is None:
            return None
        plan, values = _told(executor, session, request)
        counts = session.execute(
            select(*(step.affected.scalar_subquery() for step in plan.early)), values
        ).one()
        last = max((place for place, rows in enumerate(counts) if rows > executor.batch_rows), default=-1)
        steps = list(plan.early[: last + 1])
        if request.worked_off is None and steps:
            request.worked_off = {step.label: [0, rows] for step, rows in zip(steps, counts, strict=False)}
            tables = tuple(
                LocalTableErased(table=step.name, action=step.action, rows=rows)
                for step, rows in zip(steps, counts, strict=False)
            )
            begun = LocalErasureBegun(datamap_hash=plan.data_map.hash, tables=tables)
            append_one(session, begun, request_id=request.id, subject=request.subject)
        return steps


def _one_batch(executor: Executor, request_id: UUID, step: Step) -> int | None:
    """How many rows were changed; None if the request is no longer to be executed."""
    with executor.begin() as session:
        request = _held(session, request_id)
        if request is None:
            return None
        plan, values = _told(executor, session, request)
        statement = batch(plan.schema, step.name, step.where, step.written)
        try:
            changed: int = session.execute(statement, values | limited_to(executor.batch_rows)).rowcount  # type: ignore[attr-defined]
        except DBAPIError as error:
            if refused := refusal("erase", step.name, error):
                raise refused from None
            raise
        done, total = (request.worked_off or {}).get(step.label, [0, 0])
        request.worked_off = {
            **(request.worked_off or {}),
            step.label: [done + changed, max(total, done + changed)],
        }
        _log.info("worked_off", request=request.ref, table=step.name, rows=done + changed, of=total)
        return changed


def _held(session: Session, request_id: UUID) -> Request | None:
    """The request, for us alone until well after this batch."""
    request = session.get(Request, request_id, with_for_update=True)
    if request is None or request.status is not RequestStatus.APPROVED:
        return None
    request.execute_at = dbtime.now(session) + _LEFT_ALONE
    return request


def _told(executor: Executor, session: Session, request: Request) -> tuple[ErasurePlan, dict[str, Any]]:
    plan = executor.plan.named(request.subject_type)
    sealed = unseal_subject(executor.keyring, request)
    if sealed is None:
        raise Unavailable("The request no longer knows its subject.")
    # Before every batch: the key may be given to somebody else between two of them.
    recorded = read_recorded(session, request.id, sealed.refs)
    subject = find_subject(session, plan, sealed.subject_id)
    require_same_person(session, executor.keyring, plan, recorded, subject)
    return plan, values_for(session, plan, sealed.subject_id)
