"""The console: what compliance officers see and do. One module per page."""

from __future__ import annotations

from flask import Blueprint, Flask

from effaced.console import errors, filters, guard, htmx, theme
from effaced.console.abandoned import view as abandoned
from effaced.console.audit import view as audit
from effaced.console.call import view as call
from effaced.console.datamap import view as datamap
from effaced.console.letter import view as letter
from effaced.console.overview import view as overview
from effaced.console.redrives import view as redrives
from effaced.console.request import view as request
from effaced.console.requests import view as requests
from effaced.console.resolver import advice
from effaced.console.resolver import view as resolver
from effaced.console.resolvers import view as resolvers
from effaced.console.retentions import view as retentions
from effaced.console.scheduled import view as scheduled
from effaced.console.sign_in import view as sign_in
from effaced.console.steer import view as steer
from effaced.console.verified import view as verified

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
