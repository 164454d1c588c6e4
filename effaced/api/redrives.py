"""Redrives over HTTP: retrying a whole set, to be polled and cancelled."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify, request

from effaced.accounts.scopes import Scope
from effaced.api.arguments import letter_filter, limit_of, only, path_id
from effaced.api.auth import require_key
from effaced.api.bodies import read_body
from effaced.api.current import current_runtime
from effaced.api.letter_bodies import RedriveBody
from effaced.core.errors import Problem, Refused
from effaced.deadletters.read import DeadLetterFilter
from effaced.deadletters.rules import Sla
from effaced.triage.redrive import cancel_redrive, start_redrive
from effaced.triage.redrive_read import (
    list_redrives,
    plain_redrive,
    plain_result,
    redrive_results,
    redrive_view,
)

blueprint = Blueprint("redrives", __name__)


@blueprint.post("")
def create() -> tuple[Response, int, dict[str, str]]:
    """Have the letters of a filter tried again: 202, and where to look how far it is."""
    runtime = current_runtime()
    key = require_key(runtime.db, Scope.OPERATE_WRITE)
    body = read_body(request, RedriveBody)
    which = _filter(body, runtime.dead_letter_sla)
    with runtime.db.begin() as session:
        redrive_id = start_redrive(
            session,
            runtime.keyring,
            which,
            actor=f"api_key:{key.id}",
            reason=body.reason,
            force=body.force,
            per_second=body.per_second,
        )
        shape = plain_redrive(redrive_view(session, redrive_id))
    return jsonify(shape), 202, {"Location": f"/api/v1/redrives/{redrive_id}"}


@blueprint.get("")
def index() -> Response:
    """A page of redrives, newest first."""
    runtime = current_runtime()
    require_key(runtime.db, Scope.OPERATE_READ)
    only(request.args, "after", "limit")
    with runtime.db.read() as session:
        page = list_redrives(session, after=request.args.get("after") or None, limit=limit_of(request.args))
    return jsonify({"redrives": [plain_redrive(each) for each in page.items], "next": page.next})


@blueprint.get("/<name>")
def show(name: str) -> Response:
    """How far it is."""
    runtime = current_runtime()
    require_key(runtime.db, Scope.OPERATE_READ)
    with runtime.db.read() as session:
        return jsonify(plain_redrive(redrive_view(session, path_id(name, "redrive"))))


@blueprint.get("/<name>/results")
def results(name: str) -> Response:
    """What became of each letter so far."""
    runtime = current_runtime()
    require_key(runtime.db, Scope.OPERATE_READ)
    only(request.args, "after", "limit")
    redrive_id = path_id(name, "redrive")
    with runtime.db.read() as session:
        redrive_view(session, redrive_id)
        after, limit = request.args.get("after") or None, limit_of(request.args)
        page = redrive_results(session, redrive_id, after=after, limit=limit)
    return jsonify({"results": [plain_result(each) for each in page.items], "next": page.next})


@blueprint.post("/<name>/cancel")
def cancel(name: str) -> Response:
    """End it where it is."""
    runtime = current_runtime()
    key = require_key(runtime.db, Scope.OPERATE_WRITE)
    redrive_id = path_id(name, "redrive")
    with runtime.db.begin() as session:
        cancel_redrive(session, redrive_id, actor=f"api_key:{key.id}")
        return jsonify(plain_redrive(redrive_view(session, redrive_id)))


def _filter(body: RedriveBody, sla: Sla) -> DeadLetterFilter:
    try:
        return letter_filter(body.filter.given(), sla)
    except Refused as error:
        problems = [Problem(f"filter.{each.where}", each.message) for each in error.problems]
        raise Refused("The filter is invalid.", problems=problems) from None
