"""/metrics for Prometheus. Everything is read from the database: a forked job's own counters die with it."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable

from flask import Blueprint, Response, current_app, request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from effaced.api.current import current_runtime
from effaced.api.measures import MEASURES
from effaced.api.operations.problems import NOT_FOUND, UNAUTHENTICATED, ApiProblem
from effaced.core import clock
from effaced.runtime import Runtime

blueprint = Blueprint("metrics", __name__)
# However often it is asked, the database is not asked more often than this. Prometheus comes every 15 s.
_FRESH_SECONDS = 5.0


@blueprint.get("/metrics")
def scrape() -> Response:
    """The measures of now, or of a moment ago. Without a token in the settings there are none."""
    runtime = current_runtime()
    _require_token(runtime)
    cache = current_app.extensions.setdefault("effaced_metrics", _Cache())
    return Response(cache.text(runtime), content_type=CONTENT_TYPE_LATEST)


def _require_token(runtime: Runtime) -> None:
    token = runtime.settings.metrics_token
    if token is None:
        raise ApiProblem(NOT_FOUND, "Measures are switched off. EFFACED_METRICS_TOKEN switches them on.")
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    known = secrets.compare_digest(given.strip().encode(), token.get_secret_value().encode())
    if scheme.lower() != "bearer" or not known:
        raise ApiProblem(
            UNAUTHENTICATED,
            "Send the header `Authorization: Bearer <EFFACED_METRICS_TOKEN>`.",
            headers={"WWW-Authenticate": 'Bearer realm="effaced metrics"'},
        )


class _Cache:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text = b""
        self._until = 0.0

    def text(self, runtime: Runtime) -> bytes:
        with self._lock:  # of several at once one asks the database
            if clock.monotonic() >= self._until:
                registry = CollectorRegistry(auto_describe=False)
                registry.register(_Measured(runtime))
                self._text = generate_latest(registry)
                self._until = clock.monotonic() + _FRESH_SECONDS
            return self._text


class _Measured(Collector):
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def collect(self) -> Iterable[Metric]:
        with self._runtime.db.read() as session:
            for measure in MEASURES:
                yield from measure(session, self._runtime)
