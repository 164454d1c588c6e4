"""The HTTP API: /api/v1 for the company's systems; /healthz, /readyz and /metrics for who runs effaced."""

from __future__ import annotations

from flask import Blueprint, Flask

from effaced.api import health, metrics, problems, requests, retries


def register(app: Flask) -> None:
    """Put the API on the application. Everything it answers, errors included, is JSON."""
    api = Blueprint("api", __name__)
    problems.register(app, api)
    api.register_blueprint(health.blueprint)
    api.register_blueprint(metrics.blueprint)
    api.register_blueprint(requests.blueprint, url_prefix="/api/v1/requests")
    api.register_blueprint(retries.of_requests, url_prefix="/api/v1/requests")
    api.register_blueprint(retries.blueprint, url_prefix="/api/v1/retries")
    app.register_blueprint(api)
