"""Where an HTTP/1.1 request ends in the bytes received so far.

The web worker collects a request without occupying a thread and needs to know when all of it is there.
gunicorn parses the request afterwards and reads only what was collected. So a request whose end is not
plain is refused here: with 400 if it is malformed, with 413 or 431 if it is too large.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus

from gunicorn.http.body import CHUNK_EXT_RE

MOST_HEAD = 65_536
_MOST_LINE = 1_024
"""Of a chunk's size with its extensions, and of a trailer."""
_MOST_CHUNKS = 4_096
"""Finding the end of a chunk costs the same whatever its size, and no client sends this many small ones."""
_HEAD_END = b"\r\n\r\n"
_BARE_LINE_END = re.compile(rb"(?<!\r)\n|\r(?=[^\n])")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*(;.*))?", re.DOTALL)
_TRAILER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a request has come: refused, complete, or neither yet."""

    complete: bool = False
    refusal: HTTPStatus | None = None
    expects_continue: bool = False
    """Whether the client waits for `100 Continue` before it sends the body."""


class _Refused(Exception):
    def __init__(self, status: HTTPStatus) -> None:
        self.status = status


class Framing:
    """Follows one request. Remembers how far it has looked, so that no byte is looked at for each piece."""

    def __init__(self, *, most_body: int) -> None:
        self._most_body = most_body
        self._body_start = 0
        self._chunked = False
        self._expects_continue = False
        self._data_end = 0
        self._chunks = 0
        self._last_chunk_end = 0
        self.position = 0
        """Everything before it has been examined; where the request ends, once it is complete."""

    def examine(self, received: bytearray) -> Progress:
        """Look at what has come since the last time. `received` only ever grows at its end."""
        try:
            complete = (self._body_start or self._finds_head(received)) and self._finds_body_end(received)
        except _Refused as refused:
            return Progress(refusal=refused.status)
        return Progress(complete=bool(complete), expects_continue=self._expects_continue and not complete)

    def request(self, received: bytearray) -> bytes:
        """The complete request. Trailers are left out: nothing reads them."""
        if self._chunked:
            return bytes(received[: self._last_chunk_end]) + b"\r\n"
        return bytes(received[: self.position])

    def _finds_head(self, received: bytearray) -> bool:
        end = received.find(_HEAD_END, max(0, self.position - len(_HEAD_END) + 1))
        head_end = end if end >= 0 else len(received)
        # One byte further, so that a CR which stands before the line's own end is seen to be bare.
        start = max(0, self.position - 1)
        if _BARE_LINE_END.search(received, start, head_end + 1) or received[:2] == b"\r\n":
            raise _Refused(HTTPStatus.BAD_REQUEST)
        if head_end > MOST_HEAD:
            raise _Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        if end < 0:
            self.position = len(received)
            return False
        self._body_start = self.position = end + len(_HEAD_END)
        self._read_head(bytes(received[:end]))
        return True

    def _read_head(self, head: bytes) -> None:
        lengths, codings = _values(head, b"content-length"), _values(head, b"transfer-encoding")
        expectations = [each.lower() for each in _values(head, b"expect")]
        self._expects_continue = expectations == [b"100-continue"]
        self._chunked = bool(codings)
        if len(_values(head, b"host")) != 1 and head.split(b"\r\n", 1)[0].endswith(b" HTTP/1.1"):
            raise _Refused(HTTPStatus.BAD_REQUEST)
        if codings:
            if lengths or [each.lower() for each in codings] != [b"chunked"]:
                raise _Refused(HTTPStatus.BAD_REQUEST)
        elif lengths:
            if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
                raise _Refused(HTTPStatus.BAD_REQUEST)
            self._must_fit(int(lengths[0]))
            self.position += int(lengths[0])

    def _must_fit(self, body: int) -> None:
        if body > self._most_body:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)

    def _finds_body_end(self, received: bytearray) -> bool:
        if not self._chunked:
            return len(received) >= self.position
        while not self._last_chunk_end:
            if not self._passes_chunk(received):
                return False
        return self._passes_trailers(received)

    def _passes_chunk(self, received: bytearray) -> bool:
        """Move to the next chunk's size, if all of this chunk is there. The last one has the size 0."""
        if len(received) <= self._data_end:
            return False
        line = self._line(received)
        if line is None:
            return False
        parts = _CHUNK_SIZE.fullmatch(line)
        if parts is None or not CHUNK_EXT_RE.fullmatch(parts[2] or b""):
            raise _Refused(HTTPStatus.BAD_REQUEST)
        data_start, size = self.position + len(line) + 2, int(parts[1], 16)
        if size == 0:
            self.position = self._last_chunk_end = data_start
            return True
        end = data_start + size
        self._must_fit(end + 2 - self._body_start)
        if not b"\r\n".startswith(bytes(received[end : end + 2])):
            raise _Refused(HTTPStatus.BAD_REQUEST)
        self._data_end = end
        if len(received) < end + 2:
            return False
        self._chunks += 1
        if self._chunks > _MOST_CHUNKS:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        self.position = end + 2
        return True

    def _passes_trailers(self, received: bytearray) -> bool:
        while (line := self._line(received)) is not None:
            self.position += len(line) + 2
            if not line:
                return True
            if not _TRAILER.fullmatch(line):
                raise _Refused(HTTPStatus.BAD_REQUEST)
        return False

    def _line(self, received: bytearray) -> bytes | None:
        """The line that starts at the position. An unfinished one is short, or else refused."""
        end = received.find(b"\r\n", self.position, self.position + _MOST_LINE)
        line_end = end if end >= 0 else min(len(received), self.position + _MOST_LINE)
        self._must_fit(line_end - self._body_start)
        bare = _BARE_LINE_END.search(received, self.position, line_end + 1)
        if bare or line_end - self.position >= _MOST_LINE:
            raise _Refused(HTTPStatus.BAD_REQUEST)
        return bytes(received[self.position : end]) if end >= 0 else None


def _values(head: bytes, name: bytes) -> list[bytes]:
    fields = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return [value.strip(b" \t") for each, _, value in fields if each.strip(b" \t").lower() == name]
