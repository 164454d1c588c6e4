"""A relay in front of PostgreSQL that counts how often a client waits for an answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import make_url


class Relay:
    """Passes bytes both ways. A round trip begins when the client speaks after the server has spoken."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._server_spoke = True
        self._counting = False
        self.trips: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                for source, sink, asks in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass_on, args=(source, sink, asks), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, asks: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                self._note(data, asks)
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()  # the other direction closes the other end

    def _note(self, data: bytes, asks: bool) -> None:
        with self._lock:
            if not asks:
                self._server_spoke = True
                return
            # Whether a connection from the pool still lives is asked before the transaction begins.
            self._counting = self._counting or b"BEGIN" in data
            if self._counting and self._server_spoke:
                self.trips.append(data)
            elif self._counting:
                self.trips[-1] += data
            self._server_spoke = False

    def restart(self) -> None:
        """Forget what was counted; the next BEGIN starts the count."""
        with self._lock:
            self.trips.clear()
            self._counting = False

    def before_commit(self) -> list[bytes]:
        """What the client waited for on its way to the COMMIT, which was the last it asked for."""
        *working, last = [trip for trip in self.trips if not trip.startswith(b"X")]  # X: it hangs up
        assert b"COMMIT" in last
        return working

    def close(self) -> None:
        self._listener.close()


@contextmanager
def relayed(url: str) -> Iterator[tuple[str, Relay]]:
    """The same database at another address, and the count of what is asked there from BEGIN on."""
    parsed = make_url(url)
    relay = Relay(parsed.host or "127.0.0.1", parsed.port or 5432)
    try:
        yield parsed.set(port=relay.port).render_as_string(hide_password=False), relay
    finally:
        relay.close()
