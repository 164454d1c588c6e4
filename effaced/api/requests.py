"""Requests over HTTP: POST takes one in, GET tells how it stands, its attempts, and its audit trail."""

from __future__ import annotations

from uuid import UUID

from flask import Blueprint, Response, jsonify, request
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from effaced.accounts.scopes import Scope
from effaced.accounts.tables import ApiKey
from effaced.api import shapes
from effaced.api.arguments import limit_of, only
from effaced.api.auth import require_key, require_operator_for
from effaced.api.bodies import RequestBody, read_body
from effaced.api.current import current_runtime, find_request
from effaced.api.idempotency import Answer, Call, key_of_call
from effaced.api.told import trail_told
from effaced.audit.export import Format, export
from effaced.core.errors import Conflict, Problem, Refused
from effaced.core.log import get_logger
from effaced.model import Correction, RequestKind, RequestStatus
from effaced.requests.intake import IntakeRequest, receive
from effaced.requests.read import list_attempts
from effaced.runtime import Runtime

blueprint = Blueprint("requests", __name__)
_FILES = {"jsonl": "application/x-ndjson; charset=utf-8", "csv": "text/csv; charset=utf-8"}
_log = get_logger(__name__)


@blueprint.post("")
def create() -> Response:
    """Take a request in: 201, or 200 if this key has an open one for this person already."""
    runtime = current_runtime()
    key = require_key(runtime.db, Scope.REQUESTS_WRITE)
    idempotency_key = key_of_call()
    body = read_body(request, RequestBody)
    require_operator_for(key, body.retry or {}, under="retry")
    call = Call(key.id, idempotency_key, body.model_dump_json()) if idempotency_key else None
    answer, approved = _take_in(runtime, key, body, call)
    if approved is not None:
        _execute(runtime, approved)
    response = jsonify(answer.body)
    response.status_code = answer.status
    if answer.status == 201:
        response.headers["Location"] = answer.body["links"]["self"]
    if answer.replayed:
        response.headers["Idempotent-Replay"] = "true"
    return response


@blueprint.get("/<name>")
def show(name: str) -> Response:
    """How a request stands, by its id or its ref."""
    runtime = current_runtime()
    key = require_key(runtime.db, Scope.REQUESTS_READ)
    with runtime.db.read() as session:
        return jsonify(shapes.full(session, find_request(session, key, name)))


@blueprint.get("/<name>/attempts")
def attempts(name: str) -> Response:
    """Every attempt at the request's external calls, in the order in which they were written down."""
    runtime = current_runtime()
    key = require_key(runtime.db, Scope.REQUESTS_READ)
    only(request.args, "after", "limit")
    after, limit = request.args.get("after") or None, limit_of(request.args)
    with runtime.db.read() as session:
        page = list_attempts(session, find_request(session, key, name).id, after=after, limit=limit)
    return jsonify({"attempts": [shapes.attempt(each) for each in page.items], "next": page.next})


@blueprint.get("/<name>/audit")
def export_audit(name: str) -> Response:
    """The request's audit trail as a file. That it was taken out is recorded."""
    runtime = current_runtime()
    key = require_key(runtime.db, Scope.REQUESTS_READ)
    fmt = request.args.get("format", Format.JSONL.value)
    if fmt not in _FILES:
        said = f"must be {' or '.join(_FILES)}"
        raise Refused(f"The parameter format {said}.", problems=[Problem("format", said)])
    with runtime.db.read() as session:
        found = find_request(session, key, name)
        which = trail_told(session, found)
    spool = export(
        runtime.db, which, Format(fmt), actor=f"api_key:{key.id}", spool_dir=runtime.settings.spool_dir
    )
    headers = {
        "Content-Disposition": f'attachment; filename="{found.ref}.{fmt}"',
        "Content-Length": str(spool.size),
    }
    return Response(spool, content_type=_FILES[fmt], headers=headers)


def _take_in(
    runtime: Runtime, key: ApiKey, body: RequestBody, call: Call | None
) -> tuple[Answer, UUID | None]:
    """The answer, and the request to execute now if there is one. Request and answer commit together.

    When the same person or the same call comes in twice at once, the database lets one of them through;
    the other one starts again and finds what the first has left.
    """
    for _ in range(2):
        try:
            with runtime.db.begin() as session:
                return _take_in_once(session, runtime, key, body, call)
        except IntegrityError:
            _log.info("intake_raced")
    raise Conflict("The same request is being sent several times right now. Send it again.")


def _take_in_once(
    session: Session, runtime: Runtime, key: ApiKey, body: RequestBody, call: Call | None
) -> tuple[Answer, UUID | None]:
    if call and (earlier := call.earlier_answer(session, runtime.keyring)):
        return earlier, None
    asked = IntakeRequest(
        RequestKind(body.kind),
        body.subject.id,
        subject_type=body.subject.type,
        api_key=key,
        corrections=[Correction(name, value) for name, value in (body.corrections or {}).items()],
        reason=body.reason,
        retry=body.retry or {},
    )
    intake = receive(session, runtime.keyring, runtime.plan_on(session), asked, zone=runtime.settings.zone)
    taken = intake.request
    # To another key's caller a duplicate looks like any other request.
    answer = Answer(200 if intake.visible_original else 201, shapes.brief(session, taken))
    if call:
        call.remember(session, runtime.keyring, answer)
    return answer, taken.id if taken.status is RequestStatus.APPROVED else None


def _execute(runtime: Runtime, request_id: UUID) -> None:
    """Carry it out right away. If that fails the request is safe, and the scheduler's sweep finds it."""
    try:
        runtime.executor.execute_now(request_id)
    except Exception as error:
        _log.error("execution_left_to_the_sweep", exc_info=error)
