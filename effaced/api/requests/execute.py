"""Executing what has become due by a call, once that is committed."""

from __future__ import annotations

from uuid import UUID

from effaced.core.log import get_logger
from effaced.runtime import Runtime

_log = get_logger(__name__)


def execute(runtime: Runtime, request_id: UUID) -> None:
    """Execute it right away. If that fails the request is safe, and the scheduler's sweep finds it."""
    try:
        runtime.executor.execute_now(request_id)
    except Exception as error:
        _log.error("execution_left_to_the_sweep", exc_info=error)
