"""Recording external calls in the transaction of the change that makes them necessary."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import insert
from sqlalchemy.orm import Session

from effaced.core.crypto import Keyring
from effaced.core.db import dbtime
from effaced.core.db.sql import insert_rows
from effaced.core.names import LONGEST_KIND, name_problem, raise_problem, resolver_name_problem
from effaced.core.order import find_circle
from effaced.doorbell import ring_after_commit
from effaced.model import Correction, OutboxOperation, OutboxStatus, SubjectKey, SubjectRef, new_id
from effaced.outbox.entry import seal_corrections
from effaced.outbox.tables import OutboxRow, operations


@dataclass(frozen=True, slots=True)
class History:
    """What became of a call before it was enqueued here, and from when on it may be made."""

    enqueued_at: datetime
    attempts: int = 0
    not_before: datetime | None = None
    last_attempt_at: datetime | None = None
    last_error: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """An external call to make: which system, how it knows the person, what it has to correct.

    `after` names the systems that have to succeed first, where the same request calls them too.
    """

    resolver: str
    ref: SubjectRef
    corrections: tuple[Correction, ...] = ()
    after: Collection[str] = ()
    entry_id: UUID = field(default_factory=new_id)
    history: History | None = None

    def __post_init__(self) -> None:
        for name in (self.resolver, *self.after):
            raise_problem(resolver_name_problem(name))
        raise_problem(name_problem("A reference's kind", self.ref.kind, LONGEST_KIND))


def enqueue(
    session: Session,
    keyring: Keyring,
    request_id: UUID,
    subject: SubjectKey,
    calls: Sequence[Call],
    *,
    operation: OutboxOperation = OutboxOperation.ERASE,
    not_before: Mapping[str, datetime] | None = None,
) -> list[UUID]:
    """Record the calls, and the counter that says when all of them are done.

    They exist exactly when the caller's transaction commits, and the workers are notified then. `not_before`
    says for a resolver until when its call has to wait, since the one it replaces may still be under way.
    """
    orders = _dependencies(calls)
    now, gates = dbtime.now(session), not_before or {}
    shared = {
        "request_id": request_id,
        "operation": operation,
        "subject_key_id": subject.key_id,
        "subject_hmac": subject.hmac,
        "enqueued_at": now,
        "aging_since": now,
    }
    rows = [
        {
            **_row(keyring, call),
            **shared,
            **order,
            "gate": gates.get(call.resolver),
            "waiting_since": now if call.resolver in gates else None,
        }
        for call, order in zip(calls, orders, strict=True)
    ]
    if any(call.history for call in calls):
        for row, call in zip(rows, calls, strict=True):
            row |= _from_history(call.history or History(now), row["gate"], now)
    session.execute(
        insert(operations),
        {
            "request_id": request_id,
            "operation": operation,
            "total": len(rows),
            "remaining": len(rows),
            "unverified": 0,
        },
    )
    if rows:
        insert_rows(session, OutboxRow, rows)
        ring_after_commit(session, {call.resolver for call in calls})
    return [row["entry_id"] for row in rows]


def _dependencies(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """For each call which of the others it waits for. Refuses calls that wait for each other for ever."""
    names, after = {call.resolver for call in calls}, {name for call in calls for name in call.after}
    if path := find_circle({call.resolver: names.intersection(call.after) for call in calls}):
        raise_problem(f"These calls would wait for each other for ever: {' -> '.join(path)}.")
    return [
        {"waits_for": sorted(names.intersection(call.after)) or None, "unblocks": call.resolver in after}
        for call in calls
    ]


def _from_history(history: History, gate: datetime | None, now: datetime) -> dict[str, Any]:
    later = max((each for each in (gate, history.not_before) if each is not None), default=None)
    return {
        # By another machine's clock, which may be ahead. The time to end begins here, so `aging_since` stays.
        "enqueued_at": min(history.enqueued_at, now),
        "attempts": history.attempts,
        "gate": later,
        # A date that somebody has named, not a wait that keeps its length when the clock is set back.
        "waiting_since": now if later is not None and later == gate else None,
        "last_attempt_at": history.last_attempt_at,
        "last_error": history.last_error,
    }


def _row(keyring: Keyring, call: Call) -> dict[str, Any]:
    entry_id = call.entry_id
    corrected = bool(call.corrections)
    return {
        "entry_id": entry_id,
        "resolver": call.resolver,
        "ref_kind": call.ref.kind,
        "ref_sealed": keyring.seal(call.ref.value.encode(), purpose="ref", context=str(entry_id)),
        "corrections_sealed": seal_corrections(keyring, call.corrections, context=entry_id)
        if corrected
        else None,
        "fields": [each.column for each in call.corrections] if corrected else None,
        "status": OutboxStatus.PENDING,
        "attempts": 0,
        "token": 0,
        "claimed_alone": False,
        "crashes": 0,
        "times_parked": 0,
    }
