"""How a request looks from outside. Nothing in it is personal."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from effaced.api.told import original_of, trail_told
from effaced.audit.read import last_events
from effaced.core import clock
from effaced.model import Evidence, OutboxStatus
from effaced.outbox.read import VERIFICATION_ORDER, EntryLine, entries_of
from effaced.outbox.tables import Operation
from effaced.requests.duplicates import may_reveal, visible_status
from effaced.requests.progress import BatchProgress, progress_of
from effaced.requests.read import AttemptLine
from effaced.requests.tables import Request

EVENTS_SHOWN = 500
_WAITING = (OutboxStatus.PENDING, OutboxStatus.FAILED, OutboxStatus.SCHEDULED)


def brief(session: Session, request: Request) -> dict[str, Any]:
    """The request in short: what it is, how far it has come, by when it must end."""
    counted = select(func.sum(Operation.total), func.sum(Operation.remaining), func.sum(Operation.unverified))
    total, remaining, unverified = session.execute(counted.where(Operation.request_id == request.id)).one()
    original = original_of(session, request)
    return {
        "id": str(request.id),
        "ref": request.ref,
        "kind": request.kind.value,
        "status": visible_status(request, original).value,
        "received_at": clock.text(request.received_at),
        "due_at": clock.text(request.due_at),
        "completed_at": clock.text(request.completed_at),
        "corrections": request.correction_fields or [],
        "steps": {"total": int(total or 0), "done": int((total or 0) - (remaining or 0))},
        # Done, but a read-back is due, was given up or found the data: as long as there is one the request
        # is not completed.
        "unverified": int(unverified or 0),
        "links": {"self": path_of(request)},
        **_duplicate_of(request, original),
    }


def full(session: Session, request: Request) -> dict[str, Any]:
    """The request with its external calls and its last events, oldest first."""
    events = last_events(session, trail_told(session, request), limit=EVENTS_SHOWN)
    entries = entries_of(session, request.id)
    return {
        **brief(session, request),
        "evidence": {each.value: sum(entry.evidence is each for entry in entries) for each in Evidence},
        "verification": {
            outcome.value: sum(entry.verification is outcome for entry in entries)
            for outcome in VERIFICATION_ORDER
        },
        "progress": _progress(progress_of(request)),
        "entries": [_entry(entry) for entry in entries],
        "events": [{"type": event.type, "at": clock.text(event.at)} for event in events],
    }


def attempt(line: AttemptLine) -> dict[str, Any]:
    """One attempt at an external call."""
    return {
        "entry_id": str(line.entry_id),
        "resolver": line.resolver,
        "role": line.role and line.role.value,
        "number": line.number,
        "at": clock.text(line.at),
        "outcome": line.outcome.value,
        "status_code": line.status_code,
        "latency_ms": line.latency_ms,
        "error": line.error,
    }


def path_of(request: Request) -> str:
    return f"/api/v1/requests/{request.id}"


def _duplicate_of(request: Request, original: Request | None) -> dict[str, Any]:
    """The id of the original, for the key that sent both."""
    return {"duplicate_of": str(original.id)} if original and may_reveal(request, original) else {}


def _progress(progress: BatchProgress | None) -> dict[str, Any] | None:
    if progress is None:
        return None
    tables = {each.label: {"done": each.done, "total": each.total} for each in progress.tables}
    return {"done": progress.done, "total": progress.total, "tables": tables}


def _entry(entry: EntryLine) -> dict[str, Any]:
    return {
        "id": str(entry.entry_id),
        "resolver": entry.resolver,
        "system": entry.resolver,  # its earlier name
        "operation": entry.operation.value,
        "status": entry.status.value,
        "outcome": entry.outcome and entry.outcome.value,
        "corrections": entry.fields or [],
        "waits_for": entry.waits_for or [],
        "attempts": entry.attempts,
        # In flight the gate is the lease, which is nobody's business outside.
        "next_attempt_at": clock.text(entry.gate) if entry.status in _WAITING else None,
        "last_error": entry.last_error,
        "evidence": entry.evidence and entry.evidence.value,
        "verification": entry.verification and entry.verification.value,
    }
