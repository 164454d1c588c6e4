"""An outbox entry as a value, and sealing the corrections in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from effaced.core.crypto import Keyring
from effaced.core.errors import Unavailable
from effaced.model import (
    Correction,
    OutboxOperation,
    OutboxStatus,
    StepOutcome,
    SubjectKey,
    SubjectRef,
)
from effaced.outbox.tables import outbox


class Entry(NamedTuple):
    """One external call, frozen as it was when read. A named tuple: a drain makes thousands a second."""

    entry_id: UUID
    request_id: UUID
    operation: OutboxOperation
    resolver: str
    subject: SubjectKey
    ref_kind: str
    ref_sealed: bytes | None
    status: OutboxStatus
    attempts: int
    token: int
    crashes: int
    gate: datetime | None
    enqueued_at: datetime
    aging_since: datetime
    last_attempt_at: datetime | None
    last_error: str | None
    times_parked: int
    corrections_sealed: bytes | None = None
    fields: Sequence[str] | None = None
    unblocks: bool = False
    idle_since: datetime | None = None
    outcome: StepOutcome | None = None

    def __repr__(self) -> str:
        return f"Entry({self.entry_id}, {self.resolver}, {self.status}, token={self.token})"

    def open_ref(self, keyring: Keyring) -> SubjectRef:
        """The reference to call the other system with."""
        if self.ref_sealed is None:
            raise Unavailable("The entry's reference is gone: it was removed when the call succeeded.")
        value = keyring.open(self.ref_sealed, purpose="ref", context=str(self.entry_id))
        return SubjectRef(self.ref_kind, value.decode())

    def open_corrections(self, keyring: Keyring) -> tuple[Correction, ...]:
        """The corrected values, which are kept until the entry has ended."""
        if self.corrections_sealed is None:
            raise Unavailable("The entry's corrections are gone: they were removed when it ended.")
        return unseal_corrections(keyring, self.corrections_sealed, context=self.entry_id)


def seal_corrections(keyring: Keyring, corrections: Sequence[Correction], *, context: UUID) -> bytes:
    """Encrypt the values; they can only be opened with the same `context`, the id of what they belong to."""
    content = json.dumps({each.column: each.value for each in corrections}).encode()
    return keyring.seal(content, purpose="corrections", context=str(context))


def unseal_corrections(keyring: Keyring, sealed: bytes, *, context: UUID) -> tuple[Correction, ...]:
    content = json.loads(keyring.open(sealed, purpose="corrections", context=str(context)))
    return tuple(Correction(column, value) for column, value in content.items())


COLUMNS = (
    outbox.c.entry_id,
    outbox.c.request_id,
    outbox.c.operation,
    outbox.c.resolver,
    outbox.c.subject_key_id,
    outbox.c.subject_hmac,
    outbox.c.ref_kind,
    outbox.c.ref_sealed,
    outbox.c.status,
    outbox.c.attempts,
    outbox.c.token,
    outbox.c.crashes,
    outbox.c.gate,
    outbox.c.enqueued_at,
    outbox.c.aging_since,
    outbox.c.last_attempt_at,
    outbox.c.last_error,
    outbox.c.times_parked,
    outbox.c.corrections_sealed,
    outbox.c.fields,
    outbox.c.unblocks,
    outbox.c.idle_since,
    outbox.c.outcome,
)


# Rows that come past SQLAlchemy have plain words.
_OPERATIONS = {each.value: each for each in OutboxOperation}
_STATUSES = {each.value: each for each in OutboxStatus}


def as_entry(row: Sequence[Any]) -> Entry:
    """A row of COLUMNS as an entry."""
    entry_id, request_id, operation, resolver, key_id, hmac, kind, sealed, status, *rest, outcome = row
    subject, operation, status = SubjectKey(key_id, hmac), _OPERATIONS[operation], _STATUSES[status]
    rest.append(StepOutcome(outcome) if outcome else None)
    return Entry(entry_id, request_id, operation, resolver, subject, kind, sealed, status, *rest)
