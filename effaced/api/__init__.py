"""The HTTP API: /api/v1 for the company's systems; /healthz, /readyz and /metrics for who runs effaced."""

from __future__ import annotations

from flask import Blueprint, Flask

from effaced.api import breakers, dead_letters, health, metrics, problems, redrives, requests, retries


def register(app: Flask) -> None:
    """Put the API on the application. Everything it answers, errors included, is JSON."""
    api = Blueprint("api", __name__)
    problems.register(app, api)
    api.register_blueprint(health.blueprint)
    api.register_blueprint(metrics.blueprint)
    api.register_blueprint(requests.blueprint, url_prefix="/api/v1/requests")
    api.register_blueprint(retries.of_requests, url_prefix="/api/v1/requests")
    api.register_blueprint(retries.blueprint, url_prefix="/api/v1/retries")
    api.register_blueprint(dead_letters.blueprint, url_prefix="/api/v1/dead-letters")
    api.register_blueprint(redrives.blueprint, url_prefix="/api/v1/redrives")
    api.register_blueprint(breakers.blueprint, url_prefix="/api/v1/breakers")
    app.register_blueprint(api)
