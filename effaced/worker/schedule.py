"""The scheduler: looks into the database every few seconds and sees to what is due.

It is the safety net under the doorbell. Redis may have been down, emptied or lied to; what is due stands
in the database, and one sweep later it is on its way.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from effaced.core import clock
from effaced.core.errors import SchemaMismatch
from effaced.core.log import get_logger
from effaced.retries.metrics import RetryMetrics
from effaced.runtime import Runtime
from effaced.worker.bell import RqBell

_log = get_logger(__name__)
_TIDY_EVERY = 3_600.0
_COUNT_EVERY = 300.0
# There may be millions, and nothing else may wait for them.
_RETENTIONS_FOR = 5.0


class Scheduler:
    """Runs the sweeps. Any number may run at once: doing the same twice does no harm."""

    def __init__(self, runtime: Runtime, bell: RqBell) -> None:
        self._runtime = runtime
        self._bell = bell
        self._stop = threading.Event()
        self._tidy_at = self._count_at = clock.monotonic()
        self.exports = Exports(runtime)

    def run(self) -> None:
        """Sweep until SIGTERM or SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        _log.info("scheduler_started", every_seconds=self._runtime.settings.sweep_seconds)
        while not self._stop.wait(self._runtime.settings.sweep_seconds):
            self.tick()
        self.exports.stop()
        _log.info("scheduler_stopped")

    def tick(self) -> None:
        """One sweep. What fails is logged and tried again at the next."""
        self._run_step("execute_due", lambda: self._runtime.executor.execute_due(stopping=self._stop.is_set))
        self._run_step("redrives", self._redrives)
        self._run_step("waits", self._runtime.restart_waits)
        self._run_step("sweep", self._sweep)
        self._run_step("messages", self._ring_for_messages)
        self._run_step("retentions", lambda: self._runtime.end_retentions(seconds=_RETENTIONS_FOR))
        self._run_step("exports", self.exports.start_if_due)
        if clock.monotonic() >= self._count_at:
            self._count_at = clock.monotonic() + _COUNT_EVERY
            self._run_step("aggregate", RetryMetrics(self._runtime.db).aggregate_hourly)
            self._run_step("absences", self._runtime.report_absence_spikes)
        if clock.monotonic() >= self._tidy_at:
            self._tidy_at = clock.monotonic() + _TIDY_EVERY
            self._run_step("tidy", self._runtime.tidy)

    def _redrives(self) -> None:
        self._runtime.advance_redrives()

    def _ring_for_messages(self) -> None:
        if self._runtime.deliverer().is_due():
            self._bell.deliver()

    def _sweep(self) -> None:
        if names := self._runtime.due():
            self._bell.sweep(names)

    def _run_step(self, what: str, step: Callable[[], object]) -> None:
        try:
            step()
        except SchemaMismatch:
            raise  # this process must not go on: `run` ends, with the reason
        except Exception as error:
            _log.error(f"{what}_failed", error=type(error).__name__)


class Exports:
    """Makes audit exports in a thread: one snapshot may take minutes, and no sweep waits for it."""

    def __init__(self, runtime: Runtime) -> None:
        self._maker = runtime.export_maker()
        self._thread: threading.Thread | None = None

    def start_if_due(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            return
        if self._maker.is_due():
            self._thread = threading.Thread(target=self._run, name="audit-exports", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Leave what is being made to others. It takes as long as one chunk."""
        self._maker.stop()
        self.wait()

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._maker.run()
        except Exception as error:
            _log.error("exports_failed", error=type(error).__name__)
