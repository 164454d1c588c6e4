"""The trail as CSV or JSON Lines, streamed. Taking it out is itself an event."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.events import TYPES, AuditExported
from effaced.audit.read import AuditFilter, conditions
from effaced.audit.tables import AuditEvent
from effaced.db import Database, is_postgres
from effaced.errors import Problem, Refused

COLUMNS = ("id", "at", "type", "actor", "request_id", "entry_id", "subject_key_id", "subject_hmac", "payload")
_BATCH = 1_000


class Format(StrEnum):
    """What an export looks like."""

    CSV = "csv"
    JSONL = "jsonl"


def export(database: Database, which: AuditFilter, fmt: Format, *, actor: str) -> Iterator[str]:
    """Record the export, then return its pieces, oldest event first.

    What is exported is what was there when it was asked for: the events up to that moment.
    """
    if which.type is not None and which.type not in TYPES:
        raise Refused(
            "There is no such type of event.",
            problems=[Problem("type", f"one of {', '.join(sorted(TYPES))}")],
        )
    with database.begin() as session:
        if is_postgres(session):
            # Ids are given before the commit: wait for whoever holds one, or it would be left out for good.
            session.execute(text("LOCK TABLE effaced_audit_events IN SHARE ROW EXCLUSIVE MODE"))
        last = session.scalar(select(func.max(AuditEvent.id))) or 0
        event = AuditExported(
            format=fmt,
            events_up_to=last,
            request_id=which.request_id,
            event_type=which.type,
            by_actor=which.actor,
            since=which.since,
            until=which.until,
        )
        append_one(session, event, actor=actor)
    return _pieces(database, which, fmt, last)


def _pieces(database: Database, which: AuditFilter, fmt: Format, last: int) -> Iterator[str]:
    if fmt is Format.CSV:
        yield _csv_line(COLUMNS)
    after = 0
    while True:
        # A short transaction per batch: a slow reader holds nothing up.
        with database.read() as session:
            batch = _batch(session, which, after, last)
        if not batch:
            return
        yield "".join(
            _csv_line(event.values()) if fmt is Format.CSV else _json_line(event) for event in batch
        )
        after = batch[-1]["id"]


def _batch(session: Session, which: AuditFilter, after: int, last: int) -> list[dict[str, Any]]:
    rows = session.scalars(
        select(AuditEvent)
        .where(*conditions(which), AuditEvent.id > after, AuditEvent.id <= last)
        .order_by(AuditEvent.id)
        .limit(_BATCH)
    )
    return [
        {
            "id": row.id,
            "at": row.at.isoformat(),
            "type": row.type,
            "actor": row.actor,
            "request_id": str(row.request_id) if row.request_id else None,
            "entry_id": str(row.entry_id) if row.entry_id else None,
            "subject_key_id": row.subject_key_id,
            "subject_hmac": row.subject_hmac,
            "payload": row.payload,
        }
        for row in rows
    ]


def _json_line(event: dict[str, Any]) -> str:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n"


def _csv_line(values: Any) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerow([_cell(value) for value in values])
    return buffer.getvalue()


def _cell(value: Any) -> str:
    """Text that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    cell = json.dumps(value, ensure_ascii=False, sort_keys=True) if isinstance(value, dict) else str(value)
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
