"""/healthz: is the process alive? /readyz: can it do its work?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import redis
from flask import Blueprint, Response, jsonify
from sqlalchemy.exc import SQLAlchemyError

from effaced.api.current import current_runtime
from effaced.api.operations.problems import UNAVAILABLE, ApiProblem
from effaced.core.db.schema_level import require_fitting_schema
from effaced.core.errors import EffacedError, Problem, Unavailable
from effaced.core.log import get_logger
from effaced.runtime import Runtime

blueprint = Blueprint("health", __name__)
_OK = "ok"
_log = get_logger(__name__)


@blueprint.get("/healthz")
def alive() -> Response:
    return jsonify({"status": "alive"})


@blueprint.get("/readyz")
def ready() -> Response:
    """200 when requests can be taken in; else 503 with what stands against it.

    Redis is told of but not insisted on: without it the sweep finds the work, only later.
    """
    runtime = current_runtime()
    checks = {
        "database": _check(lambda: _database(runtime), "does not answer"),
        "data_map": _check(lambda: runtime.plan, "can't be used; `effaced datamap check` says why"),
        "resolvers": _check(lambda: runtime.registry, "can't be loaded; `effaced resolver list` says why"),
    }
    problems = [Problem(name, said, code="not_ready") for name, said in checks.items() if said != _OK]
    if problems:
        raise ApiProblem(
            UNAVAILABLE, "effaced is not ready.", problems=problems, headers={"Retry-After": "10"}
        )
    return jsonify({"status": "ready", "checks": {**checks, "redis": _redis(runtime)}})


def _check(look: Callable[[], object], trouble: str) -> str:
    """`ok` or a sentence. Anybody may ask here, so details stay in the log."""
    try:
        look()
    except Unavailable as error:
        return error.message
    except (EffacedError, SQLAlchemyError, OSError) as error:
        said = str(error) if isinstance(error, EffacedError) else None
        _log.warning("not_ready", error=type(error).__name__, problem=said)
        return trouble
    return _OK


def _database(runtime: Runtime) -> None:
    with runtime.db.read() as session:
        require_fitting_schema(session.connection())


def _redis(runtime: Runtime) -> str:
    url = runtime.settings.redis_url
    if url is None:
        return "not configured; `effaced drain` does the work"
    try:
        with closing(redis.Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1)) as client:
            client.ping()
    except (redis.RedisError, OSError, ValueError):
        return "does not answer; what is due waits in the database until it is back"
    return _OK
