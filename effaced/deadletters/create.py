"""A new dead letter of an application's own. The product records its failures with `record`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import insert
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.deadletters.arguments import code, dead_letter_domain, failure_type, moment, retries
from effaced.deadletters.rules import PENDING
from effaced.deadletters.tables import DeadLetter
from effaced.model import SubjectKey, new_id


@dataclass(frozen=True, slots=True)
class NewDeadLetter:
    """What is known of the failure. `linked` are the entry or delivery, and the request, that it is about."""

    domain: str
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


def create(session: Session, new: NewDeadLetter) -> UUID:
    """Insert it, pending. Refuses values that a dead letter can't have, by the argument's name."""
    dead_letter_id, now = new_id(), clock.now()
    entry_id, request_id = new.linked
    row = {
        "id": dead_letter_id,
        "domain": dead_letter_domain(new.domain),
        "failure_type": failure_type(new.failure_type),
        "error_code": code("error_code", new.error_code, 64),
        "entry_id": entry_id,
        "request_id": request_id,
        "subject_key_id": new.subject.key_id if new.subject else None,
        "subject_hmac": new.subject.hmac if new.subject else None,
        "status": PENDING,
        "retry_count": retries("retry_count", new.retry_count),
        "max_retries": retries("max_retries", new.max_retries),
        "acquired": new.retry_count,
        "recommended_action": code("recommended_action", new.recommended_action, 32),
        "next_action_hint": code("next_action_hint", new.next_action_hint, 64),
        "context": new.context,
        "marks": new.marks,
        "created_at": now,
        "updated_at": now,
        "expires_at": None if new.expires_at is None else moment("expires_at", new.expires_at),
    }
    session.execute(insert(DeadLetter), [row])
    return dead_letter_id
