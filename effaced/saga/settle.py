"""Settling the results of calls: everything about a flush in one transaction.

Statuses, events, attempts, dead letters and completions commit together or not at all. A decision counts
only while its entry is in flight under the token it was claimed with; a runner that comes late changes
nothing and appends nothing. Lock order, here and everywhere: entries by id, operations by request, then
dead letters.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Update, bindparam, null, or_, select, update
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningUpdate

from effaced.audit.append import SYSTEM, Record, append
from effaced.audit.events import ErasureCompleted, Event, VerificationCompleted, event_for
from effaced.core.db import dbtime, is_postgres
from effaced.core.db.pipeline import Pipeline, run_statement
from effaced.core.db.sql import bind_ids, insert_rows, key_in_bound_ids
from effaced.deadletters.record import record_failures, record_recoveries
from effaced.deadletters.rules import Failure
from effaced.model import (
    CallRole,
    DeadLetterDomain,
    OutboxOperation,
    OutboxStatus,
    SubjectKey,
    Verification,
)
from effaced.notify.write import STEPS, announce_wanted, subscriptions_to, types_of
from effaced.outbox.countdown import Completed, Progress, count_down
from effaced.outbox.entry import Entry
from effaced.outbox.flow import CREDENTIALS_REFUSED, pause
from effaced.outbox.read import UNCONFIRMED
from effaced.outbox.tables import outbox
from effaced.outbox.unblock import unblock, waiting
from effaced.retries.tables import Attempt
from effaced.saga.result import Decision, EntryUpdate, ReadBack
from effaced.saga.step_notices import step_notice

OnComplete = Callable[[Session, Sequence[Completed]], None]
_ENDED = (OutboxStatus.SUCCEEDED, OutboxStatus.ABANDONED)
_TO_BE_TRIED = (OutboxStatus.FAILED, OutboxStatus.PENDING)
_GATES = ("gate", "verify_due_at", "waiting_since")
_MILLISECOND = timedelta(milliseconds=1)
_ROLES = {each: CallRole(each.value) for each in OutboxOperation}


def settle(session: Session, decisions: Sequence[Decision], on_complete: OnComplete) -> list[Decision]:
    """Apply the decisions whose claims still hold, and return those."""
    live = _lock_current(session, decisions)
    if not live:
        return []
    now = dbtime.now(session)
    records = [_record(decision, event) for decision in live for event in decision.events]
    with Pipeline(session) as batch:
        append(session, records)
        _write_attempts(session, live)
        _write_statuses(session, live, now)
        wanted = batch.run(subscriptions_to(*STEPS))
    if wanted.rows:
        steps = [each for decision in live if (each := step_notice(decision))]
        announce_wanted(session, steps, wanted=types_of(wanted.rows))
    succeeded = [each for each in live if each.status is OutboxStatus.SUCCEEDED]
    unblock(session, [each.entry for each in succeeded if each.entry.unblocks])
    done = Counter(_operation(each) for each in succeeded)
    unverified = Counter(_operation(each) for each in succeeded if each.update.verification in UNCONFIRMED)
    subjects = {each.entry.request_id: each.entry.subject for each in succeeded}
    record_progress(session, count_down(session, done, unverified), subjects, on_complete)
    _write_dead_letters(session, live)
    for resolver in sorted({each.entry.resolver for each in live if each.pauses}):
        pause(session, resolver, actor=SYSTEM, code=CREDENTIALS_REFUSED)
    return live


def _operation(decision: Decision) -> Completed:
    return decision.entry.request_id, decision.entry.operation


def complete_without_calls(
    session: Session,
    completed: Sequence[Completed],
    subjects: dict[UUID, SubjectKey],
    on_complete: OnComplete,
) -> None:
    """Record the end of operations that had no calls to make."""
    record_progress(session, Progress(dict.fromkeys(completed, 0), tuple(completed)), subjects, on_complete)


def record_progress(
    session: Session,
    progress: Progress,
    subjects: dict[UUID, SubjectKey],
    on_complete: OnComplete,
) -> None:
    """Record in the trail which operations have succeeded, and close those with nothing left to verify.

    `on_complete` is called for an operation once: when its last call has succeeded and no read-back of it
    is due, given up or contradicts it.
    """
    succeeded = [
        (key, _completed_event(key[1], unverified)) for key, unverified in progress.succeeded.items()
    ]
    verified = [
        (key, VerificationCompleted(operation=key[1]))
        for key in progress.closed
        if key not in progress.succeeded
    ]
    records = [
        Record(event, request_id=request_id, subject=subjects[request_id])
        for (request_id, _), event in [*succeeded, *verified]
    ]
    if records:
        append(session, records)
    if progress.closed:
        on_complete(session, progress.closed)


@lru_cache(maxsize=64)
def _completed_event(operation: OutboxOperation, unverified: int) -> Event:
    return event_for(operation, ErasureCompleted)(operation=operation, unverified=unverified or None)


def _lock_current(session: Session, decisions: Sequence[Decision]) -> list[Decision]:
    """Lock the entries; the decisions about those that are still in flight under the token of their claim."""
    ids = bind_ids(session, [each.entry.entry_id for each in decisions])
    if waited_for := [each.entry.request_id for each in decisions if each.entry.unblocks]:
        others = waiting(session, waited_for)
        locked = [tuple(row) for row in session.execute(_locking(is_postgres(session), others), ids)]
    else:
        locked = run_statement(session, _locking_these(is_postgres(session)), ids).rows
    tokens = {entry_id: token for entry_id, token, status in locked if status == OutboxStatus.IN_FLIGHT}
    return [each for each in decisions if tokens.get(each.entry.entry_id) == each.entry.token]


def _locking(
    postgres: bool, *others: ColumnElement[bool]
) -> Select[*tuple[Any, ...]] | ReturningUpdate[*tuple[Any, ...]]:
    columns = (outbox.c.entry_id, outbox.c.token, outbox.c.status)
    # By primary key alone: with the status in the condition PostgreSQL may walk the index of everything
    # that was ever in flight since the last vacuum.
    which = or_(key_in_bound_ids(outbox.c.entry_id, postgres=postgres), *others)
    if postgres:
        return select(*columns).where(which).order_by(outbox.c.entry_id).with_for_update()
    # SQLite has one lock, for writers. Whoever embeds us may begin transactions without it, and what is
    # only read could change before the write.
    return update(outbox).where(which).values(token=outbox.c.token).returning(*columns)


_locking_these = cache(_locking)


def _record(decision: Decision, event: Any) -> Record:
    entry = decision.entry
    return Record(event, request_id=entry.request_id, entry_id=entry.entry_id, subject=entry.subject)


def _write_attempts(session: Session, live: Sequence[Decision]) -> None:
    read_backs = [
        read_back_attempt_row(each.entry, each.result.read_back)
        for each in live
        if each.result.read_back is not None and each.result.read_back.was_made
    ]
    insert_rows(session, Attempt, [_attempt_row(each) for each in live] + read_backs)


def _attempt_row(decision: Decision) -> dict[str, Any]:
    result, entry = decision.result, decision.result.entry
    return {
        "entry_id": entry.entry_id,
        "request_id": entry.request_id,
        "number": entry.attempts,
        "resolver": entry.resolver,
        "operation": entry.operation,
        "role": _ROLES[entry.operation],
        "at": entry.last_attempt_at,
        "outcome": decision.attempt,
        "status_code": result.status_code,
        "latency_ms": result.latency_ms,
        "error": decision.update.last_error,
        "first": entry.idle_since is None,
        "delay_before_ms": _idle_ms(entry),
        "retry_after_s": _whole_seconds(result.failure.retry_after if result.failure else None),
        "trial": result.trial,
    }


def read_back_attempt_row(entry: Entry, read_back: ReadBack) -> dict[str, Any]:
    """The row of a read-back: a call like any other, under the number of the attempt it belongs to."""
    failure = read_back.failure
    return {
        "entry_id": entry.entry_id,
        "request_id": entry.request_id,
        "number": entry.attempts,
        "resolver": entry.resolver,
        "operation": entry.operation,
        "role": CallRole.VERIFY,
        "at": read_back.at,
        "outcome": read_back.attempt,
        "status_code": failure.status_code if failure else None,
        "latency_ms": read_back.latency_ms,
        "error": failure.error if failure else None,
        "first": False,
        "delay_before_ms": None,
        "retry_after_s": _whole_seconds(failure.retry_after if failure else None),
        "trial": False,
    }


def _idle_ms(entry: Entry) -> int | None:
    """How long the entry waited for this attempt: since the last one ended, or since it could be called."""
    if entry.last_attempt_at is None:
        return None
    return max(0, round((entry.last_attempt_at - (entry.idle_since or entry.aging_since)) / _MILLISECOND))


def _whole_seconds(wait: timedelta | None) -> int | None:
    return None if wait is None else math.ceil(wait.total_seconds())


def _write_statuses(session: Session, live: Sequence[Decision], now: datetime) -> None:
    # Most of a flush ends alike, so this is one or two statements, not one per entry.
    alike: dict[EntryUpdate, list[UUID]] = defaultdict(list)
    for each in live:
        alike[each.update].append(each.entry.entry_id)
    for entry_update, ids in alike.items():
        written = _column_values(entry_update, now)
        statement = _update_statement(is_postgres(session), tuple(written), _cleared_columns(entry_update))
        new = {f"new_{name}": value for name, value in written.items()}
        new |= _wait_values(session, entry_update, now)
        run_statement(session, statement, new | bind_ids(session, ids))


def _column_values(entry: EntryUpdate, now: datetime) -> dict[str, Any]:
    """The new values, apart from cleared columns and waits."""
    seen = entry.verification in (Verification.CONFIRMED, Verification.STILL_PRESENT)
    return {
        "status": entry.status,
        "attempts": entry.attempts,
        "last_error": entry.last_error,
        "outcome": entry.outcome,
        "retained_basis": entry.retained_basis,
        "times_parked": entry.times_parked,
        "verification": entry.verification,
        "verified_at": now if seen else None,
        "ended_at": now if entry.status in _ENDED else None,
        "idle_since": now if entry.status in _TO_BE_TRIED else None,
        **({"aging_since": entry.gate} if entry.status is OutboxStatus.SCHEDULED else {}),
    }


def _cleared_columns(entry: EntryUpdate) -> tuple[str, ...]:
    """Nothing personal outlives its use: only a read-back still needs the reference of a success."""
    used_up = entry.status is OutboxStatus.SUCCEEDED and entry.verification in (None, Verification.CONFIRMED)
    return (
        *(["ref_sealed"] if used_up else []),
        *(["corrections_sealed"] if entry.status in _ENDED else []),
    )


def _wait_values(session: Session, entry: EntryUpdate, now: datetime) -> dict[str, Any]:
    """Waits as their lengths, so that the database's clock decides when they end; dates as they are."""
    gate, due = entry.gate, entry.verify_due_at
    if entry.status is OutboxStatus.SCHEDULED:  # parked until a date that somebody else has named
        never = dbtime.from_now(session, **dict.fromkeys(f"new_{name}" for name in _GATES))
        return never | {"new_gate": gate}
    return dbtime.from_now(
        session,
        new_gate=None if gate is None else gate - now,
        new_verify_due_at=None if due is None else due - now,
        new_waiting_since=None if gate is None and due is None else timedelta(0),
    )


