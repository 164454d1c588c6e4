"""Events, types of events and exports as the API answers them."""

from __future__ import annotations

import inspect
from datetime import datetime
from functools import cache
from typing import Any

from effaced.api.audit import models
from effaced.audit.events import TYPES
from effaced.audit.events.base import Event
from effaced.audit.exports.read import status_of
from effaced.audit.read import AuditLine
from effaced.audit.tables import AuditExport
from effaced.model import ExportStatus

EXPORTS = "/api/v1/audit/exports"


def show_audit_event(line: AuditLine) -> models.AuditEvent:
    return models.AuditEvent(
        id=line.id,
        type=line.type,
        at=line.at,
        actor=line.actor,
        request_id=line.request_id,
        entry_id=line.entry_id,
        payload=line.payload,
    )


def show_event_types() -> list[models.EventTypeInfo]:
    return [
        models.EventTypeInfo(
            type=name, description=_description(TYPES[name]), payload_schema=payload_schema(TYPES[name])
        )
        for name in sorted(TYPES)
    ]


def show_export(export: AuditExport, now: datetime) -> models.AuditExport:
    status = status_of(export, now)
    ready = export.ready_at is not None
    running = status is ExportStatus.RUNNING and export.total is not None
    path = f"{EXPORTS}/{export.id}"
    return models.AuditExport(
        id=export.id,
        status=status,
        format=export.format,
        filter=models.ExportedFilter(
            request_id=export.request_id,
            type=export.type,
            actor=export.actor,
            before=export.until,
            **{"from": export.since},  # which no argument can be called
        ),
        events=export.events if ready else None,
        bytes=export.size if ready else None,
        sha256=export.sha256 if ready else None,
        progress=models.ExportProgress(done=export.events, total=export.total or 0) if running else None,
        last_error=export.last_error,
        created_at=export.created_at,
        ready_at=export.ready_at,
        expires_at=export.expires_at,
        links=models.ExportLinks(self=path, file=f"{path}/file" if status is ExportStatus.READY else None),
    )


@cache
def payload_schema(event: type[Event]) -> dict[str, Any]:
    """The schema of stored payloads: a key without a value is left out, so only the others are required."""
    schema = event.model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        if "required" in part:
            part["required"] = [name for name in part["required"] if not _nullable(part["properties"][name])]
    return {name: value for name, value in schema.items() if name not in ("title", "description")}


def _nullable(schema: dict[str, Any]) -> bool:
    return {"type": "null"} in schema.get("anyOf", ())


def _description(event: type[Event]) -> str:
    """Its docstring: it has none of its own where the name says all."""
    return inspect.cleandoc(event.__dict__.get("__doc__") or "")
