"""Exporting the trail as CSV or JSON Lines. Each export is itself an event."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.events import AuditExported
from effaced.audit.read import AuditFilter, conditions, require_event_type
from effaced.audit.spool import Spool
from effaced.audit.tables import AuditEvent
from effaced.core.db import Database
from effaced.model import ExportFormat

COLUMNS = tuple(AuditEvent.__table__.columns.keys())
_SELECTED = [getattr(AuditEvent, name) for name in COLUMNS]
_BATCH = 1_000
MEDIA_TYPES = {ExportFormat.CSV: "text/csv; charset=utf-8", ExportFormat.JSONL: "application/x-ndjson"}


def export(
    database: Database, which: AuditFilter, fmt: ExportFormat, *, actor: str, spool_dir: Path | None = None
) -> Spool:
    """The events as a file to read once, oldest first: those that were committed when it was asked for.

    They are read in one snapshot, which blocks nobody, and written to disk before the first byte is
    handed over, so that a slow reader keeps no transaction open. In between the export is recorded, in a
    transaction of its own: an export that could not be made is not in the trail, and nothing leaves
    effaced that is not in the trail.
    """
    require_event_type(which.type)
    spool = Spool(spool_dir)
    try:
        with database.snapshot() as session:
            lines = Lines(session, which, fmt)
            spool.write(lines)
        with database.begin() as session:
            append_one(session, lines.exported(), actor=actor)
    except BaseException:
        spool.close()
        raise
    return spool


class Lines:
    """The lines of an export, batch by batch, in a snapshot; counts the events."""

    def __init__(self, session: Session, which: AuditFilter, fmt: ExportFormat) -> None:
        self._session, self._which, self._fmt = session, which, fmt
        self._last = session.scalar(select(func.max(AuditEvent.id))) or 0
        self.events = 0

    def total(self) -> int:
        """How many events there will be."""
        counted = select(func.count()).select_from(AuditEvent).where(*conditions(self._which))
        return self._session.scalar(counted) or 0

    def exported(self, export_id: UUID | None = None) -> AuditExported:
        """The event that tells of this export."""
        which = self._which
        return AuditExported(
            format=self._fmt,
            events_up_to=self._last,
            events=self.events,
            request_id=which.request_id,
            event_type=which.type,
            by_actor=which.actor,
            since=which.since,
            until=which.until,
            export_id=export_id,
        )

    def __iter__(self) -> Iterator[str]:
        if self._fmt is ExportFormat.CSV:
            yield _csv_line(COLUMNS)
        write = _csv_of if self._fmt is ExportFormat.CSV else _json_line
        after = 0
        while batch := _batch(self._session, self._which, after):
            self.events += len(batch)
            after = batch[-1]["id"]
            yield "".join(write(event) for event in batch)


def _batch(session: Session, which: AuditFilter, after: int) -> list[dict[str, Any]]:
    query = select(*_SELECTED).where(*conditions(which), AuditEvent.id > after)
    rows = session.execute(query.order_by(AuditEvent.id).limit(_BATCH))
    return [
        {
            **{name: _to_json(value) for name, value in row._mapping.items()},
            "payload": {
                name: None if isinstance(value, str) and value in which.unnamed else value
                for name, value in row.payload.items()
            },
        }
        for row in rows
    ]


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


def _json_line(event: dict[str, Any]) -> str:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n"


def _csv_of(event: dict[str, Any]) -> str:
    return _csv_line(event.values())


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
