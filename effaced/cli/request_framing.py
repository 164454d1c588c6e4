"""Where an HTTP/1.1 request ends in the bytes received so far.

The web worker collects a request without occupying a thread and needs to know when all of it is there.
This decides only that. gunicorn parses the request afterwards, and refuses what is malformed: such a
request counts as complete here, because waiting for more would not help.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEAD_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"[0-9]{1,18}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(;.*)?")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a request has come."""

    complete: bool
    has_head: bool = True
    expects_continue: bool = False
    """Whether the client waits for `100 Continue` before it sends the body."""


def examine(received: bytes | bytearray, *, most_body: int) -> Progress:
    """Whether the head and the body are there. More than `most_body` bytes of body are not waited for."""
    end = received.find(_HEAD_END)
    if end < 0:
        return Progress(complete=False, has_head=False)
    headers = _headers(bytes(received[:end]))
    body_start = end + len(_HEAD_END)
    if len(received) - body_start > most_body:
        return Progress(complete=True)
    if b"transfer-encoding" in headers:
        complete = _chunks_are_complete(received, body_start)
    else:
        length = headers.get(b"content-length", b"0")
        announced = int(length) if _LENGTH.fullmatch(length) else 0
        complete = announced > most_body or len(received) - body_start >= announced
    expects = headers.get(b"expect", b"").lower() == b"100-continue"
    return Progress(complete=complete, expects_continue=expects)


def _headers(head: bytes) -> dict[bytes, bytes]:
    fields = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return {name.strip().lower(): value.strip() for name, _, value in fields}


def _chunks_are_complete(received: bytes | bytearray, position: int) -> bool:
    """Walk from chunk to chunk up to the last one, which has the size 0, and the trailers after it."""
    while True:
        line_end = received.find(b"\r\n", position)
        if line_end < 0:
            return False
        size = _CHUNK_SIZE.fullmatch(received[position:line_end])
        if size is None:
            return True
        if int(size[1], 16) == 0:
            # The empty line that ends the trailers may follow the last chunk's line at once.
            return received.find(_HEAD_END, line_end) >= 0
        position = line_end + 2 + int(size[1], 16) + 2
        if position > len(received):
            return False
