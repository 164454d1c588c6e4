"""The audit trail over HTTP: pages of events, their types, and exports as jobs."""

from __future__ import annotations

from uuid import UUID

from flask import Response
from sqlalchemy import select

from effaced.accounts.scopes import Scope
from effaced.accounts.tables import ApiKey
from effaced.api.audit import models
from effaced.api.audit.models import EventQuery, ExportFilter, NewAuditExport
from effaced.api.audit.show import EXPORTS, show_audit_event, show_event_types, show_export
from effaced.api.models import PageQuery
from effaced.api.operations.call import Call, Reply
from effaced.api.operations.declare import Routes
from effaced.api.operations.problems import GONE, ApiProblem
from effaced.audit.export import MEDIA_TYPES
from effaced.audit.exports.create import create_export
from effaced.audit.exports.read import ExportReader, find_export, list_exports, read_file, status_of
from effaced.audit.exports.remove import remove_export
from effaced.audit.read import AuditFilter, list_events, require_event_type
from effaced.core.db import dbtime
from effaced.core.errors import Conflict, Problem, Refused
from effaced.model import ExportStatus
from effaced.requests.trail import sent_by

routes = Routes("Audit", "/api/v1/audit", about="What happened, who did it, and proof of it to take away.")
_EXPORT = (Scope.AUDIT_READ, Scope.REQUESTS_READ)


@routes.get("/events", scope=Scope.AUDIT_READ)
def list_audit_events(call: Call, query: EventQuery) -> models.AuditEventPage:
    """The whole audit trail, newest first."""
    require_event_type(query.type)
    page = list_events(call.session, _filter(query), after=query.after, limit=query.limit)
    return models.AuditEventPage(data=[show_audit_event(each) for each in page.items], next=page.next)


@routes.get("/event-types", scope=None)
def list_event_types(_call: Call) -> models.EventTypeList:
    """The types of events, with the JSON Schema of each one's payload.

    They are a public format: types and keys are only ever added.
    """
    return models.EventTypeList(data=show_event_types())


@routes.post("/exports", scope=_EXPORT, status=202)
def create_audit_export(call: Call, body: NewAuditExport) -> Reply[models.AuditExport]:
    """Have a file made of the trail.

    A key with `audit:read` exports any part of it, any other one the trail of a request that it has sent:
    `filter.request_id` is then required. At most 10 exports of a key are under way or can be fetched.
    """
    require_event_type(body.filter.type, field="filter.type")
    own_request_only = not call.caller.has(Scope.AUDIT_READ)
    if own_request_only:
        _require_own_request(call, body.filter.request_id)
    # Two calls at once must not both see room for one more.
    call.session.execute(select(ApiKey.id).where(ApiKey.id == call.caller.key.id).with_for_update())
    export = create_export(
        call.session,
        _filter(body.filter),
        body.format,
        api_key_id=call.caller.key.id,
        own_request_only=own_request_only,
    )
    answer = show_export(export, dbtime.now(call.session))
    return Reply(answer, headers={"Location": f"{EXPORTS}/{export.id}"})


@routes.get("/exports", scope=_EXPORT)
def list_audit_exports(call: Call, query: PageQuery) -> models.AuditExportPage:
    """Exports, newest first: this key's own, and with `audit:read` all that were made with `audit:read`."""
    now = dbtime.now(call.session)
    page = list_exports(call.session, _reader(call), after=query.after, limit=query.limit)
    return models.AuditExportPage(data=[show_export(each, now) for each in page.items], next=page.next)


@routes.get("/exports/<export_id>", scope=_EXPORT)
def get_audit_export(call: Call, export_id: str) -> models.AuditExport:
    """One export: how far it is, and where its file is."""
    export = find_export(call.session, _reader(call), export_id)
    return show_export(export, dbtime.now(call.session))


@routes.get(
    "/exports/<export_id>/file",
    scope=_EXPORT,
    media_type=tuple(MEDIA_TYPES.values()),
    errors={409: "The file is not ready yet.", 410: "It has expired, was deleted, or could not be made."},
)
def get_audit_export_file(call: Call, export_id: str) -> Response:
    """The file of an export, as often as it is wanted until it expires."""
    export = find_export(call.session, _reader(call), export_id)
    status = status_of(export, dbtime.now(call.session))
    if status in (ExportStatus.EXPIRED, ExportStatus.FAILED):
        raise ApiProblem(GONE, f"This export is {status}, so it has no file. Ask for a new one.")
    if status is not ExportStatus.READY:
        said = f"is {status}; the file can be fetched once it is ready"
        raise Conflict(f"This export {said}.", problems=[Problem("export_id", said, code="not_ready")])
    headers = {
        "Content-Disposition": f'attachment; filename="effaced-audit-{export.id}.{export.format}"',
        "Content-Length": str(export.size),
        "ETag": f'"{export.sha256}"',
    }
    file = read_file(call.runtime.db, call.keyring, export)
    return Response(file, content_type=MEDIA_TYPES[export.format], headers=headers)


@routes.delete("/exports/<export_id>", scope=_EXPORT)
def delete_audit_export(call: Call, export_id: str) -> None:
    """Delete the file of an export before it expires, or stop making it.

    The export itself is still shown, as expired. Deleting it again changes nothing.
    """
    remove_export(call.session, find_export(call.session, _reader(call), export_id, lock=True))


def _reader(call: Call) -> ExportReader:
    return ExportReader(call.caller.key.id, whole_trail=call.caller.has(Scope.AUDIT_READ))


def _filter(given: EventQuery | ExportFilter) -> AuditFilter:
    return AuditFilter(
        request_id=given.request_id,
        type=given.type,
        actor=given.actor,
        since=given.from_,
        until=given.before,
    )


def _require_own_request(call: Call, request_id: UUID | None) -> None:
    """Refuse a key without `audit:read` all but the trail of a request that it has sent."""
    field = "filter.request_id"
    if request_id is None:
        problem = Problem(field, f"is missing; only {Scope.AUDIT_READ} exports more", code="missing")
    elif sent_by(call.session, request_id, call.caller.key.id) is None:
        problem = Problem(field, "is no request that this API key has sent", code="unknown_request")
    else:
        return
    said = f"Without the scope {Scope.AUDIT_READ}, a key exports the trail of one of its own requests."
    raise Refused(said, problems=[problem])
