"""POST /api/v1/requests takes a request in; GET /api/v1/requests/{id} tells how it stands."""

from __future__ import annotations

import re
from typing import cast
from uuid import UUID

from flask import Blueprint, Response, current_app, jsonify, request
from sqlalchemy import or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from effaced.accounts.tables import ApiKey
from effaced.api import shapes
from effaced.api.auth import require_key
from effaced.api.bodies import RequestBody, read_body
from effaced.api.idempotency import Answer, Call, key_of_call
from effaced.audit.events import RequestRepeated
from effaced.audit.tables import AuditEvent
from effaced.errors import Conflict, NotFound
from effaced.log import get_logger
from effaced.model import RequestKind, RequestStatus
from effaced.requests.intake import receive
from effaced.requests.tables import Request
from effaced.runtime import Runtime

blueprint = Blueprint("requests", __name__)
_REF = re.compile(r"[A-Za-z0-9-]{1,16}")
_log = get_logger(__name__)


@blueprint.post("")
def create() -> Response:
    """Take a request in: 201, or 200 with the one that is already open for this person."""
    runtime = _runtime()
    key = require_key(runtime.db)
    idempotency_key = key_of_call()
    body = read_body(request, RequestBody)
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
    runtime = _runtime()
    key = require_key(runtime.db)
    with runtime.db.read() as session:
        found = _find(session, key, name)
        if found is None:
            raise NotFound("This API key has sent no request with this id or ref.")
        return jsonify(shapes.full(session, found))


def _take_in(
    runtime: Runtime, key: ApiKey, body: RequestBody, call: Call | None
) -> tuple[Answer, UUID | None]:
    """The answer, and the request to execute now if there is one. Request and answer commit together.

    When the same person or the same call comes in twice at once, the database lets one of them through;
    the other one starts again and finds what the first has left.
    """
    _ = runtime.plan  # read the map, and find fault with it, before anything is locked
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
    intake = receive(
        session,
        runtime.keyring,
        runtime.plan,
        kind=RequestKind(body.kind),
        subject_id=body.subject.id,
        api_key=key,
        reason=body.reason,
        zone=runtime.settings.zone,
    )
    taken = intake.request
    shape = shapes.brief(session, taken)
    answer = Answer(201, shape)
    if intake.duplicate:
        answer = Answer(200, {**shape, "duplicate_of": str(taken.id)})
    if call:
        call.remember(session, runtime.keyring, answer)
    at_once = not intake.duplicate and taken.status is RequestStatus.APPROVED
    return answer, taken.id if at_once else None


def _execute(runtime: Runtime, request_id: UUID) -> None:
    """Carry it out right away. If that fails the request is safe, and the scheduler's sweep finds it."""
    try:
        runtime.executor.execute_now(request_id)
    except Exception as error:
        _log.error("execution_left_to_the_sweep", exc_info=error)


def _find(session: Session, key: ApiKey, name: str) -> Request | None:
    """A request that this key has sent, or asked for again while it was open."""
    repeated = (
        select(AuditEvent.id)
        .where(
            AuditEvent.request_id == Request.id,
            AuditEvent.type == RequestRepeated.type,
            AuditEvent.actor == f"api_key:{key.id}",
        )
        .exists()
    )
    sent = or_(Request.api_key_id == key.id, repeated)
    try:
        named = Request.id == UUID(name)
    except ValueError:
        if not _REF.fullmatch(name):
            return None
        named = Request.ref == name.upper()
    return session.scalar(select(Request).where(named, sent))


def _runtime() -> Runtime:
    return cast(Runtime, current_app.extensions["effaced"])
