"""Error pages: one sentence that helps, the way back, and nothing of the inside."""

from __future__ import annotations

import json

from flask import Flask, Response, g, make_response, render_template
from sqlalchemy.exc import InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException

from effaced.console.htmx import wants_fragment
from effaced.core.errors import ConfigurationError, Conflict, EffacedError, NotFound, Refused, Unavailable
from effaced.core.log import get_logger

_log = get_logger(__name__)

TITLES = {
    400: (
        "This form has expired",
        "It was opened before you signed in. Go back, reload the page and send it again.",
    ),
    403: ("Not allowed for your role", "Your role is read-only here."),
    404: ("Page not found", "The address may be mistyped, or the page no longer exists."),
    405: ("Not allowed", "This address can't be opened directly. Start from the overview."),
    409: ("Changed in the meantime", "This page has changed since you opened it. Reload it."),
    413: ("Too large", "The form is larger than effaced accepts."),
    422: ("Invalid input", "Something in the address or the form is not allowed."),
    500: (
        "Something broke",
        "This is an error in effaced. Nothing was changed. The log has the details under the id below.",
    ),
    503: (
        "Not available right now",
        "Something effaced depends on does not answer. Nothing was changed. Try again in a minute.",
    ),
}
_FAMILIES: tuple[tuple[type[EffacedError], int], ...] = (
    (Refused, 422),
    (Conflict, 409),
    (NotFound, 404),
    (Unavailable, 503),
)


def register(app: Flask) -> None:
    app.register_error_handler(HTTPException, http_error)
    app.register_error_handler(EffacedError, own_error)
    for unreachable in (OperationalError, InternalError, InterfaceError, PoolTimeout):
        app.register_error_handler(unreachable, database_error)
    app.register_error_handler(Exception, any_error)


def http_error(error: HTTPException) -> Response | HTTPException:
    status = error.code or 500
    if status not in TITLES:
        return error
    own_words = status == 403 and error.description != type(error).description
    return error_page(status, sentence=error.description if own_words else None)


def own_error(error: EffacedError) -> Response:
    if isinstance(error, ConfigurationError):
        _log.error("not_configured", problem=str(error))
        return error_page(
            503, sentence="effaced's configuration has a mistake; the log names it. Nothing was changed."
        )
    status = next((code for family, code in _FAMILIES if isinstance(error, family)), 500)
    if status == 500:
        return any_error(error)
    details = [f"{problem.where}: {problem.message}" for problem in error.problems]
    return error_page(status, sentence=error.message, details=details)


def database_error(error: Exception) -> Response:
    _log.error("database_unavailable", error=type(error).__name__)
    return error_page(
        503, sentence="The database does not answer, or can't be written to. Nothing was changed."
    )


def any_error(error: Exception) -> Response:
    _log.error("unexpected_error", exc_info=error)
    return error_page(500)


def error_page(status: int, *, sentence: str | None = None, details: list[str] | None = None) -> Response:
    """The page; for htmx a toast, because an error page has no place inside a table."""
    title, usual = TITLES[status]
    if wants_fragment():
        response = make_response("", status)
        text = f"{title}. {sentence or usual}"
        response.headers["HX-Trigger"] = json.dumps({"toast": {"text": text, "tone": "bad"}})
        return response
    page = render_template(
        "console/error.html",
        status=status,
        title=title,
        sentence=sentence or usual,
        details=details or [],
        trace_id=g.get("trace_id", ""),
    )
    response = make_response(page, status)
    if status == 503:
        response.headers["Retry-After"] = "10"
    return response
