"""Recording external calls in the transaction that makes them necessary."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import insert
from sqlalchemy.orm import Session

from effaced.core import dbtime
from effaced.core.crypto import Keyring
from effaced.core.sql import insert_rows
from effaced.doorbell import ring_after_commit
from effaced.model import Correction, OutboxOperation, OutboxStatus, SubjectKey, SubjectRef, new_id
from effaced.outbox.entry import seal_corrections
from effaced.outbox.tables import OutboxRow, operations


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
    """Record the calls and the counter that tells when all of them are done.

    They exist exactly when the caller's transaction commits; the workers are rung then. `not_before` says
    of a resolver that its call has to wait, since one that it replaces may still be on its way.
    """
    names = {call.resolver for call in calls}
    waited_for = {name for call in calls for name in call.after if name in names}
    now = dbtime.now(session)
    rows = [
        {
            **_row(keyring, call),
            "enqueued_at": now,
            "aging_since": now,
            "request_id": request_id,
            "operation": operation,
            "subject_key_id": subject.key_id,
            "subject_hmac": subject.hmac,
            "gate": (not_before or {}).get(call.resolver),
            "waiting_since": now if call.resolver in (not_before or {}) else None,
            "waits_for": sorted(name for name in call.after if name in names) or None,
            "unblocks": call.resolver in waited_for,
        }
        for call in calls
    ]
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
        ring_after_commit(session, names)
    return [row["entry_id"] for row in rows]


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
