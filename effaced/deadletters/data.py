"""What the repository hands out: a dead letter, and a summary of letters that are gone."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from effaced.model import DeadLetterStatus


class DLQCompressedStatus(StrEnum):
    """Where a summary stands: it still grows, grows no more, is put away. Never back."""

    ACTIVE = "active"
    STALE = "stale"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class FailedOperationData:
    """One dead letter. `acquired` is the number under which its replay has to be completed."""

    id: str
    domain: str
    failure_type: str
    status: str
    created_at: datetime
    updated_at: datetime
    entity_type: str | None = None
    entity_id: str | None = None
    entity_refs: dict[str, str] = field(default_factory=dict)
    subject_key_id: str | None = None
    subject_hmac: str | None = None
    resolver: str | None = None
    error_code: str = ""
    snapshot_data: dict[str, Any] = field(default_factory=dict)
    request_data: dict[str, Any] = field(default_factory=dict)
    response_data: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    retry_count: int = 0
    max_retries: int = 2
    acquired: int = 0
    last_retry_at: datetime | None = None
    next_action_hint: str = ""
    recommended_action: str = ""
    assigned_to: str | None = None
    expires_at: datetime | None = None
    resolved_at: datetime | None = None
    resolved_by_id: str | None = None
    resolution_type: str = ""
    resolution_note: str = field(default="", repr=False)
    archived_at: datetime | None = None

    @property
    def is_pending(self) -> bool:
        return self.status == DeadLetterStatus.PENDING

    @property
    def is_resolved(self) -> bool:
        return self.status == DeadLetterStatus.RESOLVED

    @property
    def can_retry(self) -> bool:
        return self.retry_count < self.max_retries


@dataclass(frozen=True, slots=True)
class DLQCompressedEntry:
    """What is left of archived letters of one kind: how many there were, from when to when."""

    id: str
    domain: str
    failure_type: str
    error_code: str
    count: int
    first_seen: datetime
    last_seen: datetime
    compressed_at: datetime
    status: str = DLQCompressedStatus.ACTIVE
    stale_at: datetime | None = None
    archived_at: datetime | None = None
