"""Versions of the API: a date, sent with every answer. Callers can ask for the one they were written for."""

from __future__ import annotations

from flask import request

from effaced.api.operations.problems import UNKNOWN_VERSION, ApiProblem
from effaced.core.errors import Problem

HEADER = "Effaced-Version"
CURRENT = "2026-11-20"
SUPPORTED = (CURRENT,)


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
