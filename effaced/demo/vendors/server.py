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

from effaced.core import clock
from effaced.core.errors import Unavailable
from effaced.demo.vendors.faults import Fault, duration, make_fault
from effaced.demo.vendors.handler import Call, Handler
from effaced.demo.vendors.store import VENDORS, Store, require_vendor

PREFIX = "EFFACED_DEMO_"
DEMO_TOKEN = "demo-vendor-token"  # noqa: S105 (nothing real is behind it)
EVERY_VENDOR = "all"


class Vendors:
    """All fake vendors on loopback. A context manager: started inside, stopped after.

    Each has a port of its own, as vendors have hosts of their own. `port` answers for all, with the page.
    `sockets` are listening ones to use instead of new ones: each vendor's, and EVERY_VENDOR's.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        sockets: Mapping[str, socket.socket] | None = None,
        token: str = DEMO_TOKEN,
        state: Path | None = None,
        expire_after: timedelta = timedelta(minutes=2),
    ) -> None:
        self.port = port
        self.own_ports = dict.fromkeys(VENDORS, 0)
        self._given = dict(sockets or {})
        self.token = token
        self.expire_after = expire_after
        self.calls: deque[Call] = deque(maxlen=10_000)
        self.faults: dict[str, Fault] = {}
        self.stopping = Event()
        self.store = Store(state)
        self._counts: Counter[str] = Counter()
        self._lock = Lock()
        self._ends: dict[str, float] = {}
        self._servers: list[tuple[Server, Thread]] = []

    def start(self) -> Vendors:
        self.port = self._listen(self.port, None)
        for name in self.own_ports:
            self.own_ports[name] = self._listen(0, name)
        return self

    def _listen(self, port: int, only: str | None) -> int:
        try:
            server = Server(("127.0.0.1", port), self, only, self._given.pop(only or EVERY_VENDOR, None))
        except OSError as error:
            raise Unavailable(f"Port {port} can't be used ({error.strerror}).") from None
        thread = Thread(target=server.serve_forever, args=(0.05,), name=f"vendors {only or ''}")
        thread.start()
        self._servers.append((server, thread))
        bound: int = server.server_address[1]
        return bound

    def stop(self) -> None:
        """Stop answering, hang up on everybody, and wait until that is done."""
        self.stopping.set()
        while self._servers:
            server, thread = self._servers.pop()
            server.shutdown()
            thread.join()
            server.hang_up()
            server.server_close()
        self.store.close()

    def __enter__(self) -> Vendors:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def base_url(self) -> str:
        """What EFFACED_DEMO_VENDORS is set to."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        """What the demo's resolvers.yaml asks the environment for, and where the page is."""
        named = {f"{PREFIX}{name.upper()}": self.url(name) for name in VENDORS}
        return {f"{PREFIX}VENDORS": self.base_url, f"{PREFIX}TOKEN": self.token, **named}

    def url(self, name: str) -> str:
        """Where one vendor is, on its own port."""
        return f"http://127.0.0.1:{self.own_ports[require_vendor(name).name]}/{name}"

    def seed(self, name: str, records: Mapping[str, Mapping[str, object]]) -> None:
        """Give a vendor records, by their key; for `files` the key is an object's whole path."""
        self.store.put(name, records)

    def records(self, name: str) -> dict[str, dict[str, object]]:
        """What a vendor holds about people now."""
        return self.store.all(name)

    def fault(self, name: str, kind: str, *, for_seconds: object = None, **options: object) -> None:
        """Switch a fault on, in place of the one that was on; it ends by itself if a time is given."""
        fault = make_fault(kind, options)
        ends = None if for_seconds is None else clock.monotonic() + duration(for_seconds)
        self.heal(require_vendor(name).name)
        if ends is not None:
            self._ends[name] = ends
        self.faults[name] = fault
        self._counts[name] = 0

    def fault_of(self, name: str) -> Fault | None:
        """The fault that is on now."""
        left = self.fault_seconds(name)
        if left is not None and left <= 0:
            self.heal(name)
        return self.faults.get(name)

    def fault_seconds(self, name: str) -> float | None:
        """How long the fault stays on; None if until it is switched off."""
        ends = self._ends.get(name)
        return None if ends is None else ends - clock.monotonic()

    def heal(self, name: str | None = None) -> None:
        """Switch the fault of one vendor off, or of all."""
        for each in list(self.faults) if name is None else [require_vendor(name).name]:
            self.faults.pop(each, None)
            self._ends.pop(each, None)

    def count(self, name: str) -> int:
        """The number of this call since the vendor's fault was last changed, from 1."""
        with self._lock:
            self._counts[name] += 1
            return self._counts[name]


class Server(ThreadingHTTPServer):
    """Answers for one vendor only, or for all. It knows its connections, so that it can end them."""

    daemon_threads = False  # joined by server_close, so that nothing is left running
    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int], vendors: Vendors, only: str | None, given: socket.socket | None
    ) -> None:
        self.vendors = vendors
        self.only = only
        self.connections: set[socket.socket] = set()
        super().__init__(address, Handler, bind_and_activate=given is None)
        if given is not None:
            self.socket.close()
            self.socket, self.server_address = given, given.getsockname()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """As the base class, for a connection that `hang_up` need not end any more."""
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
