"""Keeping a handful of processes running, and ending all of them together."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from effaced.core import clock
from effaced.core.log import get_logger
from effaced.core.private_files import private_file

_log = get_logger(__name__)
_GRACE = 25.0
_CALM = 30.0
_PR_SET_PDEATHSIG = 1


@dataclass
class Child:
    """A process that is started again when it ends by itself, on the same `sockets`."""

    name: str
    command: list[str]
    log: Path
    environ: Mapping[str, str]
    sockets: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    started: float = 0.0

    def start(self) -> None:
        self.started = clock.monotonic()
        with private_file(self.log).open("ab") as output:
            self.process = subprocess.Popen(  # noqa: S603
                self.command,
                env=dict(self.environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=self.sockets,
                # A group of its own: Ctrl-C reaches us, and we end the others in order.
                start_new_session=True,
                preexec_fn=_end_with_parent if sys.platform == "linux" else None,
            )

    def ended(self) -> bool:
        return self.process is None or self.process.poll() is not None


class Supervisor:
    """Starts children, restarts those that crash, and stops them all on SIGINT or SIGTERM."""

    def __init__(self) -> None:
        self.children: list[Child] = []
        self._stopping = False

    def start(self, child: Child) -> None:
        child.start()
        self.children.append(child)

    def stop_on_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)

    def wait_until(self, ready: Callable[[], bool], *, seconds: float) -> bool:
        """Whether `ready()` came true in time, with everybody still running."""
        deadline = clock.monotonic() + seconds
        while not ready():
            if (
                self._stopping
                or clock.monotonic() > deadline
                or any(child.ended() for child in self.children)
            ):
                return False
            time.sleep(0.05)
        return True

    def watch(self) -> None:
        """Until a signal comes: start again what has ended, after a breath if it ends at once."""
        while not self._stopping:
            for child in self.children:
                quick = clock.monotonic() - child.started < _CALM
                if child.ended() and (not quick or clock.monotonic() - child.started > 2):
                    _log.error("restarted", process=child.name)
                    child.start()
            time.sleep(0.2)

    def end(self) -> None:
        """Terminate all children, wait for the grace period, then kill the rest."""
        for child in self.children:
            if not child.ended() and child.process:
                child.process.terminate()
        deadline = clock.monotonic() + _GRACE
        for child in self.children:
            if child.process is None:
                continue
            try:
                child.process.wait(max(0.1, deadline - clock.monotonic()))
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(child.process.pid, signal.SIGKILL)
                child.process.wait()

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True


def _end_with_parent() -> None:
    # Should this process be killed outright, nobody must be left behind.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
