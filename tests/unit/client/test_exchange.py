"""When a call is repeated, how long is waited, and what it ends with. Nothing is sent here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from effaced.client import (
    ApiError,
    Conflict,
    Forbidden,
    NetworkError,
    NotFound,
    RateLimited,
    Refused,
    Retry,
    ServerError,
    Unauthenticated,
    UnexpectedAnswer,
)
from effaced.client.answers import Answer
from effaced.client.exchange import Call, exchange, part

SECRET = "somebody-4711@people.example"
PROBLEM = {
    "type": "urn:effaced:problem:refused",
    "title": "The request is refused",
    "status": 422,
    "detail": "The request body is invalid.",
    "documentation": "/api/v1/docs/errors#refused",
    "errors": [{"field": "subject.id", "code": "wrong_type", "message": "must be a string"}],
    "trace_id": "5f0c6f1f6e4b4d7f8a3f0d1c2b3a4958",
}


class Thing(Answer):
    name: str
    note: str | None = None


CALL = Call("create_thing", "POST", "/things", Thing, body={"person": SECRET})
GOOD = httpx.Response(201, json={"name": "a"})
RESET = httpx.ReadError("reset by peer")


def play(
    results: Sequence[httpx.Response | httpx.RequestError],
    call: Call[Any] = CALL,
    retry: Retry = Retry(),  # noqa: B008
) -> tuple[Any, list[httpx.Request], list[float]]:
    """The call's attempts have these results: what it gave or raised, what was sent, what was waited."""
    sent: list[httpx.Request] = []
    waits: list[float] = []
    with httpx.Client(base_url="https://effaced.example") as http:
        steps = exchange(call, http.build_request, retry)
        result: httpx.Response | httpx.RequestError | None = None
        left = list(results)
        try:
            while True:
                step = steps.send(result)
                if isinstance(step, httpx.Request):
                    sent.append(step)
                    result = left.pop(0)
                else:
                    waits.append(step)
                    result = None
        except StopIteration as done:
            return done.value, sent, waits
        except Exception as error:
            return error, sent, waits


def answer(status: int, **headers: str) -> httpx.Response:
    return httpx.Response(status, headers={name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    "trouble",
    [RESET, httpx.ConnectError("no"), httpx.DecodingError("no"), *map(answer, (429, 502, 503, 504))],
)
def test_repeats_what_may_go_better_the_next_time(trouble: httpx.Response | httpx.RequestError) -> None:
    found, sent, waits = play([trouble, trouble, GOOD])
    assert (found, len(sent), len(waits)) == (Thing(name="a"), 3, 2)


@pytest.mark.parametrize(
    "trouble",
    [httpx.UnsupportedProtocol("ftp"), *map(answer, (301, 400, 401, 403, 404, 409, 413, 415, 422, 500))],
)
def test_does_not_repeat_what_would_end_alike(trouble: httpx.Response | httpx.RequestError) -> None:
    found, sent, waits = play([trouble])
    assert isinstance(found, NetworkError | ApiError)
    assert (len(sent), waits) == (1, [])


def test_all_attempts_of_a_post_have_one_idempotency_key_and_each_call_its_own() -> None:
    _, sent, _ = play([RESET, GOOD])
    _, others, _ = play([GOOD])
    keys = {each.headers["Idempotency-Key"] for each in sent}
    assert len(keys) == 1
    assert keys != {others[0].headers["Idempotency-Key"]}


def test_the_caller_s_idempotency_key_wins() -> None:
    _, sent, _ = play([GOOD], Call("create_thing", "POST", "/things", Thing, idempotency_key="order-7"))
    assert sent[0].headers["Idempotency-Key"] == "order-7"


def test_only_posts_have_an_idempotency_key_and_all_calls_a_version() -> None:
    _, sent, _ = play([GOOD], Call("get_thing", "GET", "/things/1", Thing))
    assert "Idempotency-Key" not in sent[0].headers
    assert sent[0].headers["Effaced-Version"] == "2026-11-20"


def test_waits_longer_each_time_and_never_twice_alike() -> None:
    retry = Retry(attempts=5, first_wait=1, longest_wait=4)
    _, _, waits = play([RESET] * 5, retry=retry)
    for wait, longest in zip(waits, (1, 2, 4, 4), strict=True):
        assert longest / 2 <= wait <= longest
    assert play([RESET] * 5, retry=retry)[2] != waits


def test_waits_as_long_as_the_server_asks() -> None:
    _, _, waits = play([answer(429, Retry_After="17"), answer(503, Retry_After="3"), GOOD])
    assert waits == [17, 3]


def test_understands_a_moment_to_come_back_at() -> None:
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    _, _, (wait,) = play([answer(503, Retry_After=moment), GOOD])
    assert 0 < wait <= 40


@pytest.mark.parametrize("nonsense", ["soon", "nan", "inf", "-5", "", "9" * 400])
def test_is_not_confused_by_what_is_no_time(nonsense: str) -> None:
    found, _, waits = play([answer(503, Retry_After=nonsense), GOOD])
    assert isinstance(found, Thing)
    assert 0.25 <= waits[0] <= 0.5


def test_does_not_wait_longer_than_it_may() -> None:
    found, sent, waits = play([answer(429, Retry_After="61")])
    assert isinstance(found, RateLimited)
    assert (found.retry_after, len(sent), waits) == (61, 1, [])


def test_one_attempt_is_never_repeated() -> None:
    found, sent, _ = play([RESET], retry=Retry(attempts=1))
    assert isinstance(found, NetworkError)
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Refused),
        (401, Unauthenticated),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (413, Refused),
        (415, Refused),
        (422, Refused),
        (429, RateLimited),
        (500, ServerError),
        (503, ServerError),
    ],
)
def test_errors_have_a_class_for_what_a_caller_would_do(status: int, kind: type[ApiError]) -> None:
    found, _, _ = play([httpx.Response(status, json=PROBLEM)], retry=Retry(attempts=1))
    assert type(found) is kind
    assert (found.status, found.code, found.trace_id) == (status, "refused", PROBLEM["trace_id"])
    assert [(each.field, each.code) for each in found.errors] == [("subject.id", "wrong_type")]
    assert str(found) == (
        f"{status} refused: The request body is invalid. subject.id must be a string"
        " (trace_id 5f0c6f1f6e4b4d7f8a3f0d1c2b3a4958)"
    )


