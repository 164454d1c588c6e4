"""Appending to the trail, in the caller's transaction: what happened and its record commit together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable
from uuid import UUID

from sqlalchemy.orm import Session

from effaced.audit.events import TYPES, Event
from effaced.audit.tables import AuditEvent
from effaced.core.db import dbtime
from effaced.core.db.sql import insert_rows
from effaced.model import SubjectKey

SYSTEM = "system"
# The key in a session's `info` under which its sink is, unless it is the trail.
SINK = "effaced.audit_sink"


@dataclass(frozen=True, slots=True)
class Record:
    """An event with what it is about. `actor` is `system`, `cli`, `officer:<id>` or `api_key:<id>`."""

    event: Event
    actor: str = SYSTEM
    request_id: UUID | None = None
    entry_id: UUID | None = None
    subject: SubjectKey | None = None


@runtime_checkable
class AuditSink(Protocol):
    """Receives events in the transaction of the change they record. An exception rolls that change back."""

    def append(self, session: Session, records: Sequence[Record]) -> None: ...


def append(session: Session, records: Iterable[Record]) -> None:
    """Append in the order given, to the session's sink if it has one. Every event goes through here."""
    records = list(records)
    sink: AuditSink | None = session.info.get(SINK)
    if sink is None:
        append_to_trail(session, records)
    elif records:
        sink.append(session, records)


def append_to_trail(session: Session, records: Sequence[Record]) -> None:
    """Write to effaced's own trail. An event of an unregistered type is refused."""
    # Many entries of a flush end alike and share their event: it is dumped once. They are told apart by
    # their id(), which holds as long as the records are kept.
    payloads: dict[int, dict[str, Any]] = {}
    for record in records:
        if id(record.event) not in payloads:
            payloads[id(record.event)] = _payload(record.event)
    if not records:
        return
    at = dbtime.now(session)
    rows = [
        {
            "at": at,
            "type": record.event.type,
            "actor": record.actor,
            "request_id": record.request_id,
            "entry_id": record.entry_id,
            "subject_key_id": record.subject.key_id if record.subject else None,
            "subject_hmac": record.subject.hmac if record.subject else None,
            "payload": payloads[id(record.event)],
        }
        for record in records
    ]
    insert_rows(session, AuditEvent, rows)


def _payload(event: Event) -> dict[str, Any]:
    if TYPES.get(getattr(event, "type", "")) is not type(event):
        raise TypeError(f"{type(event).__name__} is not a registered audit event")
    return event.model_dump(mode="json", exclude_none=True)


def append_one(session: Session, event: Event, **about: object) -> None:
    """Append a single event; `about` are the other fields of Record."""
    append(session, [Record(event, **about)])  # type: ignore[arg-type]
