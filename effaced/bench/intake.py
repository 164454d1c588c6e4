"""Requests over HTTP, accepted and executed, by two web processes on PostgreSQL."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from sqlalchemy import text

from effaced.accounts.api_keys import create_api_key
from effaced.accounts.key_rules import NewApiKey
from effaced.bench.company import COMPANY_MAP, SYSTEMS, company
from effaced.bench.ground import Ground, Progress, prepare
from effaced.bench.intake_floor import ENVIRON
from effaced.bench.report import Report, quantiles, ratio
from effaced.core import clock
from effaced.core.config import PREFIX
from effaced.core.errors import Unavailable
from effaced.core.ports import LOOPBACK, listen

_PROCESSES, _THREADS = 2, 4
_PATIENCE = 60.0
_WARM_UP = 40


@dataclass(frozen=True, slots=True)
class _Side:
    """A server to which requests are sent."""

    name: str
    port: int


def bench_intake(*, requests: int, clients: int, rounds: int, url: str | None, progress: Progress) -> Report:
    """Send `requests` erasures to either server in every round, by turns."""
    with ExitStack() as stack:
        ground = stack.enter_context(prepare(url, progress))
        people = iter(range(1, 2 * (rounds * requests + _WARM_UP) + 1))
        stack.enter_context(company(ground, 2 * (rounds * requests + _WARM_UP)))
        with ground.database.begin() as session:
            _, token = create_api_key(session, NewApiKey(name="bench", approvals_needed=0), actor="bench")
        progress(f"{_PROCESSES} web processes on either side")
        sides = (
            _Side("effaced", stack.enter_context(_effaced(ground))),
            _Side("floor", stack.enter_context(_floor(ground))),
        )
        for side in sides:
            _send(side, token, [next(people) for _ in range(_WARM_UP)], clients)
        rates: dict[str, list[float]] = {side.name: [] for side in sides}
        times: dict[str, list[float]] = {side.name: [] for side in sides}
        ground.settle_down()
        for number in range(rounds):
            progress(
                f"round {number + 1} of {rounds}: {requests} requests by {clients} clients, then the floor"
            )
            for side in sides if number % 2 == 0 else sides[::-1]:
                batch = [next(people) for _ in range(requests)]
                began = clock.monotonic()
                times[side.name] += _send(side, token, batch, clients)
                rates[side.name].append(requests / (clock.monotonic() - began))
        _require_executed(ground, 2 * (rounds * requests + _WARM_UP))
    value, least = round(median(rates["effaced"]), 1), round(median(rates["floor"]), 1)
    own, raw = quantiles(times["effaced"]), quantiles(times["floor"])
    line = (
        f"intake: {value:,.0f} requests/s accepted and executed (p50 {own['p50']:.1f} ms,"
        f" p99 {own['p99']:.1f} ms); bare Flask with raw SQL {least:,.0f} requests/s"
        f" (p50 {raw['p50']:.1f} ms, p99 {raw['p99']:.1f} ms);"
        f" ratio {ratio(value, least):.2f}"
    )
    more = {**own, "floor_p50": raw["p50"], "floor_p99": raw["p99"], "clients": clients, "rounds": rounds}
    return Report("intake", requests, value, "requests/s", least, [line], more)


def _send(side: _Side, token: str, people: Sequence[int], clients: int) -> list[float]:
    """Send one erasure for each, over as many connections as there are clients. The time each took."""
    waiting, times, failures = iter(people), list[float](), list[str]()
    lock = threading.Lock()

    def client() -> None:
        connection = http.client.HTTPConnection(LOOPBACK, side.port, timeout=_PATIENCE)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        while True:
            with lock:
                person = next(waiting, None)
            if person is None or failures:
                break
            body = json.dumps({"kind": "erasure", "subject": {"id": str(person)}})
            began = clock.monotonic()
            connection.request("POST", "/api/v1/requests", body, headers)
            answer = connection.getresponse()
            answer.read()
            times.append(clock.monotonic() - began)
            if answer.status != 201:
                failures.append(str(answer.status))
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures or len(times) != len(people):
        raise Unavailable(f"{side.name} refused a request ({', '.join(failures) or 'no answer'}).")
    return times


def _require_executed(ground: Ground, expected: int) -> None:
    executed = "SELECT count(*) FROM effaced_requests WHERE executed_at IS NOT NULL"
    with ground.database.read() as session:
        found = session.scalar(text(executed))
        left = session.scalar(text("SELECT count(*) FROM bench_people"))
    if found != expected or left:
        raise Unavailable(f"{found} of {expected} requests were executed: the figure would mean nothing.")


@contextmanager
def _effaced(ground: Ground) -> Iterator[int]:
    with tempfile.TemporaryDirectory() as folder:
        datamap, resolvers, log = (Path(folder, name) for name in ("datamap.yaml", "resolvers.yaml", "log"))
        datamap.write_text(COMPANY_MAP)
        systems = "".join(f"  {name}: {{kind: noop, ref: person}}\n" for name in SYSTEMS)
        resolvers.write_text(f"version: 1\nresolvers:\n{systems}")
        ours = {
            "database_url": ground.url, "keys": ground.keys, "log_level": "info", "log_format": "json",
            "datamap": str(datamap), "resolvers": str(resolvers), "api_calls_per_minute": "0",
        }  # fmt: skip
        environ = {f"{PREFIX}{name.upper()}": value for name, value in ours.items()}
        with listen(LOOPBACK, 0) as listener:
            words = [
                "-m", "effaced", "web", "--socket", str(listener.fileno()), "--workers", str(_PROCESSES),
                "--threads", str(_THREADS),
            ]  # fmt: skip
            with _running(words, environ, listener, log):
                yield listener.getsockname()[1]


@contextmanager
def _floor(ground: Ground) -> Iterator[int]:
    environ = {ENVIRON: json.dumps({"url": ground.url, "systems": SYSTEMS})}
    with tempfile.TemporaryDirectory() as folder, listen(LOOPBACK, 0) as listener:
        words = [
            "-m", "gunicorn", "--bind", f"fd://{listener.fileno()}", "--workers", str(_PROCESSES),
            "--threads", str(_THREADS), "--log-level", "warning", "effaced.bench.intake_floor:create_app()",
        ]  # fmt: skip
        with _running(words, environ, listener, Path(folder, "log")):
            yield listener.getsockname()[1]


@contextmanager
def _running(
    words: Sequence[str], environ: dict[str, str], listener: socket.socket, log: Path
) -> Iterator[None]:
    others = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, *words],
            env=others | environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=(listener.fileno(),),
            start_new_session=True,
        )
    try:
        _await_answer(listener.getsockname()[1], process, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_answer(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = clock.monotonic() + _PATIENCE
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=1)
    while process.poll() is None and clock.monotonic() < deadline:
        try:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            return
        except OSError:
            connection.close()
    raise Unavailable(f"A web process of the bench did not start: {log.read_text()[-2_000:]}")
