"""Subject requests as their senders see them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar
from uuid import UUID

from sqlalchemy.orm import Session

from effaced.api.requests import models
from effaced.api.requests.models import Expand
from effaced.audit.read import AuditFilter, AuditLine, last_events
from effaced.model import Evidence, OutboxStatus
from effaced.outbox.read import VERIFICATION_ORDER, EntryLine, entries_of_all
from effaced.requests.duplicates import may_reveal, originals_of, visible_status
from effaced.requests.progress import BatchProgress, progress_of
from effaced.requests.read import AttemptLine, Steps, state_of, steps_of
from effaced.requests.tables import Request
from effaced.requests.trail import visible_trail

W = TypeVar("W")
EVENTS_SHOWN = 500
_WAITING = (OutboxStatus.PENDING, OutboxStatus.FAILED, OutboxStatus.SCHEDULED)


def show_request(
    session: Session, request: Request, expand: Collection[Expand] = (), *, reveal: bool = False
) -> models.Request:
    """One request; see `show_requests`."""
    return show_requests(session, [request], expand, reveal=reveal)[0]


def show_requests(
    session: Session, requests: Sequence[Request], expand: Collection[Expand] = (), *, reveal: bool = False
) -> list[models.Request]:
    """The requests, with one query for each kind of fact and not for each request.

    Without `reveal`, as whoever has sent them may see them: nothing of what other API keys have asked.
    """
    ids = [each.id for each in requests]
    steps, originals = steps_of(session, ids), originals_of(session, requests)
    entries = entries_of_all(session, ids) if Expand.ENTRIES in expand else None
    return [
        _show(
            each,
            steps.get(each.id, Steps()),
            originals.get(each.id),
            None if entries is None else entries.get(each.id, []),
            _events(session, each, reveal=reveal) if Expand.EVENTS in expand else None,
            reveal=reveal,
        )
        for each in requests
    ]


def show_entry(entry: EntryLine) -> models.Entry:
    return models.Entry(
        id=entry.entry_id,
        resolver=entry.resolver,
        operation=entry.operation,
        status=entry.status,
        outcome=entry.outcome,
        corrections=entry.fields or [],
        waits_for=entry.waits_for or [],
        attempts=entry.attempts,
        # In flight the gate is the lease, which is nobody's business outside.
        next_attempt_at=entry.gate if entry.status in _WAITING else None,
        last_error=entry.last_error,
        evidence=entry.evidence,
        verification=entry.verification,
    )


def show_event(event: AuditLine, unnamed: Collection[str]) -> models.Event:
    """One event, without the ids of requests that other keys have sent."""
    return models.Event(
        id=event.id,
        type=event.type,
        at=event.at,
        actor=event.actor,
        entry_id=event.entry_id,
        payload={name: None if value in unnamed else value for name, value in event.payload.items()}
        if unnamed
        else event.payload,
    )


def show_attempt(line: AttemptLine) -> models.Attempt:
    return models.Attempt(
        entry_id=line.entry_id,
        resolver=line.resolver,
        role=line.role,
        number=line.number,
        at=line.at,
        outcome=line.outcome,
        status_code=line.status_code,
        latency_ms=line.latency_ms,
        error=line.error,
    )


def path_of(request_id: UUID) -> str:
    return f"/api/v1/requests/{request_id}"


def _show(
    request: Request,
    steps: Steps,
    original: Request | None,
    entries: list[EntryLine] | None,
    events: list[models.Event] | None,
    *,
    reveal: bool,
) -> models.Request:
    status = request.status if reveal else visible_status(request, original)
    return models.Request(
        id=request.id,
        ref=request.ref,
        kind=request.kind,
        status=status,
        state=state_of(status, steps),
        received_at=request.received_at,
        due_at=request.due_at,
        executed_at=request.executed_at,
        completed_at=request.completed_at,
        closed_at=request.closed_at,
        corrections=request.correction_fields or [],
        metadata=request.metadata_values or {},
        steps=models.Steps(total=steps.total, done=steps.done),
        # Done, but a read-back is due, was given up or found the data: as long as there is one the request
        # is not completed.
        unverified=steps.unverified,
        evidence=None if entries is None else _counted(Evidence, (each.evidence for each in entries)),
        verification=None
        if entries is None
        else _counted(VERIFICATION_ORDER, (each.verification for each in entries)),
        progress=_progress(progress_of(request)),
        duplicate_of=original.id if original and (reveal or may_reveal(request, original)) else None,
        entries=None if entries is None else [show_entry(each) for each in entries],
        events=events,
        links=models.Links(self=path_of(request.id)),
    )


def _events(session: Session, request: Request, *, reveal: bool) -> list[models.Event]:
    which = AuditFilter(request_id=request.id) if reveal else visible_trail(session, request)
    return [show_event(each, which.unnamed) for each in last_events(session, which, limit=EVENTS_SHOWN)]


def _counted(words: Iterable[W], found: Iterable[W | None]) -> dict[W, int]:
    listed = list(found)
    return {each: listed.count(each) for each in words}


def _progress(progress: BatchProgress | None) -> models.Progress | None:
    if progress is None:
        return None
    tables = {each.label: models.TableProgress(done=each.done, total=each.total) for each in progress.tables}
    return models.Progress(done=progress.done, total=progress.total, tables=tables)
