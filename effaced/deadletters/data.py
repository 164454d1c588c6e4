"""What the repository returns: a dead letter, and a summary of dead letters that were removed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from effaced.core.clock import text
from effaced.deadletters.context import split_context
from effaced.deadletters.read import DeadLetterLine
from effaced.model import DeadLetterDomain, DeadLetterStatus


class DLQCompressedStatus(StrEnum):
    """An active summary still grows. It becomes stale, then archived, and never goes back."""

    ACTIVE = "active"
    STALE = "stale"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class FailedOperationData:
    """One dead letter. `acquired` is the token that completing its replay requires."""

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

    @classmethod
    def from_line(cls, line: DeadLetterLine, note: str = "") -> FailedOperationData:
        snapshot, request, response = split_context(line.context)
        kind = "delivery_id" if line.domain is DeadLetterDomain.MESSAGE else "entry_id"
        links = {kind: line.entry_id, "request_id": line.request_id}
        refs = {name: str(value) for name, value in links.items() if value is not None}
        entity = next(iter(refs), None)
        return cls(
            id=str(line.id),
            domain=line.domain.value,
            failure_type=line.failure_type,
            status=line.status.value,
            created_at=line.created_at,
            updated_at=line.updated_at,
            entity_type=entity.removesuffix("_id") if entity else None,
            entity_id=refs[entity] if entity else None,
            entity_refs=refs,
            subject_key_id=line.subject_key_id,
            subject_hmac=line.subject_hmac,
            resolver=line.resolver,
            error_code=line.error_code,
            snapshot_data=snapshot,
            request_data=request,
            response_data=response,
            metadata=dict(line.marks or {}),
            retry_count=line.retry_count,
            max_retries=line.max_retries,
            acquired=line.acquired,
            last_retry_at=line.last_retry_at,
            next_action_hint=line.next_action_hint,
            recommended_action=line.recommended_action,
            assigned_to=str(line.assigned_to) if line.assigned_to else None,
            expires_at=line.expires_at,
            resolved_at=line.resolved_at,
            resolved_by_id=line.resolved_by,
            resolution_type=line.resolution,
            resolution_note=note,
            archived_at=line.archived_at,
        )


@dataclass(frozen=True, slots=True)
class DLQCompressedEntry:
    """What is left of archived dead letters of one kind: how many there were, from when to when."""

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

    def plain(self) -> dict[str, Any]:
        """As programs read it, by the names that a dead letter has there."""
        named = {"failure_type": "error", "error_code": "code"}
        return {
            named.get(name, name): text(each) if isinstance(each, datetime) else each
            for name, each in asdict(self).items()
        }
