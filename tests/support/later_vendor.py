"""A vendor over HTTP that accepts deletions now and carries them out later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, cast


class LaterVendor:
    """`people` are records, `trash` is what was deleted and not yet purged.

    `hides`: a deleted person can't be retrieved any more, although the record is still in the trash.
    `accepts_all`: a deletion of somebody unknown is accepted too. `until` is the date it names, if any.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.people: set[str] = {"anna"}
        self.trash: set[str] = set()
        self.hides = self.accepts_all = False
        self.until: str | None = None
        self.calls: list[str] = []

    @property
    def deletions(self) -> int:
        return sum(call.startswith("DELETE") for call in self.calls)

    def purge(self) -> None:
        """What was to happen later happens now."""
        self.people -= self.trash
        self.trash.clear()

    def answer(self, method: str, path: str) -> tuple[int, dict[str, str]]:
        self.calls.append(f"{method} {path}")
        _, collection, person = path.split("/")
        if method == "DELETE":
            if person not in self.people and not self.accepts_all:
                return 404, {}
            self.trash |= {person}
            return 202, {"until": self.until} if self.until else {}
        if collection == "trash":
            return (200 if person in self.trash else 404), {}
        hidden = self.hides and person in self.trash
        return (200 if person in self.people and not hidden else 404), {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def handle_any(self) -> None:
        vendor: LaterVendor = cast(Any, self.server).vendor
        status, content = vendor.answer(self.command, self.path)
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_DELETE = handle_any  # noqa: N815


@contextmanager
def later_vendor() -> Iterator[LaterVendor]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    vendor = LaterVendor(f"http://127.0.0.1:{server.server_address[1]}")
    cast(Any, server).vendor = vendor
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield vendor
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
