"""The web application: API and console on one runtime, with the headers and limits that hold for both."""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache
from uuid import uuid4

import structlog
from flask import Flask, Response, current_app, g, redirect, request, url_for
from jinja2 import StrictUndefined
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.wrappers import Response as BaseResponse

from effaced import api, console
from effaced.api.operations import rate_limit
from effaced.core import clock
from effaced.core.log import get_logger
from effaced.core.paths import STATIC, TEMPLATES
from effaced.runtime import Runtime

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
TRACE_ID = "X-Trace-Id"
_USABLE_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
_FOREVER = "public, max-age=31536000, immutable"
# How the process is has to be told also when it does not work.
_HEALTH = {"/healthz", "/readyz"}
_log = get_logger(__name__)


def create_app(runtime: Runtime) -> Flask:
    """The WSGI application. Everything it needs hangs on the runtime; nothing is read from globals."""
    app = Flask(
        "effaced", template_folder=str(TEMPLATES), static_folder=str(STATIC), static_url_path="/static"
    )
    configure(app, runtime)
    app.jinja_env.undefined = StrictUndefined
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.globals["asset"] = asset
    app.before_request(_start_http_request)
    app.before_request(_require_schema)
    app.after_request(_set_response_headers)
    app.after_request(_report)
    app.add_url_rule("/", "root", _root)
    api.register(app)
    console.register(app)
    return app


def configure(app: Flask, runtime: Runtime) -> None:
    """Set all that depends on the runtime."""
    settings = runtime.settings
    app.extensions["effaced"] = runtime
    rate_limit.install(app, settings)
    app.config.update(
        SECRET_KEY=runtime.keyring.secret("session"),
        MAX_CONTENT_LENGTH=settings.max_body_bytes,
        MAX_FORM_MEMORY_SIZE=settings.max_body_bytes,
        SESSION_COOKIE_NAME="effaced_session",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=settings.secure_cookies,
        PERMANENT_SESSION_LIFETIME=timedelta(hours=settings.session_hours),
        # A page that polls must not keep a session alive for ever.
        SESSION_REFRESH_EACH_REQUEST=False,
    )


def asset(path: str) -> str:
    """The URL of a static file. It changes with the content, so browsers may keep it for a year."""
    return url_for("static", filename=path, v=_fingerprint(path))


@lru_cache(maxsize=64)
def _fingerprint(path: str) -> str:
    return hashlib.sha256((STATIC / path).read_bytes()).hexdigest()[:12]


def _root() -> BaseResponse:
    return redirect(url_for("console.overview.index"))


def _start_http_request() -> None:
    """Assign the HTTP call its trace id, start its timer, and bind the id to the log context."""
    given = request.headers.get(TRACE_ID, "")
    g.trace_id = given if _USABLE_ID.fullmatch(given) else uuid4().hex
    g.started = clock.monotonic()
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(trace_id=g.trace_id)


def _require_schema() -> None:
    """Answer 503, with the reason, if the database's schema is newer than this process supports."""
    if request.endpoint in (None, "static") or request.path in _HEALTH:
        return
    runtime: Runtime = current_app.extensions["effaced"]
    with suppress(SQLAlchemyError):  # a database that does not answer is told by whoever needs it
        runtime.require_schema()


def _set_response_headers(response: Response) -> Response:
    runtime: Runtime = current_app.extensions["effaced"]
    headers = response.headers
    headers.setdefault("Content-Security-Policy", CSP)
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Referrer-Policy"] = "no-referrer"
    if runtime.settings.secure_cookies:
        headers["Strict-Transport-Security"] = "max-age=31536000; includeSubDomains"
    if request.endpoint == "static":
        name = (request.view_args or {}).get("filename", "")
        # Another version's fingerprint must not pin this version's content.
        if response.status_code == 200 and request.args.get("v") == _fingerprint(name):
            headers["Cache-Control"] = _FOREVER
    elif "Cache-Control" not in headers:
        headers["Cache-Control"] = "no-store"
    return response


def _report(response: Response) -> Response:
    response.headers[TRACE_ID] = g.trace_id
    response.headers.update(g.get("api_headers", {}))
    if request.endpoint != "static":
        # The rule, not the path: a path may hold what somebody typed.
        _log.info(
            "web_request",
            method=request.method,
            rule=str(request.url_rule) if request.url_rule else None,
            status=response.status_code,
            ms=round((clock.monotonic() - g.started) * 1000),
        )
    return response
