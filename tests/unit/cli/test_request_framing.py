from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effaced.cli.request_framing import Progress, examine

GET = b"GET / HTTP/1.1\r\nHost: effaced\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: effaced\r\n"
MOST = 1_000


def is_complete(received: bytes) -> bool:
    return examine(received, most_body=MOST).complete


def chunked(*chunks: bytes, trailers: bytes = b"") -> bytes:
    body = b"".join(b"%x;note=1\r\n%b\r\n" % (len(chunk), chunk) for chunk in (*chunks, b"")[:-1])
    return POST + b"Transfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n" + trailers + b"\r\n"


REQUESTS = [
    GET,
    POST + b"Content-Length: 5\r\n\r\nhello",
    POST + b"CONTENT-LENGTH:  5 \r\n\r\nhello",
    chunked(),
    chunked(b"hello", b"\r\n0\r\n\r\n", b"x" * 100),
    chunked(b"hello", trailers=b"Digest: none\r\n"),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_request_is_complete_with_its_last_byte_and_not_before(request_: bytes) -> None:
    assert [is_complete(request_[:size]) for size in range(len(request_) + 1)] == [False] * len(request_) + [
        True
    ]


def test_a_head_without_its_end_is_not_a_head() -> None:
    assert examine(GET[:-1], most_body=MOST) == Progress(complete=False, has_head=False)


def test_what_follows_a_request_does_not_matter() -> None:
    assert is_complete(GET + b"GET /next")


@pytest.mark.parametrize("length", [b"1001", b"99999999"])
def test_a_body_that_is_too_large_is_not_waited_for(length: bytes) -> None:
    assert is_complete(POST + b"Content-Length: " + length + b"\r\n\r\n")


def test_chunks_that_are_too_large_are_not_waited_for() -> None:
    assert is_complete(POST + b"Transfer-Encoding: chunked\r\n\r\nffffff\r\n" + b"x" * MOST)


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: five\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nx\r\n",
    ],
)
def test_what_is_malformed_is_left_to_the_parser(head: bytes) -> None:
    assert is_complete(POST + head)


def test_a_client_that_waits_for_a_word_is_noticed() -> None:
    head = POST + b"Content-Length: 5\r\nExpect: 100-Continue\r\n\r\n"
    assert examine(head, most_body=MOST) == Progress(complete=False, expects_continue=True)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_can_be_examined(head: bytes, body: bytes) -> None:
    for framing in (b"", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 7\r\n"):
        examine(POST + framing + head + b"\r\n\r\n" + body, most_body=MOST)
