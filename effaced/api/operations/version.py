"""Versions of the API: a date, sent with every answer. Callers can ask for the one they were written for."""

from __future__ import annotations

from flask import Flask, Response, request

from effaced.api.operations.problems import UNKNOWN_VERSION, ApiProblem
from effaced.core.errors import Problem

HEADER = "Effaced-Version"
CURRENT = "2026-11-20"
SUPPORTED = (CURRENT,)
_PREFIX = "/api/v1/"


def register(app: Flask) -> None:
    """Send the version with every answer below /api/v1, also where there is no such path."""
    app.after_request(_send_version)


def require_known_version() -> None:
    """Refuse with 400 a version that is not served: its caller expects other answers."""
    asked = request.headers.get(HEADER)
    if asked is not None and asked not in SUPPORTED:
        said = f"must be {' or '.join(SUPPORTED)}, or be left out"
        raise ApiProblem(
            UNKNOWN_VERSION,
            f"The header {HEADER} {said}.",
            problems=[Problem(HEADER, said, code="not_allowed")],
        )


def _send_version(response: Response) -> Response:
    if f"{request.path}/".startswith(_PREFIX):
        response.headers[HEADER] = CURRENT
    return response
