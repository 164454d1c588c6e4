"""What only a real server and a real client show."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

Api = Any
TWO_MEGABYTES = b" " * 2_000_000


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_it_answers(client: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            client.get("/healthz")
            return
        except httpx.TransportError:
            time.sleep(0.05)
    pytest.fail(f"`effaced web` did not come up:\n{log.read_text()}")


@pytest.fixture
def served(make_api: Callable[..., Api], migrated_sqlite_url: str, tmp_path: Path) -> Iterator[httpx.Client]:
    """A client with one connection to `effaced web`."""
    api = make_api(migrated_sqlite_url)
    settings, port, log = api.runtime.settings, free_port(), tmp_path / "web.log"
    environment = {
        **os.environ,
        "EFFACED_DATABASE_URL": settings.database_url,
        "EFFACED_KEYS": settings.keys.get_secret_value(),
        "EFFACED_DATAMAP": str(settings.datamap),
        "EFFACED_RESOLVERS": str(settings.resolvers),
    }
    command = [sys.executable, "-m", "effaced", "web", "--port", str(port)]
    one = httpx.Limits(max_connections=1)
    with (
        log.open("wb") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=output) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=api.headers(), limits=one) as client,
    ):
        try:
            wait_until_it_answers(client, process, log)
            yield client
        finally:
            process.terminate()


def test_whoever_sends_too_much_hears_it_and_can_go_on_at_once(served: httpx.Client) -> None:
    headers = {"Content-Type": "application/json"}
    for content in (TWO_MEGABYTES, iter([TWO_MEGABYTES])):  # with a Content-Length, and in chunks
        answer = served.post("/api/v1/requests", content=content, headers=headers)
        assert (answer.status_code, answer.headers["Content-Type"]) == (413, "application/problem+json")
        assert "262144 bytes" in answer.json()["detail"]
    erasure = {"kind": "erasure", "subject": {"id": "1"}}
    assert served.post("/api/v1/requests", json=erasure).status_code == 201
