"""How often a key may call: counted by all processes together in Redis, and by each for itself else."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from threading import Event, Thread
from typing import Any

import pytest
from redis import Redis

from effaced.api.operations import rate_limit
from effaced.api.operations.problems import ApiProblem
from effaced.api.operations.rate_limit import PREFIX, RateLimit
from effaced.core import clock
from effaced.core.servers import Valkey

from .conftest import Api

PATH = "/api/v1/requests"
HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


@pytest.fixture
def limited(make_api: Callable[..., Api], migrated_sqlite_url: str) -> Api:
    return make_api(migrated_sqlite_url, api_calls_per_minute=3)


def numbers(answer: Any) -> list[int]:
    return [int(answer.headers[name]) for name in HEADERS]


def count(limit: RateLimit, key: str = "a", times: int = 1) -> list[int]:
    """How many calls are left after each, and -1 for one that was refused."""
    left = []
    for _ in range(times):
        with suppress(ApiProblem):
            allowance = limit.count(key)
            assert allowance is not None
            left.append(allowance.remaining)
            continue
        left.append(-1)
    return left


# --- what is answered ---


def test_every_answer_says_how_many_calls_are_left(limited: Api) -> None:
    answers = [
        limited.get(PATH),
        limited.get(f"{PATH}/x"),
        limited.post({"kind": "murder"}),
    ]
    assert [answer.status_code for answer in answers] == [200, 404, 422]
    assert [numbers(answer)[:2] for answer in answers] == [[3, 2], [3, 1], [3, 0]]
    assert all(0 < numbers(answer)[2] <= 60 for answer in answers)


def test_a_call_without_the_scope_is_counted_and_told(limited: Api) -> None:
    answer = limited.get(PATH, token=limited.new_key("operator", scopes=["operate:read"]))
    assert (answer.status_code, numbers(answer)[:2]) == (403, [3, 2])


def test_one_too_many_is_refused_and_told_when_to_come_back(limited: Api) -> None:
    for _ in range(3):
        limited.get(PATH)
    before = limited.rows()
    for answer in (limited.get(PATH), limited.post(limited.erasure()), limited.get(f"{PATH}/x")):
        assert limited.problem(answer)[:2] == (429, "rate-limited")
        limit, left, reset = numbers(answer)
        assert (limit, left, answer.headers["Retry-After"]) == (3, 0, str(reset))
        assert 0 < reset <= 60
        assert answer.headers["Effaced-Version"]
    assert limited.rows() == before


def test_each_key_has_its_own_count(limited: Api) -> None:
    other = limited.new_key("crm")
    statuses = [limited.get(PATH).status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    assert limited.get(PATH, token=other).status_code == 200


def test_unknown_keys_are_not_counted(limited: Api) -> None:
    limit = rate_limit.installed(limited.app)
    for one in "abcdefg":
        answer = limited.get(PATH, token=f"eff_abcdefgh_{'a' * 31}{one}")
        assert answer.status_code == 401
        assert not set(HEADERS) & set(answer.headers.keys())
    assert limit._own.storage.storage == {}  # type: ignore[attr-defined]
    assert count(limit, str(limited.key.id), 4) == [2, 1, 0, -1]


def test_zero_is_any_number(make_api: Callable[..., Api], migrated_sqlite_url: str) -> None:
    api = make_api(migrated_sqlite_url, api_calls_per_minute=0)
    answers = [api.get(PATH) for _ in range(20)]
    assert {answer.status_code for answer in answers} == {200}
    assert not set(HEADERS) & set(answers[-1].headers.keys())


# --- who counts ---


def test_processes_count_together_in_redis(redis_url: str) -> None:
    one, other = RateLimit(5, redis_url), RateLimit(5, redis_url)
    assert count(one, times=3) == [4, 3, 2]
    assert count(other, times=3) == [1, 0, -1]
    assert count(one) == [-1]
    assert count(other, "b") == [4]


def test_redis_has_the_id_of_the_key_and_forgets_it(redis_url: str) -> None:
    count(RateLimit(5, redis_url), "0191-key")
    with closing(Redis.from_url(redis_url, decode_responses=True)) as redis:
        (name,) = redis.scan_iter(match="*")
        assert name.startswith(PREFIX)
        assert "0191-key" in name
        assert 0 < redis.ttl(name) <= 120


def test_without_redis_each_process_counts_alone() -> None:
    assert count(RateLimit(2, None), times=3) == [1, 0, -1]
    assert count(RateLimit(2, None), times=3) == [1, 0, -1]


def test_while_redis_is_away_each_process_counts_alone_and_comes_back(own_valkey: Valkey) -> None:
    limit = RateLimit(4, own_valkey.url)
    assert count(limit, times=2) == [3, 2]
    own_valkey.stop()
    assert count(limit, times=5) == [3, 2, 1, 0, -1]
    own_valkey.start()
    assert count(limit) == [-1], "Redis is left alone for a while"
    limit._paused_until = 0.0
    assert count(limit, times=2) == [3, 2]


# --- a Redis that is no good ---


@contextmanager
def answering(reply: Callable[[socket.socket], None]) -> Iterator[str]:
    """The URL of something that takes connections and answers as it likes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        opened: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    opened.append(client)
                    Thread(target=serve, args=(client,), daemon=True).start()

        def serve(client: socket.socket) -> None:
            with suppress(OSError):
                while client.recv(65_536):
                    reply(client)

        Thread(target=accept, daemon=True).start()
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
        for each in opened:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class Trickle:
    """One byte of an answer whenever a reader would soon give up, and no end of it."""

    def __init__(self) -> None:
        self.done = Event()

    def __call__(self, client: socket.socket) -> None:
        client.sendall(b"+")
        while not self.done.wait(rate_limit.ANSWER_WITHIN_S / 10):
            client.sendall(b"a")


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(lambda client: None, id="nothing"),
        pytest.param(lambda client: client.close(), id="hangs up"),
        pytest.param(lambda client: client.sendall(b"-ERR no\r\n"), id="an error"),
        pytest.param(lambda client: client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"), id="no Redis"),
        pytest.param(lambda client: client.sendall(b"+OK\r\n"), id="always OK"),
        pytest.param(lambda client: client.sendall(b"$5\r\nx"), id="half an answer"),
        pytest.param(lambda client: client.sendall(b"*1000000000\r\n"), id="a thousand million items"),
    ],
)
def test_whatever_redis_answers_the_process_counts_alone(reply: Callable[[socket.socket], None]) -> None:
    with answering(reply) as url:
        assert count(RateLimit(2, url), times=3) == [1, 0, -1]


