"""Worker processes that can be killed, and a server that remembers every call they make."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
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

    def keys(self) -> list[str]:
        return [call.key for call in self.calls]

    def busiest(self, window: float = 1.0) -> int:
        """The most calls that came within any stretch of that many seconds."""
        times = sorted(call.began for call in self.calls)
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
        began = time.monotonic()
        if recorder.seconds:
            time.sleep(recorder.seconds)
        # Before the answer: what nobody lived to hear was a call all the same.
        recorder.calls.append(
            Received(self.headers["Idempotency-Key"], int(self.path.split("/")[1]), began, time.monotonic())
        )
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
    """Workers on one database, each a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._nursery = process
        self.workers: list[int] = []

    def spawn(self, number: int = 1) -> None:
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        for _ in range(number):
            self._nursery.stdin.write("another\n")
            self._nursery.stdin.flush()
            self.workers.append(int(self._nursery.stdout.readline()))

    def kill(self, worker: int) -> None:
        """As the kernel does it when memory runs out."""
        self.workers.remove(worker)
        os.kill(worker, signal.SIGKILL)


@contextmanager
def fleet(
    database_url: str,
    server: Recorder,
    names: Sequence[str],
    *,
    lease: float,
    timeout: float,
    concurrency: int,
    rate: float | None = None,
    crash_limit: int = 3,
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
    }
    nursery = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("fleet_process.py")), json.dumps(settings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_PROXY": "127.0.0.1"},
    )
    made = Fleet(nursery)
    try:
        yield made
    finally:
        for worker in list(made.workers):
            made.kill(worker)
        nursery.kill()
        nursery.communicate()