@cache
def _update_statement(postgres: bool, names: tuple[str, ...], cleared: tuple[str, ...]) -> Update:
    return (
        update(outbox)
        .where(key_in_bound_ids(outbox.c.entry_id, postgres=postgres))
        .values(
            {name: bindparam(f"new_{name}", type_=outbox.c[name].type) for name in names}
            | {name: dbtime.moment(f"new_{name}") for name in _GATES}
            | dict.fromkeys(cleared, null())
            | {"claimed_alone": False, "crashes": 0, "returned_at": null()}
        )
    )


def _write_dead_letters(session: Session, live: Sequence[Decision]) -> None:
    succeeded = [each.entry.entry_id for each in live if each.status is OutboxStatus.SUCCEEDED]
    if succeeded:
        record_recoveries(session, (DeadLetterDomain.EXTERNAL_CALL, DeadLetterDomain.ATTESTATION), succeeded)
    record_failures(
        session,
        [
            Failure(
                domain=domain,
                request_id=each.entry.request_id,
                subject=each.entry.subject,
                error=each.update.last_error or "StillPresent",
                code=each.code,
                entry_id=each.entry.entry_id,
                resolver=each.entry.resolver,
                attempts=each.entry.attempts,
                operation=each.entry.operation,
            )
            for each in live
            for domain in each.failures
        ],
    )
