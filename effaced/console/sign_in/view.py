"""Sign in, sign out."""

from __future__ import annotations

from math import ceil

from flask import Blueprint, make_response, render_template, request, session, url_for
from flask_login import current_user, login_user, logout_user
from werkzeug.wrappers import Response

from effaced.accounts.officers import end_sessions
from effaced.accounts.sign_in import Attempt, SignInBusy, sign_in
from effaced.console.current import SignedIn, me, runtime
from effaced.console.guard import SIGNED_IN_AT, local_path, public, reading
from effaced.console.htmx import go_to
from effaced.console.sign_in.caller import client_address, known_device, remember_device
from effaced.core import clock

blueprint = Blueprint("sign_in", __name__)
_BUSY_SECONDS = 3


@blueprint.get("/sign-in")
@public
def form() -> Response:
    if current_user.is_authenticated:
        return go_to(_next())
    return _page()


@blueprint.post("/sign-in")
@public
def send() -> Response:
    email, password = request.form.get("email", ""), request.form.get("password", "")
    attempt = Attempt(email, password, address=client_address(), device=known_device())
    try:
        result = sign_in(runtime().db, runtime().keyring, attempt)
    except SignInBusy as busy:
        return _page(email=email, error=busy.message, status=503, retry_after=_BUSY_SECONDS)
    if result.retry_after is not None:
        seconds = ceil(result.retry_after.total_seconds())
        return _page(email=email, error=result.message, status=429, retry_after=seconds)
    if result.officer is None:
        return _page(email=email, error=result.message, status=422)
    officer = result.officer
    session.clear()
    session.permanent = True
    session[SIGNED_IN_AT] = int(clock.now().timestamp())
    login_user(SignedIn(officer.id, officer.name, officer.role, officer.session_epoch))
    response = go_to(_next())
    remember_device(response, officer.id)
    return response


@blueprint.post("/sign-out")
@reading
def out() -> Response:
    with runtime().db.begin() as transaction:
        end_sessions(transaction, me().id)
    logout_user()
    session.clear()
    return go_to(url_for("console.sign_in.form"))


def _page(
    *, email: str = "", error: str | None = None, status: int = 200, retry_after: int | None = None
) -> Response:
    page = render_template(
        "console/sign_in.html", email=email, error=error, next=local_path(request.values.get("next")) or ""
    )
    response = make_response(page, status)
    if retry_after is not None:
        response.headers["Retry-After"] = str(retry_after)
    return response


def _next() -> str:
    return local_path(request.values.get("next")) or url_for("console.overview.index")
