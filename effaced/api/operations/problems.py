"""Errors as RFC 9457 problem+json: the one place that says which error gets which status and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from flask import Blueprint, Flask, Response, g, jsonify, request
from sqlalchemy.exc import InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException, MethodNotAllowed, default_exceptions
from werkzeug.exceptions import NotFound as NoSuchPath

from effaced.core.errors import (
    ConfigurationError,
    Conflict,
    EffacedError,
    NotFound,
    Problem,
    Refused,
    Unavailable,
)
from effaced.core.log import get_logger

TYPE = "urn:effaced:problem:"
DOCUMENTATION = "/api/v1/docs/errors"
_RETRY_AFTER = {"Retry-After": "10"}
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Kind:
    """One type of problem. `slug` is for programs and never changes its meaning."""

    slug: str
    status: int
    title: str


REFUSED = Kind("refused", 422, "The request is refused")
CONFLICT = Kind("conflict", 409, "The request contradicts the present state")
NOT_FOUND = Kind("not-found", 404, "There is no such thing here")
UNAVAILABLE = Kind("unavailable", 503, "effaced can't answer right now")
MALFORMED = Kind("malformed-json", 400, "The body is not JSON")
UNAUTHENTICATED = Kind("unauthenticated", 401, "A valid API key is needed")
FORBIDDEN = Kind("forbidden", 403, "This API key may not do this")
GONE = Kind("gone", 410, "It is no longer here")
KEY_REUSED = Kind("idempotency-key-reused", 409, "The Idempotency-Key belongs to another request")
TOO_LARGE = Kind("body-too-large", 413, "The body is too large")
RATE_LIMITED = Kind("rate-limited", 429, "Too many calls")
UNKNOWN_VERSION = Kind("unknown-version", 400, "This version of the API is not served")
INTERNAL = Kind("internal", 500, "effaced failed")

_FAMILIES: dict[type[EffacedError], Kind] = {
    Refused: REFUSED,
    Conflict: CONFLICT,
    NotFound: NOT_FOUND,
    Unavailable: UNAVAILABLE,
}
# What a database raises that is down, out of connections, locked for too long, or read-only.
_DATABASE_TROUBLE = (OperationalError, InternalError, InterfaceError, PoolTimeout)
_BY_STATUS = {
    404: (NOT_FOUND, "No resource has this path."),
    405: (Kind("method-not-allowed", 405, "This method can't be used here"), "See the Allow header."),
    413: (TOO_LARGE, "A request needs only a few bytes."),
    415: (
        Kind("unsupported-media-type", 415, "The body has another type than JSON"),
        "Send the body as JSON, with the header `Content-Type: application/json`.",
    ),
}


class ApiProblem(EffacedError):
    """A refusal that only makes sense over HTTP."""

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        problems: Sequence[Problem] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, problems=problems)
        self.kind = kind
        self.headers = dict(headers or {})


def register(app: Flask, blueprint: Blueprint) -> None:
    """Answer every error below the blueprint, and wrong paths and methods under /api, with a problem."""
    blueprint.register_error_handler(Exception, answer)
    # A handler for a status code would win over the one for all exceptions, and pages have theirs.
    for status in default_exceptions:
        blueprint.register_error_handler(status, answer)
    app.before_request(_refuse_wrong_paths)


def answer(error: Exception) -> Response:
    """The response for an error. What is not meant for the caller goes to the log only."""
    if isinstance(error, ApiProblem):
        return respond(error.kind, error.message, error.problems, error.headers)
    if isinstance(error, ConfigurationError):
        _log.error("not_configured", problem=str(error))
        said = "effaced's configuration has a mistake. Its operator finds it with `effaced datamap check`."
        return respond(UNAVAILABLE, said, headers=_RETRY_AFTER)
    for family, kind in _FAMILIES.items():
        if isinstance(error, family):
            retry = _RETRY_AFTER if kind is UNAVAILABLE else {}
            return respond(kind, error.message, error.problems, retry)
    if isinstance(error, _DATABASE_TROUBLE):
        _log.error("database_trouble", exc_info=error)
        said = "The database does not take this now; nothing was changed. Try again in a while."
        return respond(UNAVAILABLE, said, headers=_RETRY_AFTER)
    if isinstance(error, HTTPException):
        return _http(error)
    _log.error("unexpected", exc_info=error)
    return respond(INTERNAL, "That was not expected. The log has more under this trace_id.")


def respond(
    kind: Kind, detail: str, problems: Sequence[Problem] = (), headers: Mapping[str, str] | None = None
) -> Response:
    body: dict[str, object] = {
        "type": f"{TYPE}{kind.slug}",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "documentation": f"{DOCUMENTATION}#{kind.slug}",
        "errors": [
            {"field": problem.where, "code": problem.code.replace("-", "_"), "message": problem.message}
            for problem in problems
        ],
        "trace_id": g.get("trace_id"),
    }
    response = jsonify(body)
    response.status_code = kind.status
    response.content_type = "application/problem+json"
    response.headers.update({"Cache-Control": "no-store", **(headers or {})})
    return response


def _http(error: HTTPException) -> Response:
    status = error.code or 500
    plain = HTTPStatus(status).phrase
    fallback = Kind(plain.lower().replace(" ", "-"), status, plain), "The request can't be understood."
    kind, detail = _BY_STATUS.get(status, fallback)
    allow = {}
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        allow = {"Allow": ", ".join(sorted(error.valid_methods))}
    return respond(kind, detail, headers=allow)


def _refuse_wrong_paths() -> Response | None:
    # Such a request belongs to no blueprint, so that the application's HTML pages would answer it.
    error = request.routing_exception
    ours = f"{request.path}/".startswith(("/api/", "/healthz/", "/readyz/", "/metrics/"))
    return answer(error) if ours and isinstance(error, NoSuchPath | MethodNotAllowed) else None
