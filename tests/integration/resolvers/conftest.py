"""A vendor that answers exactly what a test tells it to, and remembers exactly what it was sent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from other_database import Shop
from waiting import PATIENCE

from effaced.resolvers.http import HttpResolver, from_config
from effaced.resolvers.protocols import Limits


@dataclass(frozen=True)
class Received:
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    connection: tuple[str, int]


@dataclass
class Scripted:
    """`stall` is None, "status" (nothing is sent at all), "body" (it never comes) or "end" (of the body)."""

    url: str
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    stall: str | None = None
    received: list[Received] = field(default_factory=list)
    stopping: Event = field(default_factory=Event)

    def answers(
        self,
        status: int,
        *,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        stall: str | None = None,
    ) -> None:
        self.status, self.headers, self.body, self.stall = status, headers or {}, body, stall

    @property
    def last(self) -> Received:
        return self.received[-1]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def handle_any(self) -> None:
        script: Scripted = self.server.script  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        script.received.append(
            Received(self.command, self.path, dict(self.headers.items()), body, self.client_address)
        )
        if script.stall == "status":
            script.stopping.wait(30)
            self.close_connection = True
            return
        self.send_response(script.status)
        for name, value in script.headers.items():
            self.send_header(name, value)
        if script.stall == "end":
            self.send_header("Connection", "close")
        elif script.status != 204:
            length = 100 if script.stall == "body" else len(script.body)
            self.send_header("Content-Length", str(length))
        self.end_headers()
        if script.stall == "body":
            script.stopping.wait(30)
            self.close_connection = True
            return
        while script.stall == "end" and not script.stopping.is_set():
            self.wfile.write(b" " * 16_384)
        if self.command != "HEAD":
            self.wfile.write(script.body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = handle_any  # noqa: N815


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def scripted() -> Iterator[Scripted]:
    server = _Server(("127.0.0.1", 0), _Handler)
    script = Scripted(f"http://127.0.0.1:{server.server_address[1]}")
    server.script = script  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield script
    finally:
        script.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback is called directly, whatever this machine's proxy is."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    with scripted() as script:
        yield script


@pytest.fixture
def vendor(server: Scripted) -> Scripted:
    """The module's vendor, with nothing remembered from the test before."""
    server.received.clear()
    server.answers(204)
    return server


MakeResolver = Callable[..., HttpResolver]


@pytest.fixture
def make(vendor: Scripted) -> MakeResolver:
    """A resolver for the vendor: DELETE /people/{ref}, with whatever else a test wants."""

    def build(*, timeout: float = PATIENCE, **config: Any) -> HttpResolver:
        block = {"base_url": vendor.url, "erase": {"method": "DELETE", "path": "/people/{ref}"}} | config
        return from_config("vendor", block, Limits(timeout=timedelta(seconds=timeout)))

    return build


@pytest.fixture
def shop(database_url: str, tmp_path: Path) -> Shop:
    """A second database; the test runs once per engine."""
    return Shop(database_url, tmp_path)