@pytest.mark.parametrize(
    "strange",
    [
        b"",
        b"<html>Bad gateway</html>",
        b"[1]",
        b'{"errors": 5}',
        b'{"errors": [5, {}]}',
        b"\xff\xfe",
        pytest.param(b"[" * 200_000, id="deep"),
        b"null",
    ],
)
def test_an_error_of_a_proxy_is_an_error_too(strange: bytes) -> None:
    found, _, _ = play([httpx.Response(502, content=strange)], retry=Retry(attempts=1))
    assert isinstance(found, ServerError)
    assert found.status == 502


@pytest.mark.parametrize("last", [RESET, httpx.Response(422, json=PROBLEM), httpx.Response(200, text="hi")])
def test_no_error_leads_to_what_was_sent(last: httpx.Response | httpx.RequestError) -> None:
    found, _, _ = play([last], retry=Retry(attempts=1))
    assert isinstance(found, Exception)
    assert (found.__cause__, found.__context__) == (None, None)
    assert SECRET not in repr(found) + str(found) + repr(vars(found)) + repr(CALL)


def test_fields_and_words_that_a_newer_server_adds_are_no_error() -> None:
    found, _, _ = play([httpx.Response(200, json={"name": "a", "colour": {"deep": [1]}})])
    assert found == Thing(name="a")


@pytest.mark.parametrize("content", [b"", b"<html></html>", b'{"name": 5}', b"[]"])
def test_a_success_that_is_not_the_api_s_is_an_error(content: bytes) -> None:
    found, _, _ = play([httpx.Response(200, content=content)])
    assert isinstance(found, UnexpectedAnswer)


def test_a_query_has_what_is_given_and_says_it_as_the_api_reads_it() -> None:
    query = {
        "open": True,
        "expand": ["a", "b"],
        "after": None,
        "at": datetime(2026, 3, 2, tzinfo=UTC),
        "n": 5,
    }
    _, sent, _ = play([GOOD], Call("list_things", "GET", "/things", Thing, query=query))
    assert str(sent[0].url.params) == "open=true&expand=a&expand=b&at=2026-03-02T00%3A00%3A00%2B00%3A00&n=5"


@pytest.mark.parametrize("body", [{"x": float("nan")}, {"x": object()}, {"x": float("inf")}])
def test_what_is_no_json_is_refused_before_it_is_sent(body: dict[str, Any]) -> None:
    found, sent, _ = play([GOOD], Call("create_thing", "POST", "/things", Thing, body=body))
    assert isinstance(found, TypeError | ValueError)
    assert sent == []


def test_an_id_stays_one_part_of_the_path() -> None:
    assert part("../keys?x#y %") == "..%2Fkeys%3Fx%23y%20%25"
    for nothing in ("", ".", ".."):
        with pytest.raises(ValueError, match="path"):
            part(nothing)
