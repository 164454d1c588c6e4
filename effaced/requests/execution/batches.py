"""Erasing a person with very many rows: large tables are changed in batches before the execution itself.

Each batch is a transaction, and the request stays approved meanwhile. The process that does it claims the
request for a while with every batch; if it dies, another one continues where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, sessionmaker

from effaced.audit.append import append_one
from effaced.audit.events import LocalErasureBegun, LocalTableErased
from effaced.core.crypto import Keyring
from effaced.core.db import Database, dbtime
from effaced.core.errors import Unavailable
from effaced.core.log import get_logger
from effaced.datamap.compile.batches import batch_statement, limited_to
from effaced.datamap.compile.step import Step
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.erase import refusal
from effaced.datamap.run.subject import find_subject
from effaced.datamap.run.values import parameters_for_erasure
from effaced.datamap.schema.fingerprint import require_schema
from effaced.model import RequestStatus
from effaced.requests.identity import read_recorded, require_same_person
from effaced.requests.subject import unseal_subject
from effaced.requests.tables import Request

_log = get_logger(__name__)
_CLAIMED_FOR = timedelta(minutes=5)


class BatchedErasure:
    """One request whose tables are too large for one transaction, in batches of `rows` rows."""

    def __init__(
        self,
        database: Database | sessionmaker[Session],
        keyring: Keyring,
        plan: ErasurePlan,
        request_id: UUID,
        rows: int,
    ) -> None:
        self._db = database
        self._keyring = keyring
        self._plan = plan
        self._request_id = request_id
        self._rows = rows

    def run(self, stopping: Callable[[], bool]) -> bool:
        """Change the tables with many rows.

        False if the request is no longer to be executed, or if this process is `stopping` before the end:
        then another one may continue at once.
        """
        steps = self._begin()
        for step in steps or ():
            changed: int | None = self._rows
            while changed is not None and changed >= self._rows:
                if stopping():
                    self._release_request()
                    return False
                changed = self._change_batch(step)
            if changed is None:
                return False
        return steps is not None

    def _begin(self) -> list[Step] | None:
        """Count what there is to do and record it in the trail, once.

        Returns the steps up to the last with many rows; None if the request is no longer to be executed.
        """
        with self._db.begin() as session:
            request = _claim_request(session, self._request_id)
            if request is None:
                return None
            plan, values = self._plan_and_values(session, request)
            counts = session.execute(
                select(*(step.count_affected.scalar_subquery() for step in plan.early)), values
            ).one()
            last = max((place for place, rows in enumerate(counts) if rows > self._rows), default=-1)
            steps = list(plan.early[: last + 1])
            if request.batch_counts is None and steps:
                request.batch_counts = {
                    step.label: [0, rows] for step, rows in zip(steps, counts, strict=False)
                }
                tables = tuple(
                    LocalTableErased(table=step.name, action=step.action, rows=rows)
                    for step, rows in zip(steps, counts, strict=False)
                )
                begun = LocalErasureBegun(datamap_hash=plan.data_map.hash, tables=tables)
                append_one(session, begun, request_id=request.id, subject=request.subject)
            return steps

    def _change_batch(self, step: Step) -> int | None:
        """How many rows were changed; None if the request is no longer to be executed.

        SchemaChanged, of which nothing is committed, if the plan was made for another schema.
        """
        with self._db.begin() as session:
            request = _claim_request(session, self._request_id)
            if request is None:
                return None
            plan, values = self._plan_and_values(session, request)
            statement = batch_statement(plan.schema, step.name, step.where, step.written)
            try:
                changed: int = session.execute(statement, values | limited_to(self._rows)).rowcount  # type: ignore[attr-defined]
            except DBAPIError as error:
                if refused := refusal("erase", step.name, error):
                    raise refused from None
                raise
            require_schema(session, plan.fingerprint)
            done, total = (request.batch_counts or {}).get(step.label, [0, 0])
            request.batch_counts = {
                **(request.batch_counts or {}),
                step.label: [done + changed, max(total, done + changed)],
            }
            _log.info("batch_erased", request=request.ref, table=step.name, rows=done + changed, of=total)
            return changed

    def _release_request(self) -> None:
        with self._db.begin() as session:
            request = _claim_request(session, self._request_id)
            if request is not None:
                request.execute_at = dbtime.now(session)

    def _plan_and_values(self, session: Session, request: Request) -> tuple[ErasurePlan, dict[str, Any]]:
        """The plan and the values of its statements. SubjectChanged if the row is somebody else's by now."""
        plan = self._plan.for_people(request.subject_type)
        sealed = unseal_subject(self._keyring, request)
        if sealed is None:
            raise Unavailable("The request no longer has its subject.")
        # Before every batch: the key may be given to somebody else between two of them.
        recorded = read_recorded(session, request.id, sealed.refs)
        subject = find_subject(session, plan, sealed.subject_id)
        require_same_person(session, self._keyring, plan, recorded, subject)
        return plan, parameters_for_erasure(session, plan, sealed.subject_id)


def _claim_request(session: Session, request_id: UUID) -> Request | None:
    """The request, claimed until well after this batch; None if it is no longer to be executed."""
    request = session.get(Request, request_id, with_for_update=True)
    if request is None or request.status is not RequestStatus.APPROVED:
        return None
    request.execute_at = dbtime.now(session) + _CLAIMED_FOR
    return request
