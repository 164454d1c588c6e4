"""The person whose request is executed: locked for the rest of the transaction, and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import Select, String, Uuid, bindparam, literal_column, or_, select
from sqlalchemy.orm import Session

from effaced.core.crypto import Keyring
from effaced.core.db import is_postgres
from effaced.core.db.pipeline import PendingResult, Pipeline
from effaced.datamap.compile.batches import limited_to
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.subject import Subject, read_subject, subject_query
from effaced.model import SubjectKey
from effaced.outbox.supersede import outstanding
from effaced.outbox.tables import outbox
from effaced.requests.identity import recorded_query
from effaced.requests.lock import LOCK_PERSON, lock_numbers
from effaced.requests.tables import Request


@dataclass(frozen=True, slots=True)
class Person:
    """What is known of the person at the moment of execution."""

    keys: Sequence[SubjectKey]
    subject: Subject | None
    has_corrections: bool
    """Whether requests or calls of theirs that correct something may still be open."""
    has_many_rows: bool
    recorded: Sequence[Sequence[Any]]
    """What the request recorded of the person at intake: rows of `identity.recorded_query`."""
    has_duplicates: bool


def lock_and_read_person(
    session: Session,
    keyring: Keyring,
    plan: ErasurePlan,
    subject_id: str,
    request_id: UUID,
    *,
    at_most: int | None = None,
) -> Person:
    """Lock the person until the transaction ends, and read them, in one round trip.

    So requests of one person are executed one after the other. With `at_most`, also whether any table has
    more rows of the person than that.
    """
    # Under every key of the ring, so that requests from before a key rotation count too.
    keys = keyring.fingerprints(plan.hash_input(subject_id), purpose="subject")
    hmacs = [each.hmac for each in keys]
    values = plan.key.values(subject_id)
    this_request = {"request_id": request_id}
    with Pipeline(session) as batch:
        if is_postgres(session):
            batch.run(LOCK_PERSON, lock_numbers(hmacs))
        subject = batch.run(subject_query(plan), values) if values is not None else PendingResult()
        counts = _count_rows(batch, plan, values, at_most) if at_most is not None else PendingResult()
        parameters = {f"hmac_{place}": hmac for place, hmac in enumerate(hmacs)}
        corrections = [batch.run(each, parameters) for each in _open_corrections(len(hmacs))]
        recorded = batch.run(recorded_query, this_request)
        duplicates = batch.run(_open_duplicates, this_request)
    return Person(
        keys=keys,
        subject=read_subject(plan, subject.rows[0] if subject.rows else None),
        has_corrections=any(each.rows for each in corrections),
        has_many_rows=any(at_most is not None and max(row) > at_most for row in counts.rows),
        recorded=recorded.rows,
        has_duplicates=bool(duplicates.rows),
    )


def _count_rows(
    batch: Pipeline, plan: ErasurePlan, values: Mapping[str, Any] | None, at_most: int
) -> PendingResult:
    """Count the person's rows per table, up to one more than `at_most`."""
    if values is None or plan.count_early is None:
        return PendingResult()
    return batch.run(plan.count_early, {**values, **limited_to(at_most + 1)})


_open_duplicates: Select[*tuple[Any, ...]] = (
    select(literal_column("1"))
    .select_from(Request)
    .where(Request.duplicate_of == bindparam("request_id", type_=Uuid()), Request.closed_at.is_(None))
    .limit(1)
)


@cache
def _open_corrections(keys: int) -> tuple[Select[*tuple[Any, ...]], Select[*tuple[Any, ...]]]:
    """Two queries, for calls and for requests that still correct something of a person with so many keys."""
    hmacs = [bindparam(f"hmac_{place}", type_=String()) for place in range(keys)]
    return (
        select(outbox.c.entry_id)
        .where(outstanding(or_(*(outbox.c.subject_hmac == hmac for hmac in hmacs))))
        .limit(1),
        select(literal_column("1"))
        .select_from(Request)
        .where(
            or_(*(Request.subject_hmac == hmac for hmac in hmacs)),
            Request.kind == literal_column("'rectification'"),
            Request.closed_at.is_(None),
            Request.executed_at.is_(None),
        )
        .limit(1),
    )
