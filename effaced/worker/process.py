"""The worker process: RQ's worker, preloaded, that stops by finishing what it began."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from threading import Event
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from rq import Queue, Worker
from rq.job import Job
from sqlalchemy.exc import SQLAlchemyError

from effaced import doorbell
from effaced.errors import ConfigurationError, SchemaMismatch, Unavailable
from effaced.log import get_logger
from effaced.runtime import Runtime
from effaced.worker import jobs
from effaced.worker.bell import QUEUE, RqBell, connect, forget_crashed

_log = get_logger(__name__)
_AGAIN_AFTER_S = 1.0


class DrainWorker(Worker):
    """On the first SIGTERM or SIGINT the running job is told to claim nothing more and to finish."""

    mismatch: SchemaMismatch | None = None

    def handle_warm_shutdown_request(self) -> None:
        super().handle_warm_shutdown_request()  # type: ignore[no-untyped-call]
        with suppress(ProcessLookupError):
            if self.horse_pid:
                os.kill(self.horse_pid, signal.SIGTERM)

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Stop after a job that found the schema too new; otherwise jobs would be taken and not done."""
        super().execute_job(job, queue)
        try:
            jobs.require_schema()
        except SchemaMismatch as error:
            self.mismatch = error
            self._stop_requested = True
        except SQLAlchemyError as error:
            _log.warning("schema_not_checked", error=type(error).__name__)

    def clean_registries(self) -> None:
        """Clean up after workers that died. RQ trips over such a job's remains, and would end with it."""
        try:
            for queue in self.queues:
                forget_crashed(queue)
            super().clean_registries()  # type: ignore[no-untyped-call]
        except Exception as error:  # keys in Redis are no reason to stop working: leases heal what crashed
            _log.warning("redis_not_cleaned", error=type(error).__name__)


def install_bell(runtime: Runtime) -> RqBell | None:
    """Have commits of this process ring the workers, if there is a Redis to ring through."""
    if runtime.settings.redis_url is None:
        return None
    bell = RqBell(runtime.settings)
    doorbell.install(bell.ring)
    return bell


def require_bell(runtime: Runtime) -> RqBell:
    bell = install_bell(runtime)
    if bell is None:
        raise ConfigurationError(
            "EFFACED_REDIS_URL is not set. Workers and scheduler need it; `effaced drain` works without."
        )
    return bell


def work(runtime: Runtime, *, burst: bool = False) -> None:
    """Work until told to stop."""
    require_bell(runtime)
    runtime.require_ready()
    jobs.prepare(runtime)
    runtime.db.dispose()
    connection = connect(str(runtime.settings.redis_url))
    while not _worked(connection, burst=burst):
        Event().wait(_AGAIN_AFTER_S)


def _worked(connection: Redis, *, burst: bool) -> bool:
    """Work until told to stop; False if Redis went away meanwhile, which RQ bears only while it waits."""
    options: dict[str, Any] = {"with_scheduler": False, "burst": burst, "logging_level": "WARNING"}
    worker: DrainWorker | None = None
    try:
        worker = DrainWorker([Queue(QUEUE, connection=connection)], connection=connection)
        _log.info("worker_started", name=worker.name)
        worker.work(**options)
    except (RedisConnectionError, RedisTimeoutError) as error:
        if burst:
            raise
        _log.warning("worker_lost_redis", error=type(error).__name__, see="EFFACED_REDIS_URL")
        # RQ's handlers speak for a worker that is no more.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        # Told to stop, it may have failed in saying so to a Redis that is away.
        return worker is not None and worker._shutdown_requested_date is not None
    _log.info("worker_stopped", name=worker.name)
    if worker.mismatch:
        raise worker.mismatch
    # Not `_stop_requested`: RQ sets that only for a worker that was told while it had a job.
    if not burst and worker._shutdown_requested_date is None:
        raise Unavailable("The worker ended without being told to; its log says why.")
    return True