def test_a_redis_that_never_ends_its_answer_holds_nobody_up() -> None:
    trickle = Trickle()
    with answering(trickle) as url:
        limit = RateLimit(3, url)
        assert count(limit) == [2]
        asked = limit._asker._late
        assert asked is not None
        assert not asked.done(), "the thread still reads"
        limit._paused_until = 0.0
        # The next caller does not even wait: somebody is waiting already.
        assert count(limit) == [1]
        assert limit._asker._late is asked
        trickle.done.set()


@pytest.mark.parametrize("stored", ["many", "", "-5", "9" * 30, "nan", "1e400", "\x00"])
def test_whatever_stands_in_redis_the_answer_is_within_bounds(redis_url: str, stored: str) -> None:
    limit = RateLimit(3, redis_url)
    count(limit)
    with closing(Redis.from_url(redis_url)) as redis:
        for name in redis.scan_iter(match=f"{PREFIX}*"):
            redis.set(name, stored, px=10**14)
    headers: dict[str, str] = {}
    try:
        allowance = limit.count("a")
        headers = allowance.headers() if allowance else {}
    except ApiProblem as problem:
        headers = problem.headers
    assert 0 <= int(headers["RateLimit-Remaining"]) <= 3
    assert 0 < int(headers["RateLimit-Reset"]) <= 60
    assert 0 < int(headers.get("Retry-After", 1)) <= 60


def test_after_a_failure_redis_is_left_alone_for_a_while(logs: list[Any]) -> None:
    with answering(lambda client: client.sendall(b"-ERR no\r\n")) as url:
        limit = RateLimit(9, url)
        count(limit, times=5)
    assert [entry["event"] for entry in logs] == ["rate_limit_counts_alone"]
    assert limit._paused_until > clock.monotonic()
