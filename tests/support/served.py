"""`effaced web` as a process of its own, and raw connections to it."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import loopback
from forked import Forked

from effaced.core.config import Settings

# Generous: a busy machine is no reason to fail, and no test asserts how long something took.
PATIENCE = 60.0
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
_TOKEN = re.compile(r'name="csrf-token" content="([^"]+)"')


@contextmanager
def served(settings: Settings, folder: Path, *options: str, **environ: str) -> Iterator[str]:
    """The address of a running `effaced web`."""
    log = folder / "web.log"
    environment = {
        **os.environ,
        "EFFACED_DATABASE_URL": settings.database_url,
        "EFFACED_KEYS": settings.keys.get_secret_value(),
        "EFFACED_DATAMAP": str(settings.datamap),
        "EFFACED_RESOLVERS": str(settings.resolvers),
        "EFFACED_SECURE_COOKIES": "false",
        **environ,
    }
    process = Forked(("web", "--port", "0", *options), environment, folder, log)
    try:
        yield _address_once_it_answers(process, log)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _address_once_it_answers(process: Forked, log: Path) -> str:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        if log.exists() and (started := _ADDRESS.search(log.read_text())):
            with suppress(httpx.TransportError):
                loopback.get(f"{started[0]}/healthz")
                return started[0]
        time.sleep(0.05)
    raise AssertionError(f"`effaced web` did not come up:\n{log.read_text()}")


@contextmanager
def connections(address: str, count: int, sent: bytes = b"") -> Iterator[list[socket.socket]]:
    """Open connections that have sent this much, and then nothing more."""
    host, _, port = address.removeprefix("http://").partition(":")
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            opened.append(socket.create_connection((host, int(port)), timeout=PATIENCE))
            opened[-1].sendall(sent)
        yield opened
    finally:
        for each in opened:
            each.close()


def is_open(connection: socket.socket) -> bool:
    """Whether the server has neither answered nor closed."""
    connection.setblocking(False)
    try:
        connection.recv(1)
    except BlockingIOError:
        return True
    return False


def sign_in(address: str, email: str, password: str, **options: object) -> httpx.Response:
    """Sign in as a browser does: fetch the form, send it with its token."""
    with loopback.client(base_url=address, **options) as client:  # type: ignore[arg-type]
        token = _TOKEN.search(client.get("/console/sign-in").text)
        assert token is not None
        form = {"csrf_token": token[1], "email": email, "password": password}
        return client.post("/console/sign-in", data=form)
