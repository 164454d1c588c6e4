"""What RQ runs: shims into the saga and the messages. A job carries a resolver's name at most."""

from __future__ import annotations

import asyncio
import gc
import signal

from effaced import doorbell
from effaced.core.errors import SchemaMismatch
from effaced.core.log import get_logger
from effaced.runtime import Runtime

_log = get_logger(__name__)
_runtime: Runtime | None = None


def prepare(runtime: Runtime) -> None:
    """Load everything in the worker process, so that the fork of a job has it at once."""
    global _runtime
    _runtime = runtime
    # What is loaded now stays. Left out of every later collection it makes a drain a quarter faster, and
    # a fork does not copy pages only because the collector looked at them.
    gc.collect()
    gc.freeze()


def drain(resolver: str) -> None:
    """Drain one resolver for a bounded time. Leases and the sweep recover from any failure."""
    runtime = _runtime_of_fork()
    try:
        runner = runtime.runner()
        signal.signal(signal.SIGTERM, lambda *_: runner.stop())
        settled = asyncio.run(runner.drain(resolver, seconds=runtime.settings.drain_seconds))
        more = runtime.due() & {resolver}
    except SchemaMismatch as error:
        _log.error("drain_stopped", resolver=resolver, reason=error.message)
        return
    except Exception as error:  # RQ would keep the traceback, arguments and all, in Redis
        _log.error("drain_failed", resolver=resolver, error=type(error).__name__, exc_info=True)
        return
    finally:
        runtime.db.dispose()
    _log.info("drained", resolver=resolver, settled=settled)
    doorbell.ring(more)


def deliver() -> None:
    """Deliver messages for a bounded time. The sweep enqueues a job for what is left."""
    runtime = _runtime_of_fork()
    try:
        deliverer = runtime.deliverer()
        signal.signal(signal.SIGTERM, lambda *_: deliverer.stop())
        delivered = asyncio.run(deliverer.run(seconds=runtime.settings.drain_seconds))
    except SchemaMismatch as error:
        _log.error("deliver_stopped", reason=error.message)
        return
    except Exception as error:  # as above
        _log.error("deliver_failed", error=type(error).__name__, exc_info=True)
        return
    finally:
        runtime.db.dispose()
    _log.info("delivered", messages=delivered)


def require_schema() -> None:
    """In the worker process, after a job: SchemaMismatch once there is nothing more that it may do."""
    if _runtime is not None:
        try:
            _runtime.require_schema()
        finally:
            _runtime.db.dispose()  # a fork must not inherit a connection


def _runtime_of_fork() -> Runtime:
    if _runtime is None:
        raise RuntimeError("effaced's jobs run under `effaced worker`")
    _runtime.db.engine.dispose(close=False)  # the parent's connections are not ours
    return _runtime
