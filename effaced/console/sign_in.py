"""Sign in, sign out."""

from __future__ import annotations

from flask import Blueprint, make_response, render_template, request, session, url_for
from flask_login import current_user, login_user, logout_user
from werkzeug.wrappers import Response

from effaced import clock
from effaced.accounts.officers import end_sessions
from effaced.accounts.sign_in import sign_in
from effaced.console.current import SignedIn, me, runtime
from effaced.console.guard import SIGNED_IN_AT, local_path, public, reading
from effaced.console.htmx import go_to

blueprint = Blueprint("sign_in", __name__)


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
    # The transaction commits also on a refusal: the failure has to be counted.
    with runtime().db.begin() as transaction:
        result = sign_in(transaction, email=email, password=password)
    if result.officer is None:
        return _page(email=email, error=result.message, status=422)
    officer = result.officer
    session.clear()
    session.permanent = True
    session[SIGNED_IN_AT] = int(clock.now().timestamp())
    login_user(SignedIn(officer.id, officer.name, officer.role, officer.session_epoch))
    return go_to(_next())


@blueprint.post("/sign-out")
@reading
def out() -> Response:
    with runtime().db.begin() as transaction:
        end_sessions(transaction, me().id)
    logout_user()
    session.clear()
    return go_to(url_for("console.sign_in.form"))


def _page(*, email: str = "", error: str | None = None, status: int = 200) -> Response:
    page = render_template(
        "console/sign_in.html", email=email, error=error, next=local_path(request.values.get("next")) or ""
    )
    return make_response(page, status)


def _next() -> str:
    return local_path(request.values.get("next")) or url_for("console.overview.index")
