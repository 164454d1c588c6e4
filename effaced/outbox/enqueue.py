"""Recording external calls in the transaction that makes them necessary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import insert
from sqlalchemy.orm import Session

from effaced import clock
from effaced.crypto import Keyring
from effaced.doorbell import ring_after_commit
from effaced.model import OutboxOperation, OutboxStatus, SubjectKey, SubjectRef, new_id
from effaced.outbox.tables import Operation, OutboxRow
from effaced.sql import insert_rows


@dataclass(frozen=True, slots=True)
class Call:
    """An external call to make: which system, and how it knows the person."""

    resolver: str
    ref: SubjectRef


def enqueue(
    session: Session,
    keyring: Keyring,
    request_id: UUID,
    subject: SubjectKey,
    calls: Sequence[Call],
    *,
    operation: OutboxOperation = OutboxOperation.ERASE,
) -> list[UUID]:
    """Record the calls and the counter that tells when all of them are done.

    They exist exactly when the caller's transaction commits; the workers are rung then.
    """
    now = clock.now()
    rows = []
    for call in calls:
        entry_id = new_id()
        rows.append(
            {
                "entry_id": entry_id,
                "request_id": request_id,
                "operation": operation,
                "resolver": call.resolver,
                "subject_key_id": subject.key_id,
                "subject_hmac": subject.hmac,
                "ref_kind": call.ref.kind,
                "ref_sealed": keyring.seal(call.ref.value.encode(), purpose="ref", context=str(entry_id)),
                "status": OutboxStatus.PENDING,
                "attempts": 0,
                "token": 0,
                "claimed_alone": False,
                "crashes": 0,
                "enqueued_at": now,
                "aging_since": now,
                "times_parked": 0,
            }
        )
    session.execute(
        insert(Operation),
        {
            "request_id": request_id,
            "operation": operation,
            "total": len(rows),
            "remaining": len(rows),
        },
    )
    if rows:
        insert_rows(session, OutboxRow, rows)
        ring_after_commit(session, {call.resolver for call in calls})
    return [row["entry_id"] for row in rows]  # type: ignore[misc]
