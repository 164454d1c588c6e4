from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effaced.cli.web.framing import MOST_HEAD, Framing, Progress

GET = b"GET / HTTP/1.1\r\nHost: effaced\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: effaced\r\n"
MOST = 1_000


def examine(received: bytes) -> Progress:
    return Framing(most_body=MOST).examine(bytearray(received))


def is_complete(received: bytes) -> bool:
    return examine(received).complete


def in_pieces(received: bytes, size: int = 1) -> list[Progress]:
    """What is said after each piece, up to a refusal or the end."""
    framing, collected, said = Framing(most_body=MOST), bytearray(), []
    for start in range(0, len(received), size):
        collected += received[start : start + size]
        said.append(framing.examine(collected))
        if said[-1].complete or said[-1].refusal:
            break
    return said


class Counted(bytearray):
    """Counts the bytes that are searched and copied."""

    looked_at = 0

    def find(self, part: Any, start: Any = 0, end: Any = None) -> int:
        stop = len(self) if end is None else min(end, len(self))
        found = super().find(part, start, stop)
        self.looked_at += (stop if found < 0 else found) - start
        return found

    def __getitem__(self, index: Any) -> Any:
        result = super().__getitem__(index)
        self.looked_at += len(result) if isinstance(index, slice) else 1
        return result


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


CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
MALFORMED = [
    POST + b"Content-Length: five\r\n\r\n",
    POST + b"Content-Length: -5\r\n\r\n",
    POST + b"Content-Length: +5\r\n\r\n",
    POST + b"Content-Length: 0x5\r\n\r\n",
    POST + b"Content-Length: 1_0\r\n\r\n",
    POST + b"Content-Length: 5, 5\r\n\r\n",
    POST + b"Content-Length:\r\n\r\n",
    POST + b"Content-Length:\r\n 5\r\n\r\n",
    POST + b"Content-Length: \xb2\r\n\r\n",
    POST + b"Content-Length: " + b"0" * 20 + b"50\r\n\r\nabc",
    POST + b"Content-Length: " + b"9" * 6_000 + b"\r\n\r\n",
    POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    POST + b"Transfer-Encoding: identity\r\n\r\n",
    POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    POST + b"X: y\nContent-Length: 50\r\n",
    POST + b"X: y\rContent-Length: 50\r\n",
    POST + b"X: y\r\r\n\r\n",
    POST + b"\r\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: one\r\nHost: two\r\n\r\n",
    b"GET / HTTP/1.1\n",
    b"\r\n",
    CHUNKED + b"x\r\n",
    CHUNKED + b"\r\n",
    CHUNKED + b"-1\r\n",
    CHUNKED + b"+1\r\n",
    CHUNKED + b"0x5\r\n",
    CHUNKED + b"1_0\r\n",
    CHUNKED + b" 5\r\n",
    CHUNKED + b"5 \r\n",
    CHUNKED + b"0" * 16 + b"5\r\n",
    CHUNKED + b"5\n",
    CHUNKED + b"5\rh",
    CHUNKED + b"5\r\r\n",
    CHUNKED + b'5;a="\n"\r\n',
    CHUNKED + b"5;\x00\r\n",
    CHUNKED + b"5;a b\r\n",
    CHUNKED + b"5\r\nhelloX",
    CHUNKED + b"5\r\nhello\rX",
    CHUNKED + b"0\r\nbad trailer\r\n",
    CHUNKED + b"0\r\nX: \x00\r\n",
    CHUNKED + b"0\r\nX: a\n",
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_request_is_complete_with_its_last_byte_and_not_before(request_: bytes) -> None:
    assert [is_complete(request_[:size]) for size in range(len(request_) + 1)] == [False] * len(request_) + [
        True
    ]


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_request_in_pieces_is_complete_with_its_last_piece_and_not_before(
    request_: bytes, size: int
) -> None:
    said = in_pieces(request_, size)
    assert [each.complete for each in said] == [False] * (len(said) - 1) + [True]
    assert {each.refusal for each in said} == {None}


def test_a_head_without_its_end_is_not_complete() -> None:
    assert examine(GET[:-1]) == Progress()


def test_a_head_that_does_not_end_is_refused() -> None:
    assert examine(GET[:-2] + b"x" * MOST_HEAD).refusal == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


def test_what_follows_a_request_does_not_matter() -> None:
    assert is_complete(GET + b"GET /next")


def test_a_request_ends_where_the_next_one_starts() -> None:
    for request_ in REQUESTS:
        framing = Framing(most_body=MOST)
        assert framing.examine(bytearray(request_ + GET)).complete
        assert framing.position == len(request_)


def test_trailers_are_checked_and_not_handed_on() -> None:
    received = bytearray(chunked(b"hello", trailers=b"Content-Length: 7\r\n") + GET)
    framing = Framing(most_body=MOST)
    assert framing.examine(received).complete
    assert framing.request(received) == chunked(b"hello")


@pytest.mark.parametrize("length", [b"1001", b"99999999", b"9" * 18])
@pytest.mark.parametrize("expectation", [b"", b"Expect: 100-continue\r\n"])
def test_a_body_that_is_too_large_is_refused_when_it_is_announced(length: bytes, expectation: bytes) -> None:
    head = POST + expectation + b"Content-Length: " + length + b"\r\n\r\n"
    assert examine(head) == Progress(refusal=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(b"ffffff\r\n", id="one large chunk, announced"),
        pytest.param(b"ffffffffffffffff\r\n", id="the largest size"),
        pytest.param(b"1\r\na\r\n" * 167, id="many small ones: what comes over the wire counts"),
        pytest.param(b"0\r\n" + b"X: y\r\n" * 167, id="trailers"),
    ],
)
def test_chunks_that_are_too_large_are_refused(chunks: bytes) -> None:
    assert examine(CHUNKED + chunks).refusal == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


