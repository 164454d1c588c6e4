"""Opening dead letters, and resolving or reopening them when a later attempt has ended.

What the product records is recorded in the transaction that settles the failed work, so there is a dead
letter exactly when something was abandoned.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, cast
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Row,
    String,
    Table,
    Update,
    Uuid,
    bindparam,
    insert,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from effaced.audit.append import SYSTEM, Record, append
from effaced.audit.events import DeadLetterOpened
from effaced.core import clock
from effaced.core.db import UtcDateTime, is_postgres
from effaced.core.db.pipeline import run_statement
from effaced.core.db.sql import bind_ids, key_in_bound_ids
from effaced.core.errors import Conflict
from effaced.deadletters.context import after_failure
from effaced.deadletters.linked_work import hold_work
from effaced.deadletters.rules import (
    MAX_RETRIES,
    PENDING,
    REPLAYED,
    REPLAYING,
    SETTLED,
    UNSETTLED_VALUES,
    Failure,
    after_failed_replay,
    marks_after_failed_replay,
    marks_after_reopening,
    recommend,
)
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, DeadLetterStatus, new_id
from effaced.notify.notices import (
    AttestationOverdue,
    DeadLetterNotice,
    EntryAbandoned,
    ExecutionFailed,
    Notice,
    VerificationFailed,
)
from effaced.notify.write import announce

Identity = tuple[DeadLetterDomain, UUID | None]
_table = cast(Table, DeadLetter.__table__)


def record_failures(session: Session, failures: Sequence[Failure]) -> None:
    """Open a dead letter for each failure; where there is one already, it is opened again."""
    if not failures:
        return
    known = _existing(session, failures)
    rows, opened = [], []
    notices: list[Notice] = []
    for failure in failures:
        earlier = known.get(_identity(failure.domain, failure.entry_id, failure.request_id))
        if earlier is None:
            row = _new_row(failure)
            dead_letter_id = row["id"]
            rows.append(row)
        else:
            dead_letter_id = earlier.id
            _record_again(session, earlier, failure)
        if earlier is None or earlier.status in SETTLED:
            opened.append(_opened_event(failure, dead_letter_id))
        notices += _notices(failure, dead_letter_id, again=earlier is not None)
    _write(session, rows, opened, notices)


def record_new(session: Session, failure: Failure, values: Mapping[str, Any], *, actor: str) -> UUID:
    """Open a dead letter for a failure that a program reports, with these values of its own.

    Refuses a second one for the same work, whatever became of the first.
    """
    hold_work(session, failure.entry_id or failure.request_id)
    if _identity(failure.domain, failure.entry_id, failure.request_id) in _existing(session, [failure]):
        raise Conflict("There is already a dead letter for this work.")
    row = {**_new_row(failure), **values}
    event = _opened_event(failure, row["id"], actor=actor)
    _write(session, [row], [event], _notices(failure, row["id"], again=False))
    return cast(UUID, row["id"])


def _write(
    session: Session, rows: Sequence[dict[str, Any]], opened: Sequence[Record], notices: Sequence[Notice]
) -> None:
    if opened:
        append(session, opened)
    if rows:
        session.execute(insert(DeadLetter), rows)
    announce(session, notices)


def record_recoveries(
    session: Session,
    domains: Collection[DeadLetterDomain],
    entry_ids: Collection[UUID],
    *,
    resolution: str = REPLAYED,
    by: str | None = None,
) -> None:
    """Resolve the dead letters over work that has succeeded after all, or that `by` has attested."""
    statement = _resolve_by_entry(is_postgres(session), tuple(domains))
    values = {"how": resolution, "by": by, "now": clock.now(), **bind_ids(session, entry_ids)}
    run_statement(session, statement, values)


def record_execution_recovery(
    session: Session, request_id: UUID, *, resolution: str = REPLAYED, by: str | None = None
) -> None:
    """The local execution of this request has succeeded after all, or is no longer needed."""
    values = {"how": resolution, "by": by, "now": clock.now(), "about": request_id}
    run_statement(session, _resolve_by_request(), values)


# Cached: they run for every execution, and for every flush with a success in it.
@cache
def _resolve_by_request() -> Update:
    mine = _table.c.request_id == bindparam("about", type_=Uuid())
    return _resolve((DeadLetterDomain.LOCAL_EXECUTION,), mine)


@cache
def _resolve_by_entry(postgres: bool, domains: tuple[DeadLetterDomain, ...]) -> Update:
    return _resolve(domains, key_in_bound_ids(_table.c.entry_id, postgres=postgres))


def _resolve(domains: Collection[DeadLetterDomain], which: ColumnElement[bool]) -> Update:
    how, by = bindparam("how", type_=String()), bindparam("by", type_=String())
    now = bindparam("now", type_=UtcDateTime())
    return (
        update(_table)
        .where(
            _table.c.domain.in_([literal_column(f"'{each}'") for each in domains]),
            which,
            _table.c.status.not_in([literal_column(f"'{each}'") for each in SETTLED]),
        )
        .values(
            status=DeadLetterStatus.RESOLVED, resolution=how, resolved_by=by, resolved_at=now, updated_at=now
        )
    )


# For an undeliverable message no message is sent: that one could not be delivered either.
_NOTICES: Mapping[DeadLetterDomain, type[DeadLetterNotice]] = {
    DeadLetterDomain.EXTERNAL_CALL: EntryAbandoned,
    DeadLetterDomain.VERIFICATION: VerificationFailed,
    DeadLetterDomain.LOCAL_EXECUTION: ExecutionFailed,
    DeadLetterDomain.ATTESTATION: AttestationOverdue,
}


def _notices(failure: Failure, dead_letter_id: UUID, *, again: bool) -> list[Notice]:
    kind = _NOTICES.get(failure.domain)
    if kind is None:
        return []
    return [
        kind(
            request_id=failure.request_id,
            dead_letter_id=dead_letter_id,
            error=failure.error,
            code=failure.code or None,
            resolver=failure.resolver,
            entry_id=failure.entry_id,
            attempts=failure.attempts,
            again=again,
        )
    ]


# A call that was overdue and then failed, or the other way round, is one dead letter, not two.
_SAME_AS = {DeadLetterDomain.ATTESTATION: DeadLetterDomain.EXTERNAL_CALL}


def _identity(domain: DeadLetterDomain, entry_id: UUID | None, request_id: UUID | None) -> Identity:
    # A local execution has no entry: its dead letter is found by the request.
    return _SAME_AS.get(domain, domain), entry_id or request_id


def _existing(session: Session, failures: Sequence[Failure]) -> dict[Identity, Row[*tuple[Any, ...]]]:
    entries = [failure.entry_id for failure in failures if failure.entry_id]
    requests = [each.request_id for each in failures if each.request_id and not each.entry_id]
    found = session.execute(
        select(
            DeadLetter.id,
            DeadLetter.domain,
            DeadLetter.entry_id,
            DeadLetter.request_id,
            DeadLetter.status,
            DeadLetter.failure_type,
            DeadLetter.error_code,
            DeadLetter.retry_count,
            DeadLetter.max_retries,
            DeadLetter.context,
            DeadLetter.marks,
        )
        .where(
            or_(
                DeadLetter.entry_id.in_(entries),
                DeadLetter.entry_id.is_(None) & DeadLetter.request_id.in_(requests),
            )
        )
        .order_by(DeadLetter.id)
        .with_for_update()
    )
    return {_identity(row.domain, row.entry_id, row.request_id): row for row in found}


def _new_row(failure: Failure) -> dict[str, Any]:
    now = clock.now()
    tables = {"tables": list(failure.tables)} if failure.tables else {}
    return {
        "id": new_id(),
        "domain": failure.domain,
        "failure_type": failure.error,
        "error_code": failure.code,
        "entry_id": failure.entry_id,
        "request_id": failure.request_id,
        "resolver": failure.resolver,
        "subject_key_id": failure.subject.key_id if failure.subject else None,
        "subject_hmac": failure.subject.hmac if failure.subject else None,
        "status": PENDING,
        "retry_count": 0,
        "max_retries": MAX_RETRIES,
        "recommended_action": recommend(failure),
        "context": {"attempts": failure.attempts, **tables},
        "created_at": now,
        "updated_at": now,
        "resolution": "",
    }


def _record_again(session: Session, earlier: Row[*tuple[Any, ...]], failure: Failure) -> None:
    """Open the dead letter again; what failed and was tried before stays in its context and marks."""
    marks = dict(earlier.marks or {})
    if earlier.status is REPLAYING:
        marks = marks_after_failed_replay(marks, same_error=failure.error == earlier.failure_type)
    elif earlier.status in SETTLED:
        marks = marks_after_reopening(marks)
    session.execute(
        update(DeadLetter)
        .where(DeadLetter.id == earlier.id)
        .values(
            **UNSETTLED_VALUES,
            status=after_failed_replay(earlier.retry_count, earlier.max_retries),
            domain=failure.domain,
            failure_type=failure.error,
            error_code=failure.code,
            recommended_action=recommend(failure, marks),
            context=after_failure(earlier._mapping, failure.facts()),
            marks=marks,
            updated_at=clock.now(),
        )
    )


def _opened_event(failure: Failure, dead_letter_id: UUID, *, actor: str = SYSTEM) -> Record:
    return Record(
        DeadLetterOpened(dead_letter_id=dead_letter_id, domain=failure.domain, error=failure.error),
        actor=actor,
        request_id=failure.request_id,
        entry_id=failure.entry_id,
        subject=failure.subject,
    )
