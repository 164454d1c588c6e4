"""`effaced web` answers, whatever other clients do with their connections."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import forked
import httpx
import loopback
import pytest
from export_cast import Exporter, add_events
from officers import PASSWORD, add_officer
from served import PATIENCE, connections, is_open, served, sign_in
from sqlalchemy import func, select

from effaced.accounts.throttle import MOST_PER_ADDRESS
from effaced.audit.spool import AT_ONCE
from effaced.audit.tables import AuditEvent

Api = Any
HEAD = b"POST /console/sign-in HTTP/1.1\r\nHost: effaced\r\n"
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def address(make_api: Callable[..., Api], migrated_sqlite_url: str, tmp_path: Path) -> Iterator[str]:
    api = make_api(migrated_sqlite_url)
    with served(api.runtime.settings, tmp_path) as address:
        yield address


def healthz(address: str) -> int:
    return loopback.get(f"{address}/healthz").status_code


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(HEAD, id="half a head"),
        pytest.param(HEAD + FORM + b"Content-Length: 50\r\n\r\nemail=", id="half a body"),
        pytest.param(HEAD + FORM + b"Transfer-Encoding: chunked\r\n\r\n5\r\nemail", id="half of the chunks"),
    ],
)
def test_answers_while_many_clients_have_sent_only(address: str, sent: bytes) -> None:
    with connections(address, 20, sent) as waiting:
        assert healthz(address) == 200
        assert [is_open(each) for each in waiting] == [True] * 20


def test_makes_room_for_new_clients_by_closing_those_who_have_waited_longest(address: str) -> None:
    with connections(address, 520) as waiting:
        assert healthz(address) == 200
        assert [is_open(each) for each in (waiting[0], waiting[-1])] == [False, True]


def test_answers_while_clients_do_not_read_what_they_asked_for(address: str) -> None:
    request = b"GET /static/vendor/htmx-2.0.11/htmx.min.js HTTP/1.1\r\nHost: effaced\r\n\r\n"
    with connections(address, 20, request):
        assert healthz(address) == 200


def test_answers_while_clients_do_not_hang_up(address: str) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: effaced\r\nConnection: close\r\n\r\n"
    with connections(address, 60, request) as waiting:
        assert all(each.recv(12) == b"HTTP/1.1 200" for each in waiting)
        assert healthz(address) == 200


def test_answers_while_clients_ask_for_more_and_more_and_do_not_read(address: str) -> None:
    request = b"GET /static/vendor/htmx-2.0.11/htmx.min.js HTTP/1.1\r\nHost: effaced\r\n\r\n"
    with connections(address, 20, request * 60):
        assert [healthz(address) for _ in range(20)] == [200] * 20


def test_sends_all_answers_to_a_client_that_reads_late(address: str) -> None:
    request = b"GET /static/vendor/htmx-2.0.11/htmx.min.js HTTP/1.1\r\nHost: effaced\r\n\r\n"
    with connections(address, 1, request * 60) as (client,):
        assert healthz(address) == 200
        assert read_until(client, 60 * [b"HTTP/1.1 200 OK"])


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"Content-Length: 900000000\r\n\r\nemail=", b"413", id="far too long"),
        pytest.param(b"Content-Length: 300000\r\n\r\nabc", b"413", id="too long"),
        pytest.param(b"Expect: 100-continue\r\nContent-Length: 300000\r\n\r\n", b"413", id="asks first"),
        pytest.param(b"Content-Length: " + b"0" * 20 + b"50\r\n\r\nabc", b"400", id="many zeros"),
        pytest.param(b"X: y\nContent-Length: 50\r\n\r\nabc", b"400", id="bare line feed"),
        pytest.param(CHUNKED + b"0" * 17 + b"5\r\na", b"400", id="chunk with many zeros"),
        pytest.param(CHUNKED + b"zz\r\n", b"400", id="no chunk size"),
        pytest.param(CHUNKED + b"5\r\nhelloXX0\r\n\r\n", b"400", id="no line end after a chunk"),
        pytest.param(CHUNKED + b"0\r\nbad trailer\r\n\r\n", b"400", id="bad trailer"),
        pytest.param(CHUNKED + b"1\r\na\r\n" * 43_800, b"413", id="many small chunks"),
    ],
)
def test_refuses_at_once_what_it_will_not_wait_for(address: str, sent: bytes, status: bytes) -> None:
    with connections(address, 20, HEAD + FORM + sent) as waiting:
        assert [each.recv(12) for each in waiting] == [b"HTTP/1.1 " + status] * 20
        assert healthz(address) == 200


SMALL = b"3a\r\n" + b"a" * 58 + b"\r\n"


def test_serves_a_long_body_in_small_chunks(address: str) -> None:
    with connections(address, 1, HEAD + FORM + CHUNKED + SMALL * 3_900 + b"0\r\n\r\n") as (client,):
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: effaced\r\n\r\n")
        assert read_until(client, [b"HTTP/1.1 400", b"HTTP/1.1 200 OK"])


def test_answers_two_requests_sent_at_once(address: str) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: effaced\r\n\r\n"
    with connections(address, 1, request + request) as (client,):
        assert read_until(client, 2 * [b"HTTP/1.1 200 OK"])


def test_answers_a_request_that_comes_byte_by_byte(address: str) -> None:
    with connections(address, 1) as (client,):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"GET /healthz HTTP/1.1\r\nHost: effaced\r\n\r\n":
            client.sendall(bytes([byte]))
        assert read_until(client, [b"HTTP/1.1 200 OK"])


def test_tells_a_client_that_asks_first_to_send_its_body(address: str) -> None:
    head = HEAD + FORM + b"Content-Length: 7\r\nExpect: 100-continue\r\n\r\n"
    with connections(address, 1, head) as (client,):
        assert read_until(client, [b"HTTP/1.1 100 Continue"])
        client.sendall(b"email=x")
        assert read_until(client, [b"HTTP/1.1 400"])


def test_refuses_a_head_that_does_not_end(address: str) -> None:
    with connections(address, 1, b"GET / HTTP/1.1\r\n" + b"X-Padding: 0123456789\r\n" * 4_000) as (client,):
        assert read_until(client, [b"HTTP/1.1 431"])


def test_closes_silent_connections_when_it_is_told_to_stop(
    make_api: Callable[..., Api], migrated_sqlite_url: str, tmp_path: Path
) -> None:
    settings = make_api(migrated_sqlite_url).runtime.settings
    with served(settings, tmp_path) as address:
        client = socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=PATIENCE)
    assert client.recv(1) == b""
    client.close()


def test_frees_an_export_whose_reader_has_gone_away(
    make_api: Callable[..., Api], migrated_url: str, tmp_path: Path
) -> None:
    api, spool_dir = make_api(migrated_url), tmp_path / "spool"
    spool_dir.mkdir()
    with api.runtime.db.begin() as session:
        add_officer(session, "ada")
    add_events(api.runtime.db, 5_000, payload={"pad": "x" * 2_000})
    with (
        served(api.runtime.settings, tmp_path, EFFACED_SPOOL_DIR=str(spool_dir)) as address,
        loopback.client(base_url=address) as browser,
    ):
        form = {"email": "ada@office.example", "password": PASSWORD}
        browser.post("/console/sign-in", data={**form, **csrf_of(browser, "/console/sign-in")})
        form = {**csrf_of(browser, "/console/audit"), "type": "REQUEST_REPEATED"}
        for _ in range(2 * AT_ONCE):
            with until_allowed(browser, "/console/audit/export/jsonl", form) as answer:
                assert next(answer.iter_raw(1_000))
        with until_allowed(browser, "/console/audit/export/jsonl", form) as answer:
            assert len(answer.read().splitlines()) == 5_000
        assert list(spool_dir.iterdir()) == []


def test_serves_the_file_of_an_export_that_another_process_made(
    make_api: Callable[..., Api], migrated_url: str, tmp_path: Path
) -> None:
    api = make_api(migrated_url)
    auditor = Exporter(api, "audit:read")
    add_events(api.runtime.db, 5_000, payload={"pad": "x" * 200})
    asked = auditor.asked(filter={"type": "REQUEST_REPEATED"})
    with served(api.runtime.settings, tmp_path) as address:
        settings = api.runtime.settings
        environ = {
            **os.environ,
            "EFFACED_DATABASE_URL": settings.database_url,
            "EFFACED_KEYS": settings.keys.get_secret_value(),
            "EFFACED_DATAMAP": str(settings.datamap),
            "EFFACED_RESOLVERS": str(settings.resolvers),
        }
        drained = forked.run("drain", environ=environ, folder=tmp_path)
        assert "Made 1 audit exports." in drained.stdout, drained.stderr
        headers = api.headers(auditor.token)
        made = loopback.get(address + asked["links"]["self"], headers=headers).json()
        for _ in range(10):
            with httpx.stream("GET", address + made["links"]["file"], headers=headers) as answer:
                assert next(answer.iter_raw(1_000))
        file = loopback.get(address + made["links"]["file"], headers=headers)
    assert (len(file.content), hashlib.sha256(file.content).hexdigest()) == (made["bytes"], made["sha256"])
    assert len(file.content.splitlines()) == made["events"] == 5_000


def test_answers_while_many_sign_in_and_turns_most_of_them_away(
    make_api: Callable[..., Api], migrated_url: str, tmp_path: Path
) -> None:
    api = make_api(migrated_url)
    with served(api.runtime.settings, tmp_path) as address, ThreadPoolExecutor(40) as pool:
        emails = [f"p{number}@example.org" for number in range(40)]
        tries = [pool.submit(sign_in, address, email, "a wrong password") for email in emails]
        assert healthz(address) == 200
        answers = [each.result() for each in tries]
    wrong = [each for each in answers if each.status_code == 422]
    turned_away = [each for each in answers if each.status_code in (429, 503)]
    assert 0 < len(wrong) <= MOST_PER_ADDRESS
    assert len(wrong) + len(turned_away) == 40
    assert all(int(each.headers["Retry-After"]) > 0 for each in turned_away)
    with api.runtime.db.read() as session:
        events = session.scalar(select(func.count()).where(AuditEvent.type == "SIGN_IN_REFUSED"))
    assert events == len(str(len(wrong)))


@contextmanager
def until_allowed(browser: httpx.Client, path: str, form: dict[str, str]) -> Iterator[httpx.Response]:
    """The answer, once the server has noticed that earlier readers are gone."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with browser.stream("POST", path, data=form) as answer:
            if answer.status_code != 503:
                yield answer
                return
    pytest.fail("exports of readers that have gone away are never freed")


def csrf_of(browser: httpx.Client, page: str) -> dict[str, str]:
    token = re.search(r'name="csrf-token" content="([^"]+)"', browser.get(page).text)
    assert token is not None
    return {"csrf_token": token[1]}


def read_until(client: socket.socket, expected: list[bytes]) -> bool:
    """Whether the client receives all of these, in this order."""
    received = b""
    while expected:
        _, found, after = received.partition(expected[0])
        if found:
            received, expected = after, expected[1:]
        elif piece := client.recv(65_536):
            received += piece
        else:
            return False
    return True
