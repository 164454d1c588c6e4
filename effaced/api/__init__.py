"""The HTTP API: /api/v1 for the company's systems, /healthz and /readyz for whoever keeps effaced running."""

from __future__ import annotations

from flask import Blueprint, Flask

from effaced.api import health, problems, requests


def register(app: Flask) -> None:
    """Put the API on the application. Everything it answers, errors included, is JSON."""
    api = Blueprint("api", __name__)
    problems.register(app, api)
    api.register_blueprint(health.blueprint)
    api.register_blueprint(requests.blueprint, url_prefix="/api/v1/requests")
    app.register_blueprint(api)
