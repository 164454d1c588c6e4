"""Appending to the trail, in the caller's transaction: what happened and its record commit together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.orm import Session

from effaced import clock
from effaced.audit.events import TYPES, Event
from effaced.audit.tables import AuditEvent
from effaced.model import SubjectKey
from effaced.sql import insert_rows

SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Record:
    """An event with what it is about. `actor` is `system`, `cli`, `officer:<id>` or `api_key:<id>`."""

    event: Event
    actor: str = SYSTEM
    request_id: UUID | None = None
    entry_id: UUID | None = None
    subject: SubjectKey | None = None


def append(session: Session, records: Iterable[Record]) -> None:
    """Append in the order given. An event of an unregistered type is refused."""
    at = clock.now()
    rows = []
    for record in records:
        if TYPES.get(getattr(record.event, "type", "")) is not type(record.event):
            raise TypeError(f"{type(record.event).__name__} is not a registered audit event")
        rows.append(
            {
                "at": at,
                "type": record.event.type,
                "actor": record.actor,
                "request_id": record.request_id,
                "entry_id": record.entry_id,
                "subject_key_id": record.subject.key_id if record.subject else None,
                "subject_hmac": record.subject.hmac if record.subject else None,
                "payload": record.event.model_dump(mode="json", exclude_none=True),
            }
        )
    insert_rows(session, AuditEvent, rows)


def append_one(session: Session, event: Event, **about: object) -> None:
    """Append a single event; `about` are the other fields of Record."""
    append(session, [Record(event, **about)])  # type: ignore[arg-type]
