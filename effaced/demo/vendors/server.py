"""The fake vendors as a whole: start, stop, seed, switch faults, look what they hold."""

from __future__ import annotations

import socket
import sys
from collections import Counter, deque
from collections.abc import Mapping
from datetime import timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from effaced.demo.vendors.faults import Fault, make_fault
from effaced.demo.vendors.handler import Call, Handler
from effaced.demo.vendors.store import Store, known
from effaced.errors import Unavailable

DEMO_TOKEN = "demo-vendor-token"  # noqa: S105 (nothing real is behind it)


class Vendors:
    """All fake vendors, on one loopback port. A context manager: started inside, stopped after."""

    def __init__(
        self,
        *,
        port: int = 0,
        token: str = DEMO_TOKEN,
        state: Path | None = None,
        expire_after: timedelta = timedelta(minutes=2),
    ) -> None:
        self.port = port
        self.token = token
        self.expire_after = expire_after
        self.calls: deque[Call] = deque(maxlen=10_000)
        self.faults: dict[str, Fault] = {}
        self.stopping = Event()
        self.store = Store(state)
        self._counts: Counter[str] = Counter()
        self._lock = Lock()
        self._server: Server | None = None
        self._thread: Thread | None = None

    def start(self) -> Vendors:
        try:
            self._server = Server(("127.0.0.1", self.port), self)
        except OSError as error:
            raise Unavailable(f"Port {self.port} can't be used ({error.strerror}).") from None
        self.port = self._server.server_address[1]
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), name="vendors")
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop answering, hang up on everybody, and wait until that is done."""
        self.stopping.set()
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.hang_up()
            self._server.server_close()
            self._server = None
        self.store.close()

    def __enter__(self) -> Vendors:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def base_url(self) -> str:
        """What EFFACED_DEMO_VENDORS is set to."""
        return f"http://127.0.0.1:{self.port}"

    def url(self, name: str) -> str:
        return f"{self.base_url}/{known(name).name}"

    def seed(self, name: str, records: Mapping[str, Mapping[str, object]]) -> None:
        """Give a vendor records, by their key; for `files` the key is an object's whole path."""
        self.store.put(name, records)

    def records(self, name: str) -> dict[str, dict[str, object]]:
        """What a vendor holds about people now."""
        return self.store.all(name)

    def fault(self, name: str, kind: str, **options: object) -> None:
        """Switch a fault on, in place of the one that was on."""
        self.faults[known(name).name] = make_fault(kind, options)
        self._counts[name] = 0

    def heal(self, name: str | None = None) -> None:
        """Switch the fault of one vendor off, or of all."""
        for each in list(self.faults) if name is None else [known(name).name]:
            self.faults.pop(each, None)

    def count(self, name: str) -> int:
        """The number of this call since the vendor's fault was last changed, from 1."""
        with self._lock:
            self._counts[name] += 1
            return self._counts[name]


class Server(ThreadingHTTPServer):
    """A server that knows its connections, so that it can end them."""

    daemon_threads = False  # joined by server_close, so that nothing is left running
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], vendors: Vendors) -> None:
        self.vendors = vendors
        self.connections: set[socket.socket] = set()
        super().__init__(address, Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        for connection in list(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it was faster

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A caller that gave up waiting is no error of ours.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)
