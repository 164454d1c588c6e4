"""Worker processes that can be killed, and a server that remembers every call they make."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from saga_cast import KEYRING


@dataclass(frozen=True)
class Received:
    """One call: under which idempotency key, by which process, when it came and when it was answered."""

    key: str
    process: int
    began: float
    ended: float


@dataclass
class Recorder:
    url: str
    seconds: float
    calls: list[Received] = field(default_factory=list)
    answering: Counter[int] = field(default_factory=Counter)
    """By process: how many calls it waits for the answers of."""

    def keys(self) -> list[str]:
        return [call.key for call in self.calls]


def busiest(moments: Iterable[float], window: float = 1.0) -> int:
    """The most moments within any stretch of that many seconds."""
    times = sorted(moments)
    first = most = 0
    for last, moment in enumerate(times):
        while times[first] <= moment - window:
            first += 1
        most = max(most, last - first + 1)
    return most


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def do_DELETE(self) -> None:
        recorder: Recorder = self.server.recorder  # type: ignore[attr-defined]
        began, process = time.monotonic(), int(self.path.split("/")[1])
        recorder.answering[process] += 1
        if recorder.seconds:
            time.sleep(recorder.seconds)
        # Before the answer: what nobody lived to hear was a call all the same.
        recorder.calls.append(Received(self.headers["Idempotency-Key"], process, began, time.monotonic()))
        recorder.answering[process] -= 1
        self.send_response(204)
        self.end_headers()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def recording(seconds: float = 0.0) -> Iterator[Recorder]:
    """A server on loopback that takes its time for each call and answers 204."""
    server = _Server(("127.0.0.1", 0), _Handler)
    recorder = Recorder(f"http://127.0.0.1:{server.server_address[1]}", seconds)
    server.recorder = recorder  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield recorder
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Fleet:
    """Workers on one database, each a process of its own. What they log stands in the file `log`."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._nursery = process
        self.log = log
        self.workers: list[int] = []

    def spawn(self, number: int = 1, *, clock_off: float = 0) -> None:
        """Start workers, on a machine whose clock is ahead by `clock_off` seconds."""
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        for _ in range(number):
            self._nursery.stdin.write(f"{clock_off}\n")
            self._nursery.stdin.flush()
            self.workers.append(int(self._nursery.stdout.readline()))

    def kill(self, worker: int) -> None:
        """As the kernel does it when memory runs out."""
        self.workers.remove(worker)
        os.kill(worker, signal.SIGKILL)

    def suspend(self, worker: int) -> None:
        """As a machine does that is moved, or runs out of processors: it goes on where it was, but late."""
        os.kill(worker, signal.SIGSTOP)

    def wake(self, worker: int) -> None:
        os.kill(worker, signal.SIGCONT)


@contextmanager
def fleet(
    database_url: str,
    folder: Path,
    server: Recorder,
    names: Sequence[str],
    *,
    lease: float,
    timeout: float,
    concurrency: int,
    rate: float | None = None,
    crash_limit: int = 3,
    idempotent: bool = True,
) -> Iterator[Fleet]:
    settings = {
        "database": database_url,
        "keys": ",".join(f"{key_id}:{base64.b64encode(key).decode()}" for key_id, key in KEYRING.keys),
        "server": server.url,
        "names": list(names),
        "lease": lease,
        "timeout": timeout,
        "concurrency": concurrency,
        "rate": rate,
        "crash_limit": crash_limit,
        "idempotent": idempotent,
    }
    log = folder / "workers.log"
    with log.open("ab") as stderr:
        nursery = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("fleet_process.py")), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**os.environ, "NO_PROXY": "127.0.0.1"},
        )
    made = Fleet(nursery, log)
    try:
        yield made
    finally:
        for worker in list(made.workers):
            made.kill(worker)
        nursery.kill()
        nursery.communicate()
