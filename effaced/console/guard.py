"""Who gets through: sign-in first, then the form's token, then the role.

Closed by default. A page is for signed-in officers unless marked `public`; a form is for those who may
act unless marked `reading`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from flask import Flask, abort, current_app, request, session, url_for
from flask_login import LoginManager, current_user
from flask_wtf import CSRFProtect
from werkzeug.wrappers import Response

from effaced.accounts.officers import get_officer
from effaced.console.current import SignedIn, me, runtime
from effaced.console.htmx import go_to
from effaced.core import clock

V = TypeVar("V", bound=Callable[..., Any])
SIGNED_IN_AT = "signed_in_at"
_csrf = CSRFProtect()
_SAFE = {"GET", "HEAD", "OPTIONS"}


def public(view: V) -> V:
    """Mark a view as not requiring sign-in."""
    view.is_public = True  # type: ignore[attr-defined]
    return view


def reading(view: V) -> V:
    """A form that changes nothing: auditors may send it too."""
    view.is_reading = True  # type: ignore[attr-defined]
    return view


def register(app: Flask) -> None:
    app.config.update(
        WTF_CSRF_TIME_LIMIT=None,
        # The guard asks for the token itself, after sign-in and never on the API.
        WTF_CSRF_CHECK_DEFAULT=False,
        # Flask-WTF would want a Referer over HTTPS; our Referrer-Policy sends none.
        WTF_CSRF_SSL_STRICT=False,
    )
    _csrf.init_app(app)
    # Flask-Login's own would ask the database even for the page that says the database is gone.
    manager = LoginManager(app, add_context_processor=False)
    app.context_processor(lambda: {"current_user": current_user})
    manager.session_protection = None
    manager.user_loader(load_officer)
    app.before_request(guard)


def guard() -> Response | None:
    if request.endpoint is None or not request.path.startswith("/console/"):
        return None
    view = current_app.view_functions[request.endpoint]
    if not getattr(view, "is_public", False) and not current_user.is_authenticated:
        return ask_to_sign_in()
    _csrf.protect()
    if request.method not in _SAFE and not _may_send(view):
        abort(403, "Your role is read-only. An officer or an admin can do this.")
    return None


def load_officer(user_id: str) -> SignedIn | None:
    """The officer of a session, unless it is too old, was ended, or its officer is gone."""
    officer_id, _, epoch = user_id.partition(":")
    opened = datetime.fromtimestamp(session.get(SIGNED_IN_AT, 0), UTC)
    if clock.now() - opened >= current_app.permanent_session_lifetime:
        return None
    with runtime().db.read() as reader:
        officer = get_officer(reader, UUID(officer_id))
    if officer is None or str(officer.session_epoch) != epoch:
        return None
    return SignedIn(officer.id, officer.name, officer.role, officer.session_epoch)


def ask_to_sign_in() -> Response:
    """Send the browser to the sign-in page; an htmx call is told so by header, not by a page in a table."""
    page = url_for("console.sign_in.form", next=_where_they_were())
    return go_to(page, htmx_status=401)


def local_path(url: str | None) -> str | None:
    """The path of a URL inside the console, or nothing: a sign-in must not lead to another site."""
    try:
        parts = urlsplit(url or "")
    except ValueError:  # no URL at all
        return None
    if not parts.path.startswith("/console/") or "\\" in parts.path:
        return None
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _where_they_were() -> str | None:
    if request.headers.get("HX-Request"):
        return local_path(request.headers.get("HX-Current-URL"))
    return local_path(request.full_path.rstrip("?")) if request.method == "GET" else None


def _may_send(view: Callable[..., Any]) -> bool:
    if getattr(view, "is_public", False) or getattr(view, "is_reading", False):
        return True
    return me().can_act
