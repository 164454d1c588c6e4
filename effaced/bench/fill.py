"""Rows to work on: running requests with external calls waiting."""

from __future__ import annotations

from sqlalchemy import insert
from sqlalchemy.orm import Session

from effaced import clock
from effaced.crypto import Keyring
from effaced.db import Database
from effaced.model import OutboxOperation, OutboxStatus, RequestKind, RequestStatus, new_id
from effaced.outbox.tables import Operation, OutboxRow
from effaced.requests.tables import Request

PER_REQUEST = 4
_CHUNK = 500


def fill(database: Database, keyring: Keyring, *, entries: int, resolver: str) -> None:
    """Put `entries` pending calls there, four to a request."""
    requests = -(-entries // PER_REQUEST)
    for start in range(0, requests, _CHUNK):
        with database.begin() as session:
            _chunk(session, keyring, resolver, min(_CHUNK, requests - start))


def _chunk(session: Session, keyring: Keyring, resolver: str, number: int) -> None:
    now = clock.now()
    requests, operations, rows = [], [], []
    for _ in range(number):
        request_id = new_id()
        subject = keyring.subject_key(str(request_id))
        who = {"subject_key_id": subject.key_id, "subject_hmac": subject.hmac}
        requests.append(
            {
                "id": request_id, "ref": f"B{request_id.hex[-12:]}", "kind": RequestKind.ERASURE,
                "status": RequestStatus.RUNNING, "datamap_hash": "0" * 64, "approvals_needed": 0,
                "received_at": now, "due_at": now, "execute_attempts": 0, **who,
            }
        )  # fmt: skip
        operations.append(
            {
                "request_id": request_id, "operation": OutboxOperation.ERASE,
                "total": PER_REQUEST, "remaining": PER_REQUEST,
            }
        )  # fmt: skip
        for _ in range(PER_REQUEST):
            entry_id = new_id()
            rows.append(
                {
                    "entry_id": entry_id, "request_id": request_id, "operation": OutboxOperation.ERASE,
                    "resolver": resolver, "ref_kind": "bench", "status": OutboxStatus.PENDING,
                    "ref_sealed": keyring.seal(b"bench", purpose="ref", context=str(entry_id)),
                    "attempts": 0, "token": 0, "claimed_alone": False, "crashes": 0, "times_parked": 0,
                    "enqueued_at": now,
                    "aging_since": now, **who,
                }
            )  # fmt: skip
    session.execute(insert(Request), requests)
    session.execute(insert(Operation), operations)
    session.execute(insert(OutboxRow), rows)