def test_a_body_of_very_many_chunks_is_refused_however_small_they_are() -> None:
    progress = Framing(most_body=1_000_000).examine(bytearray(CHUNKED + b"1\r\na\r\n" * 5_000))
    assert progress.refusal == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


@pytest.mark.parametrize("request_", MALFORMED, ids=lambda value: ascii(value)[35:100])
def test_what_is_malformed_is_refused_without_waiting_for_more(request_: bytes) -> None:
    assert examine(request_).refusal == HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize("line", [b"5" * 2_000, b"5;" + b"a" * 2_000, b"0\r\n" + b"a" * 2_000])
def test_a_line_between_chunks_that_does_not_end_is_refused(line: bytes) -> None:
    assert Framing(most_body=10_000).examine(bytearray(CHUNKED + line)).refusal == HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize("request_", [each for each in MALFORMED if len(each) < 1_000])
def test_what_is_malformed_is_refused_also_when_it_comes_byte_by_byte(request_: bytes) -> None:
    said = in_pieces(request_)
    assert HTTPStatus.BAD_REQUEST in [each.refusal for each in said]
    assert not any(each.complete for each in said)


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(POST + b"".join(b"%x:\r\n" % number for number in range(5_000)), id="a large head"),
        pytest.param(
            POST + b"Content-Length: 99999\r\n" + b"X:\r\n" * 5_000 + b"\r\n", id="a body after a large head"
        ),
        pytest.param(CHUNKED + b"8\r\nabcdefgh\r\n" * 4_000 + b"4000\r\n", id="one chunk after many"),
    ],
)
def test_each_further_byte_costs_a_few_bytes_of_looking(start: bytes) -> None:
    framing, received = Framing(most_body=100_000), Counted(start)
    framing.examine(received)
    assert received.looked_at < 5 * len(start)
    received.looked_at = 0
    for _ in range(5_000):
        received += b"a"
        assert framing.examine(received) == Progress()
    assert received.looked_at < 10 * 5_000


def test_a_client_that_waits_for_a_word_is_noticed() -> None:
    head = POST + b"Content-Length: 5\r\nExpect: 100-Continue\r\n\r\n"
    assert examine(head) == Progress(expects_continue=True)


# Random bytes seldom hold the few that matter here.
PIECES = st.lists(
    st.sampled_from(
        [b"\r\n", b"\r", b"\n", b":", b";", b" ", b"0", b"5", b"a", b"\x00", b"\xff", b"Content-Length",
         b"Transfer-Encoding", b"chunked", b"Expect: 100-continue"]
    ),
    max_size=20,
).map(b"".join)  # fmt: skip


@given(PIECES | st.binary(max_size=200), PIECES | st.binary(max_size=200))
def test_any_bytes_can_be_examined(head: bytes, body: bytes) -> None:
    for framing in (b"", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 7\r\n"):
        received = POST + framing + head + b"\r\n\r\n" + body
        at_once, last = examine(received), in_pieces(received)[-1]
        assert (at_once.complete, at_once.refusal) == (last.complete, last.refusal)
