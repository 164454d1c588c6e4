"""A new dead letter of an application's own, recorded as the product records its failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from effaced.audit.append import SYSTEM
from effaced.deadletters.arguments import code, failure_type, moment, retries
from effaced.deadletters.record import record_new
from effaced.deadletters.rules import Failure, recommend
from effaced.model import DeadLetterDomain, SubjectKey


@dataclass(frozen=True, slots=True)
class NewDeadLetter:
    """What is known of the failure. `linked` are the entry or delivery, and the request, that it is about."""

    domain: DeadLetterDomain
    failure_type: str
    error_code: str
    linked: tuple[UUID | None, UUID | None]
    subject: SubjectKey | None
    context: Mapping[str, Any]
    marks: Mapping[str, Any]
    retry_count: int
    max_retries: int
    next_action_hint: str
    recommended_action: str
    expires_at: datetime | None


def create(session: Session, new: NewDeadLetter, *, actor: str = SYSTEM) -> UUID:
    """Open it, pending. Refuses a second one for the same work, and values that a dead letter can't have, by
    the argument's name."""
    entry_id, request_id = new.linked
    failure = Failure(
        domain=new.domain,
        request_id=request_id,
        subject=new.subject,
        error=failure_type(new.failure_type),
        code=code("error_code", new.error_code, 64),
        entry_id=entry_id,
        attempts=new.context.get("attempts", 0),
    )
    recommended = code("recommended_action", new.recommended_action, 32)
    values = {
        "retry_count": retries("retry_count", new.retry_count),
        "max_retries": retries("max_retries", new.max_retries),
        "acquired": new.retry_count,
        "recommended_action": recommended or recommend(failure, new.marks),
        "next_action_hint": code("next_action_hint", new.next_action_hint, 64),
        "context": new.context,
        "marks": new.marks,
        "expires_at": None if new.expires_at is None else moment("expires_at", new.expires_at),
    }
    return record_new(session, failure, values, actor=actor)
