"""The outbox entry as the rest of the code sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from effaced.crypto import Keyring
from effaced.errors import Unavailable
from effaced.model import OutboxOperation, OutboxStatus, SubjectKey, SubjectRef
from effaced.outbox.tables import OutboxRow


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """One external call, frozen as it was when read."""

    entry_id: UUID
    request_id: UUID
    operation: OutboxOperation
    resolver: str
    subject: SubjectKey
    ref_kind: str
    ref_sealed: bytes | None = field(repr=False)
    status: OutboxStatus
    attempts: int
    token: int
    crashes: int
    gate: datetime | None
    enqueued_at: datetime
    last_attempt_at: datetime | None
    last_error: str | None
    times_parked: int

    def open_ref(self, keyring: Keyring) -> SubjectRef:
        """The reference to call the other system with."""
        if self.ref_sealed is None:
            raise Unavailable("The entry's reference was removed when its request was closed.")
        value = keyring.open(self.ref_sealed, purpose="ref", context=str(self.entry_id))
        return SubjectRef(self.ref_kind, value.decode())


COLUMNS = (
    OutboxRow.entry_id,
    OutboxRow.request_id,
    OutboxRow.operation,
    OutboxRow.resolver,
    OutboxRow.subject_key_id,
    OutboxRow.subject_hmac,
    OutboxRow.ref_kind,
    OutboxRow.ref_sealed,
    OutboxRow.status,
    OutboxRow.attempts,
    OutboxRow.token,
    OutboxRow.crashes,
    OutboxRow.gate,
    OutboxRow.enqueued_at,
    OutboxRow.last_attempt_at,
    OutboxRow.last_error,
    OutboxRow.times_parked,
)


def as_entry(row: Row[*tuple[Any, ...]]) -> OutboxEntry:
    """A row of COLUMNS as an entry."""
    entry_id, request_id, operation, resolver, key_id, hmac, *rest = row
    return OutboxEntry(entry_id, request_id, operation, resolver, SubjectKey(key_id, hmac), *rest)
