"""What only a real server and a real client show."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import loopback
import pytest
from company_house import addresses_in
from waiting import eventually

Api = Any
TWO_MEGABYTES = b" " * 2_000_000


def up(log: Path, process: subprocess.Popen[bytes]) -> str:
    """Where `effaced web` listens, once it has said so. What connects then is answered when it is ready."""
    eventually(lambda: addresses_in(log.read_text()) or process.poll() is not None, "it to come up")
    assert process.poll() is None, log.read_text()
    return addresses_in(log.read_text())[0]


@pytest.fixture
def served(make_api: Callable[..., Api], migrated_sqlite_url: str, tmp_path: Path) -> Iterator[httpx.Client]:
    """A client with one connection to `effaced web`."""
    api = make_api(migrated_sqlite_url)
    settings, log = api.runtime.settings, tmp_path / "web.log"
    environment = {
        **os.environ,
        "EFFACED_DATABASE_URL": settings.database_url,
        "EFFACED_KEYS": settings.keys.get_secret_value(),
        "EFFACED_DATAMAP": str(settings.datamap),
        "EFFACED_RESOLVERS": str(settings.resolvers),
    }
    command = [sys.executable, "-m", "effaced", "web", "--port", "0"]
    one = httpx.Limits(max_connections=1)
    with (
        log.open("wb") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=output) as process,
    ):
        try:
            with loopback.client(base_url=up(log, process), headers=api.headers(), limits=one) as client:
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
