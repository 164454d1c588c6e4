"""The HTTP API: /api/v1 for the company's systems; /healthz, /readyz and /metrics for who runs effaced."""

from __future__ import annotations

from flask import Blueprint, Flask

from effaced.api import health, metrics
from effaced.api.catalogue import OPERATIONS
from effaced.api.openapi import routes as openapi
from effaced.api.operations import problems, version
from effaced.api.operations.run import view_of


def register(app: Flask) -> None:
    """Put the API on the application. Everything it answers, errors included, is JSON."""
    api = Blueprint("api", __name__)
    problems.register(app, api)
    version.register(app)
    api.register_blueprint(health.blueprint)
    api.register_blueprint(metrics.blueprint)
    api.register_blueprint(openapi.blueprint)
    for each in OPERATIONS:
        api.add_url_rule(each.rule, each.id, view_of(each), methods=[each.method])
    app.register_blueprint(api)
