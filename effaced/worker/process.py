"""The worker process: RQ's worker, preloaded, which finishes its job before it stops."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from threading import Event
from typing import Any

from redis import Redis
from redis.exceptions import RedisError
from rq import Queue, Worker
from rq.exceptions import NoSuchJobError, StopRequested
from rq.job import Job
from rq.timeouts import JobTimeoutException
from rq.worker import WorkerStatus
from sqlalchemy.exc import SQLAlchemyError

from effaced import doorbell
from effaced.core.errors import ConfigurationError, SchemaMismatch
from effaced.core.log import get_logger
from effaced.runtime import Runtime
from effaced.worker import jobs
from effaced.worker.bell import RqBell, connect
from effaced.worker.job import DoorbellJob, DoorbellQueue, MalformedJob

_log = get_logger(__name__)
_AGAIN_AFTER_S = 1.0
_WAIT_S = 30


class DrainWorker(Worker):
    """RQ's worker as far as it forks, watches, stops and kills; it takes jobs as `DoorbellJob` reads them.

    What RQ keeps in Redis about workers, runs, results and dependents is neither written nor read, and
    nobody can command, suspend or stop a worker through Redis.
    """

    def __init__(self, connection: Redis, *, timeout: int) -> None:
        self._queue = DoorbellQueue(connection)
        self._job_timeout = timeout
        super().__init__([self._queue], connection=connection, worker_ttl=_WAIT_S + 15)

    def take_jobs(self, *, burst: bool) -> None:
        """Run one job after the other until told to stop or, with `burst`, until there is none."""
        self._install_signal_handlers()  # type: ignore[no-untyped-call]
        with suppress(StopRequested):
            while not self._stop_requested:
                entry = self._queue.pop(None if burst else _WAIT_S)
                if entry is not None:
                    self._run(entry)
                elif burst:
                    return

    def _run(self, entry: bytes) -> None:
        try:
            job = DoorbellJob.take(entry, self.connection, timeout=self._job_timeout)
        except MalformedJob as error:
            _log.warning("job_dropped", problem=str(error))
            return
        except NoSuchJobError:
            return  # expired, or Redis was emptied: the sweep rings again
        self._state = WorkerStatus.BUSY
        self.fork_work_horse(job, self._queue)
        self.monitor_work_horse(job, self._queue)
        self._state = WorkerStatus.IDLE
        self._queue.forget(job)
        self._check_schema()

    # --- what RQ would keep in Redis ---

    def perform_job(self, job: Job, queue: Queue) -> bool:
        # RQ's own deadline is a last resort; the job bounds itself well before.
        with self.death_penalty_class(self._job_timeout, JobTimeoutException, job_id=job.id):
            job.perform()
        return True

    def handle_job_failure(self, job: Job, queue: Queue, *_: Any, exc_string: str = "") -> None:
        _log.error("job_died", job_id=job.id)

    def set_current_job_working_time(self, current_job_working_time: float, pipeline: Any = None) -> None:
        self.current_job_working_time = current_job_working_time

    def heartbeat(self, timeout: int | None = None, pipeline: Any = None) -> None:
        pass

    def maintain_heartbeats(self, job: Job) -> None:
        pass

    def set_shutdown_requested_date(self) -> None:
        pass

    def _set_ip_address(self, connection: Redis) -> None:
        self.ip_address = "unknown"

    # --- stopping ---

    mismatch: SchemaMismatch | None = None

    def handle_warm_shutdown_request(self) -> None:
        """On the first SIGTERM or SIGINT the running job is told to claim nothing more and to finish."""
        super().handle_warm_shutdown_request()  # type: ignore[no-untyped-call]
        with suppress(ProcessLookupError):
            if self.horse_pid:
                os.kill(self.horse_pid, signal.SIGTERM)

    def _check_schema(self) -> None:
        """Stop after a job that found the schema too new; otherwise jobs would be taken and not done."""
        try:
            jobs.require_schema()
        except SchemaMismatch as error:
            self.mismatch = error
            self._stop_requested = True
        except SQLAlchemyError as error:
            _log.warning("schema_not_checked", error=type(error).__name__)


def install_bell(runtime: Runtime) -> RqBell | None:
    """Have commits of this process notify the workers, if a Redis is configured."""
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
    settings = runtime.settings
    connection = connect(str(settings.redis_url))
    while not _worked(connection, timeout=settings.drain_seconds + settings.lease_seconds, burst=burst):
        Event().wait(_AGAIN_AFTER_S)


def _worked(connection: Redis, *, timeout: int, burst: bool) -> bool:
    """Work until told to stop; False if Redis went away or refused something meanwhile."""
    worker = DrainWorker(connection, timeout=timeout)
    try:
        connection.ping()
        _log.info("worker_started", name=worker.name)
        worker.take_jobs(burst=burst)
    except RedisError as error:
        if burst:
            raise
        _log.warning("worker_lost_redis", error=type(error).__name__, see="EFFACED_REDIS_URL")
        # RQ's handlers speak for a worker that is no more.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        return worker._shutdown_requested_date is not None
    _log.info("worker_stopped", name=worker.name)
    if worker.mismatch:
        raise worker.mismatch
    return True
