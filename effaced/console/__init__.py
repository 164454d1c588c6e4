"""The console: what compliance officers see and do. One module per page."""

from __future__ import annotations

from flask import Blueprint, Flask

from effaced.console import (
    abandoned,
    advice,
    audit,
    call,
    datamap,
    errors,
    filters,
    guard,
    htmx,
    letter,
    overview,
    redrives,
    request,
    requests,
    resolver,
    resolvers,
    retentions,
    scheduled,
    sign_in,
    steer,
    theme,
    verified,
)

PAGES = (
    sign_in,
    theme,
    overview,
    requests,
    request,
    call,
    abandoned,
    redrives,
    letter,
    scheduled,
    verified,
    retentions,
    resolvers,
    resolver,
    steer,
    advice,
    datamap,
    audit,
)


def register(app: Flask) -> None:
    """Put the console under /console, behind sign-in."""
    htmx.register(app)
    filters.register(app)
    guard.register(app)
    errors.register(app)
    console = Blueprint("console", __name__, url_prefix="/console")
    for page in PAGES:
        console.register_blueprint(page.blueprint)
    app.register_blueprint(console)
