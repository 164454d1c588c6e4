"""Light, dark, or as the system says: a cookie, so that the first paint is right without a script."""

from __future__ import annotations

from flask import Blueprint, request, url_for
from werkzeug.wrappers import Response

from effaced.console.current import runtime
from effaced.console.guard import local_path, public
from effaced.console.htmx import go_to
from effaced.core.errors import Problem, Refused

THEMES = ("system", "light", "dark")
COOKIE = "effaced_theme"
blueprint = Blueprint("theme", __name__)


def chosen_theme() -> str:
    wanted = request.cookies.get(COOKIE, "")
    return wanted if wanted in THEMES else THEMES[0]


@blueprint.post("/theme")
@public
def choose() -> Response:
    wanted = request.form.get("theme", "")
    if wanted not in THEMES:
        raise Refused("There is no such theme.", problems=[Problem("theme", f"expected {', '.join(THEMES)}")])
    response = go_to(local_path(request.form.get("back")) or url_for("console.overview.index"))
    response.set_cookie(
        COOKIE,
        wanted,
        max_age=31_536_000,
        secure=runtime().settings.secure_cookies,
        httponly=True,
        samesite="Lax",
    )
    return response
