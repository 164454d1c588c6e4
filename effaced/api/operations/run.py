"""Running an operation: who calls, may they, what do they want, one transaction, one answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from flask import Response, current_app, g, jsonify, request
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from effaced.api.current import current_runtime
from effaced.api.models import Answer, NoQuery
from effaced.api.operations.body import read_body
from effaced.api.operations.call import Call, Reply
from effaced.api.operations.caller import Caller, authenticate_caller, require_scope
from effaced.api.operations.declare import Operation
from effaced.api.operations.idempotency import RepeatableCall, StoredAnswer, repeatable_call
from effaced.api.operations.problems import FORBIDDEN, ApiProblem
from effaced.api.operations.query import read_query
from effaced.api.operations.rate_limit import installed
from effaced.api.operations.version import require_known_version
from effaced.core.db.engine import error_code
from effaced.core.errors import Conflict, Problem
from effaced.core.log import get_logger
from effaced.runtime import Runtime

_TRIES = 3
_RACES = {"sqlstate_23505", "sqlite_constraint_unique", "sqlite_constraint_primarykey"}
_log = get_logger(__name__)


def view_of(operation: Operation) -> Callable[..., Response]:
    """The operation as a view of Flask."""

    def view(**path: str) -> Response:
        return _run(operation, path)

    return view


def _run(operation: Operation, path: dict[str, str]) -> Response:
    runtime = current_runtime()
    require_known_version()
    caller = authenticate_caller(runtime.db)
    allowance = installed(current_app).count(str(caller.key.id))
    # Also where the call is refused further down: whoever sends nonsense has to know how much is left.
    g.api_headers = allowance.headers() if allowance else {}
    require_scope(caller, operation.scopes)
    _require_live_key(caller, operation)
    given: dict[str, Any] = dict(path)
    query = read_query(operation.query or NoQuery, request.args)
    if operation.query is not None:
        given["query"] = query
    if operation.body is not None:
        given["body"] = read_body(request, operation.body)
    repeatable = repeatable_call(caller.key.id, given.get("body")) if operation.method == "POST" else None
    answer = _in_a_transaction(operation, runtime, caller, repeatable, given)
    return answer if isinstance(answer, Response) else _response(answer)


def _in_a_transaction(
    operation: Operation,
    runtime: Runtime,
    caller: Caller,
    repeatable: RepeatableCall | None,
    given: dict[str, Any],
) -> StoredAnswer | Response:
    """What the operation answers. What it changes, and the answer to the same call again, commit together.

    When the same call, or the same person, comes in twice at once, the database lets one of them through; the
    other one starts again and finds what the first has left.
    """
    begin: Callable[[], AbstractContextManager[Session]]
    begin = runtime.db.begin if operation.writes else runtime.db.read
    for tries_left in reversed(range(_TRIES)):
        try:
            with begin() as session:
                if repeatable and (earlier := repeatable.earlier_answer(session, runtime.keyring)):
                    return earlier
                call = Call(runtime, session, caller)
                reply = operation.view(call, **given)
                if isinstance(reply, Response):
                    return reply
                answer = _written(operation, reply if isinstance(reply, Reply) else Reply(reply))
                if repeatable:
                    kept = _without_secrets(answer, operation.secrets)
                    repeatable.remember(session, runtime.keyring, kept)
        except IntegrityError as error:
            # Anything else that a constraint refuses is a mistake of ours, and would be one again.
            if not operation.writes or error_code(error) not in _RACES:
                raise
            _log.info("call_raced", operation=operation.id)
        except Conflict:
            # Perhaps with the same call, which was faster: then this one gets its answer.
            if not tries_left or repeatable is None:
                raise
        else:
            call.committed()
            return answer
    raise Conflict("The same call is being made several times right now. Send it again.")


def _require_live_key(caller: Caller, operation: Operation) -> None:
    if caller.sandbox and not operation.sandbox:
        raise ApiProblem(
            FORBIDDEN,
            "This is a sandbox key: it tries requests out and executes nothing. Use a live key for this.",
            problems=[Problem("Authorization", "needs a live key", code="sandbox_key")],
        )


def _written(operation: Operation, reply: Reply[Answer | None]) -> StoredAnswer:
    if reply.answer is None:
        return StoredAnswer(HTTPStatus.NO_CONTENT, None, reply.headers)
    return StoredAnswer(reply.status or operation.status, reply.answer.model_dump(mode="json"), reply.headers)


def _without_secrets(answer: StoredAnswer, secrets: tuple[str, ...]) -> StoredAnswer:
    if answer.body is None:
        return answer
    body = answer.body
    for path in secrets:
        body = _blanked(body, path.split("."))
    return replace(answer, body=body)


def _blanked(body: dict[str, Any], path: list[str]) -> dict[str, Any]:
    """The body with null in this place. What is empty is no secret, and stays."""
    name, *inner = path
    value = body.get(name)
    if not value:
        return body
    return {**body, name: _blanked(value, inner) if inner else None}


def _response(answer: StoredAnswer) -> Response:
    # jsonify writes in the order of the names, so that a replayed answer is the same to the byte.
    response = Response() if answer.body is None else jsonify(answer.body)
    response.status_code = answer.status
    response.headers.update(answer.headers)
    if answer.replayed:
        response.headers["Idempotent-Replay"] = "true"
    return response
