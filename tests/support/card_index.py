"""A small system of another company, real on loopback, and resolvers for it, one for each ability.

They stand for what authors write, without help from the `http` kind.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from uuid import UUID

import httpx

from effaced.core import clock
from effaced.core import http_clients as clients
from effaced.core.errors import ResolverError
from effaced.model import Correction, SubjectRef
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    Answer,
    Erased,
    Rectified,
    Retained,
    Scheduled,
    TransientFailure,
    Unreachable,
)

CORRECTIONS = [Correction("name", "Amalia Corrected"), Correction("phone", None)]


class CardIndex:
    """People on cards, behind HTTP. `trouble` is None, "hang up", or a status for every call."""

    def __init__(self) -> None:
        self.cards: dict[str, dict[str, str | None]] = {}
        self.keys: list[str] = []
        self.trouble: str | int | None = None
        self.lock = Lock()
        self._numbers = itertools.count(1)

    def add(self, *, kept: bool = False) -> SubjectRef:
        number = next(self._numbers)
        value = f"anna.{number}@people.example"
        self.cards[value] = {
            "name": f"Anna {number}",
            "phone": "030 1234567",
            "town": "Berlin",
            "kept": "tax_law_10y" if kept else None,
        }
        return SubjectRef("card", value)

    @contextmanager
    def in_trouble(self, trouble: str | int) -> Iterator[SubjectRef]:
        """Somebody who is there, while no call for anybody goes well."""
        ref = self.add()
        self.trouble = trouble
        try:
            yield ref
        finally:
            self.trouble = None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def handle_any(self) -> None:
        index: CardIndex = self.server.index  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"null")
        if index.trouble == "hang up":
            self.close_connection = True
            return
        with index.lock:
            index.keys += self.headers.get_all("Idempotency-Key", [])
            status = int(index.trouble) if index.trouble else self.answer(index, body)
        told = b"" if status == 204 else json.dumps({"about": httpx.URL(self.path).params.get("id")}).encode()
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def answer(self, index: CardIndex, body: Any) -> int:
        name = httpx.URL(self.path).params["id"]
        if self.command == "PUT":
            index.cards.setdefault(name, {}).update(body)
            return 200
        # An asterisk means everybody, as in many a system: a resolver must know better than to send it.
        found = list(index.cards) if name == "*" else [each for each in index.cards if each == name]
        if not found:
            return 404
        if self.command == "PATCH":
            for each in found:
                index.cards[each].update(body)
        if self.command == "DELETE":
            free = [each for each in found if not index.cards[each]["kept"]]
            for each in free:
                del index.cards[each]
            return 204 if free else 451
        return 202 if self.command == "POST" else 200

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


@contextmanager
def serving(index: CardIndex) -> Iterator[str]:
    """The index's address."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.index = index  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class CardResolver:
    """Erases in a card index."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def __aenter__(self) -> CardResolver:
        clients.acquire()
        return self

    async def __aexit__(self, *_: object) -> None:
        await clients.release()

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        status = await self.call("DELETE", ref, key)
        if status == 451:
            return Retained("tax_law_10y")
        return AlreadyAbsent() if status == 404 else Erased()

    async def call(
        self, method: str, ref: SubjectRef, key: UUID | None, values: dict[str, str | None] | None = None
    ) -> int:
        """The status of a call that came to something."""
        headers = {} if key is None else {"Idempotency-Key": str(key)}
        try:
            async with clients.http_client() as client:
                reply = await client.request(
                    method, self.url, params={"id": ref.value}, headers=headers, json=values
                )
        except httpx.HTTPError as error:
            raise Unreachable("No answer.", code=type(error).__name__) from None
        if reply.status_code >= 500:
            raise TransientFailure("The index is in trouble.", status_code=reply.status_code)
        if reply.status_code not in (200, 202, 204, 404, 451):
            raise ResolverError("The index refuses.", code=f"http_{reply.status_code}")
        return reply.status_code


class VerifyingCardResolver(CardResolver):
    """Looks, too."""

    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        return await self.call("GET", ref, None) == 404


class RectifyingCardResolver(CardResolver):
    """Corrects, too."""

    async def rectify_subject(
        self, ref: SubjectRef, corrections: Sequence[Correction], *, key: UUID
    ) -> Rectified:
        values = {each.column: each.value for each in corrections}
        if await self.call("PATCH", ref, key, values) == 404:
            raise ResolverError("There is no such card.", code="no_such_card")
        return Rectified()


class ExpiringCardResolver(CardResolver):
    """For a card index that is asked to let somebody go (POST), and does so after thirty days."""

    async def schedule_erasure(self, ref: SubjectRef, *, key: UUID) -> Scheduled | AlreadyAbsent:
        if await self.call("POST", ref, key) == 404:
            return AlreadyAbsent()
        return Scheduled(clock.now() + timedelta(days=30))
