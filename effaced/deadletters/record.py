"""Opening dead letters, and closing or reopening them when a second try has ended.

All of it happens in the transaction that settles the failed work, so a dead letter is there exactly
when something is abandoned.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, cast
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Row,
    String,
    Table,
    Update,
    bindparam,
    insert,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from effaced.audit.append import Record, append
from effaced.audit.events import DeadLetterOpened
from effaced.core import clock
from effaced.core.db import UtcDateTime, is_postgres
from effaced.core.pipeline import run
from effaced.core.sql import among_ids, as_ids
from effaced.deadletters.letter import after_failure
from effaced.deadletters.recommend import Failure as Failure
from effaced.deadletters.recommend import History, recommend
from effaced.deadletters.rules import ATTESTED as ATTESTED
from effaced.deadletters.rules import CANCELLED as CANCELLED
from effaced.deadletters.rules import (
    PENDING,
    REPLAYED,
    REPLAYING,
    SETTLED,
    UNSETTLED_VALUES,
    after_failed_replay,
    reopened,
)
from effaced.deadletters.rules import SUPERSEDED as SUPERSEDED
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

_letters = cast(Table, DeadLetter.__table__)


def record_failures(session: Session, failures: Sequence[Failure]) -> None:
    """Open a dead letter for each failure; one that was being replayed goes back to the people."""
    if not failures:
        return
    known = _existing(session, failures)
    now = clock.now()
    rows, opened = [], []
    told: list[Notice] = []
    for failure in failures:
        earlier = known.get(_identity(failure.domain, failure.entry_id, failure.request_id))
        if earlier is not None:
            _failed_again(session, earlier, failure)
            if earlier.status in SETTLED:
                opened.append(_opened(failure, earlier.id))
            told += _notices(failure, earlier.id, again=True)
            continue
        letter_id = new_id()
        rows.append(
            {
                "id": letter_id,
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
                "max_retries": 2,
                "recommended_action": recommend(failure),
                "context": {
                    "attempts": failure.attempts,
                    **({"tables": list(failure.tables)} if failure.tables else {}),
                },
                "created_at": now,
                "updated_at": now,
                "resolution": "",
            }
        )
        told += _notices(failure, letter_id, again=False)
        opened.append(_opened(failure, letter_id))
    if opened:
        append(session, opened)
    if rows:
        session.execute(insert(DeadLetter), rows)
    announce(session, told)


def record_recoveries(
    session: Session,
    domains: Collection[DeadLetterDomain],
    entry_ids: Collection[UUID],
    *,
    resolution: str = REPLAYED,
    by: str | None = None,
) -> None:
    """The work behind these letters has ended well after all: they are resolved, on whose word if any."""
    statement = _recovering(is_postgres(session), tuple(domains))
    values = {"how": resolution, "by": by, "now": clock.now(), **as_ids(session, entry_ids)}
    run(session, statement, values)


@cache
def _recovering(postgres: bool, domains: tuple[DeadLetterDomain, ...]) -> Update:
    # Every flush with a success in it asks this.
    how, by = bindparam("how", type_=String()), bindparam("by", type_=String())
    now = bindparam("now", type_=UtcDateTime())
    return _resolving(domains, among_ids(_letters.c.entry_id, postgres=postgres), how, by, now)


def record_execution_recovery(
    session: Session, request_id: UUID, *, resolution: str = REPLAYED, by: str | None = None
) -> None:
    """The local execution of this request has succeeded after all, or is not needed any more."""
    mine = _letters.c.request_id == request_id
    session.execute(_resolving((DeadLetterDomain.LOCAL_EXECUTION,), mine, resolution, by, clock.now()))


# Of a message that can't be delivered no message is sent: that one could not be delivered either.
_TOLD: dict[DeadLetterDomain, type[DeadLetterNotice]] = {
    DeadLetterDomain.EXTERNAL_CALL: EntryAbandoned,
    DeadLetterDomain.VERIFICATION: VerificationFailed,
    DeadLetterDomain.LOCAL_EXECUTION: ExecutionFailed,
    DeadLetterDomain.ATTESTATION: AttestationOverdue,
}


def _notices(failure: Failure, letter_id: UUID, *, again: bool) -> list[Notice]:
    told = _TOLD.get(failure.domain)
    if told is None:
        return []
    return [
        told(
            request_id=failure.request_id,
            dead_letter_id=letter_id,
            error=failure.error,
            code=failure.code or None,
            resolver=failure.resolver,
            entry_id=failure.entry_id,
            attempts=failure.attempts,
            again=again,
        )
    ]


def _resolving(
    domains: Collection[DeadLetterDomain], which: ColumnElement[bool], how: Any, by: Any, now: Any
) -> Update:
    return (
        update(_letters)
        .where(
            _letters.c.domain.in_([literal_column(f"'{each}'") for each in domains]),
            which,
            _letters.c.status.not_in([literal_column(f"'{each}'") for each in SETTLED]),
        )
        .values(
            status=DeadLetterStatus.RESOLVED, resolution=how, resolved_by=by, resolved_at=now, updated_at=now
        )
    )


# A call that was overdue and then failed, or the other way round, is one thing to look at, not two.
_ABOUT = {DeadLetterDomain.ATTESTATION: DeadLetterDomain.EXTERNAL_CALL}


def _identity(
    domain: DeadLetterDomain, entry_id: UUID | None, request_id: UUID | None
) -> tuple[DeadLetterDomain, UUID | None]:
    # A local execution has no entry: its letter is found by the request.
    return _ABOUT.get(domain, domain), entry_id or request_id


def _existing(
    session: Session, failures: Sequence[Failure]
) -> dict[tuple[DeadLetterDomain, UUID | None], Row[*tuple[Any, ...]]]:
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


def _failed_again(session: Session, earlier: Row[*tuple[Any, ...]], failure: Failure) -> None:
    """The letter that there is goes back to the people; what failed before and was tried stays known."""
    marks = dict(earlier.marks or {})
    if earlier.status is REPLAYING:
        marks["failed_replays"] = marks.get("failed_replays", 0) + 1
        same = failure.error == earlier.failure_type
        marks["same_error"] = marks.get("same_error", 0) + 1 if same else 0
    elif earlier.status in SETTLED:
        marks = reopened(marks)
    history = History(marks.get("failed_replays", 0), marks.get("same_error", 0))
    session.execute(
        update(DeadLetter)
        .where(DeadLetter.id == earlier.id)
        .values(
            **UNSETTLED_VALUES,
            status=after_failed_replay(earlier.retry_count, earlier.max_retries),
            domain=failure.domain,
            failure_type=failure.error,
            error_code=failure.code,
            recommended_action=recommend(failure, history),
            context=after_failure(earlier._mapping, _facts(failure)),
            marks=marks,
            updated_at=clock.now(),
        )
    )


def _facts(failure: Failure) -> dict[str, Any]:
    return {
        "domain": failure.domain.value,
        "error": failure.error,
        "code": failure.code,
        "attempts": failure.attempts,
        "tables": list(failure.tables),
    }


def _opened(failure: Failure, letter_id: UUID) -> Record:
    return Record(
        DeadLetterOpened(dead_letter_id=letter_id, domain=failure.domain, error=failure.error),
        request_id=failure.request_id,
        entry_id=failure.entry_id,
        subject=failure.subject,
    )
