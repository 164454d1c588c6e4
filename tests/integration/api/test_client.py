"""effaced.client against the real application, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import httpx
import pytest
from werkzeug.serving import make_server

from effaced.client import (
    AsyncClient,
    Client,
    Conflict,
    NetworkError,
    NotFound,
    Refused,
    Retry,
    Unauthenticated,
)

from .conftest import Api

AT_ONCE = Retry(first_wait=0)


class Losing(httpx.BaseTransport):
    """A network that delivers calls, and loses the first answers."""

    def __init__(self, api: Api, losing: int = 0) -> None:
        self.inner = httpx.WSGITransport(api.app)
        self.losing, self.calls = losing, 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.calls += 1
        answer = self.inner.handle_request(request)
        answer.read()
        if self.calls <= self.losing:
            raise httpx.ReadError("the answer was lost")
        return answer


@contextmanager
def client(api: Api, *, losing: int = 0, token: str | None = None) -> Iterator[Client]:
    transport = Losing(api, losing)
    with Client("http://effaced.example", token or api.token, retry=AT_ONCE, transport=transport) as made:
        yield made


def test_a_request_is_created_found_and_listed(api: Api) -> None:
    with client(api) as effaced:
        created = effaced.requests.create(kind="erasure", subject={"id": "1"}, reason="by e-mail")
        assert (created.kind, created.status, created.duplicate_of) == ("erasure", "review", None)
        assert effaced.requests.get(created.ref) == effaced.requests.get(created.id)
        assert [each.id for each in effaced.requests.list(status="review")] == [created.id]
        assert [each.type for each in effaced.requests.list_events(created.id)] == ["REQUEST_RECEIVED"]
        assert list(effaced.requests.list_entries(created.id)) == []
        assert effaced.requests.get(created.id, expand=["events"]).events is not None


@pytest.mark.parametrize("losing", [1, 4])
def test_a_call_whose_answers_are_lost_has_one_effect(api: Api, losing: int) -> None:
    with client(api, losing=losing) as effaced:
        created = effaced.requests.create(kind="erasure", subject={"id": "2"})
        assert created.duplicate_of is None
        assert [each.id for each in effaced.requests.list()] == [created.id]


def test_without_any_answer_the_same_key_tells_later_what_came_of_it(api: Api) -> None:
    with client(api, losing=5) as effaced:
        order: dict[str, Any] = {"kind": "erasure", "subject": {"id": "2"}, "idempotency_key": "order-7"}
        with pytest.raises(NetworkError, match="create_request"):
            effaced.requests.create(**order)
        created = effaced.requests.create(**order)
        assert [each.id for each in effaced.requests.list()] == [created.id]


def test_an_idempotency_key_is_for_one_body(api: Api) -> None:
    with client(api) as effaced:
        effaced.requests.create(kind="erasure", subject={"id": "1"}, idempotency_key="order-7")
        with pytest.raises(Conflict) as error:
            effaced.requests.create(kind="erasure", subject={"id": "2"}, idempotency_key="order-7")
    assert error.value.code == "idempotency-key-reused"


def test_a_list_is_read_to_its_end_page_by_page(api: Api) -> None:
    with client(api) as effaced:
        created = [effaced.requests.create(kind="erasure", subject={"id": str(n)}).id for n in range(1, 6)]
        assert sorted(each.id for each in effaced.requests.list(limit=2)) == sorted(created)
        pages = list(effaced.requests.list(limit=2).pages())
        assert [len(page.data) for page in pages] == [2, 2, 1]
        again = effaced.requests.list(limit=2, after=pages[0].next)
        assert [each.id for each in again] == [each.id for page in pages[1:] for each in page.data]


def test_refusals_say_what_is_wrong_and_not_what_was_sent(api: Api) -> None:
    with client(api) as effaced, pytest.raises(Refused) as error:
        effaced.requests.create(kind="rectification", subject={"id": "1"}, corrections={"email": "x" * 300})
    assert [each.field for each in error.value.errors] == ["corrections.email"]
    assert error.value.trace_id
    assert "xxx" not in str(error.value)


def test_other_refusals_have_their_classes(api: Api) -> None:
    with client(api) as effaced, pytest.raises(NotFound):
        effaced.requests.get("ER-0000-0000")
    with client(api) as effaced, pytest.raises(NotFound):
        effaced.requests.get("../../healthz")
    with client(api, token="eff_aaaaaaaa_" + "a" * 32) as effaced, pytest.raises(Unauthenticated):
        list(effaced.requests.list())


def test_too_many_calls_are_refused_with_when_to_come_back(make_api: Any, migrated_sqlite_url: str) -> None:
    api = make_api(migrated_sqlite_url, api_calls_per_minute=1)
    with Client(
        "http://effaced.example", api.token, retry=Retry(attempts=1), transport=httpx.WSGITransport(api.app)
    ) as effaced:
        list(effaced.requests.list())
        with pytest.raises(Exception, match="429 rate-limited") as error:
            list(effaced.requests.list())
    assert error.value.retry_after > 0  # type: ignore[attr-defined]


@pytest.fixture
def address(api: Api) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, api.app, threaded=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_async_client_does_the_same(api: Api, address: str) -> None:
    async def story() -> None:
        async with AsyncClient(address, api.token, retry=AT_ONCE) as effaced:
            calls = [effaced.requests.create(kind="erasure", subject={"id": str(n)}) for n in (1, 2, 3)]
            created = await asyncio.gather(*calls)
            listed = [each.id async for each in effaced.requests.list(limit=1)]
            assert sorted(listed) == sorted(each.id for each in created)
            with pytest.raises(NotFound):
                await effaced.requests.get("ER-0000-0000")

    asyncio.run(story())


def test_a_server_that_is_not_there_is_a_network_error() -> None:
    effaced = Client("http://127.0.0.1:1", "eff_key", retry=AT_ONCE)
    with effaced, pytest.raises(NetworkError, match=r"ConnectError.*5 attempts"):
        effaced.requests.get("ER-0000-0000")


@pytest.mark.parametrize(
    ("base_url", "key"),
    [("", "k"), ("ftp://x", "k"), ("https://u:p@x", "k"), ("https://x?y", "k"), ("https://x", ""),
     ("https://x", "eff_secret\n"), ("https://x", "eff_secrét")],
)  # fmt: skip
def test_settings_that_can_not_work_are_refused_without_the_key(base_url: str, key: str) -> None:
    with pytest.raises(ValueError, match="must be") as error:
        Client(base_url, key)
    assert "secr" not in str(error.value)
