"""A gunicorn worker whose threads never wait for a client.

gunicorn's own threaded worker gives each new connection to a thread, which then waits for the request: a
handful of silent or slow connections occupies all of them. Here the worker's main loop collects every
request and only hands over complete ones: a thread gets the request's bytes and never reads from the
socket. It also waits until a client has received earlier answers before its next request is served, and
waits out closing connections, so that a client that does not read or does not hang up delays nobody.
"""

from __future__ import annotations

import errno
import fcntl
import json
import selectors
import socket
import sys
import termios
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, ClassVar

from gunicorn.http import get_parser
from gunicorn.workers.gthread import TConn, ThreadWorker

from effaced.api.operations.problems import TOO_LARGE, TYPE
from effaced.cli.web.framing import Framing
from effaced.core import clock

REQUEST_SECONDS = 20.0
"""How long a client may take to send a request, head and body together."""
WRITE_SECONDS = 20.0
"""How long a client may take to receive one piece of an answer."""
LINGER_SECONDS = 2.0
MOST_BUFFERED = 64 * 1024 * 1024
# Much larger than any page that needs no sign-in: such an answer fits, whether or not the client reads it,
# as long as little of the earlier ones is still there.
_MOST_UNSENT = 16_384
_SEND_BUFFER = 262_144
_READ_AT_ONCE = 65_536
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# gunicorn copies the rest of a piece for each chunk of a chunked body.
_PARSED_AT_ONCE = 8_192
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)
_CLIENT_IS_GONE = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED)


class _Socket(socket.socket):
    """Blocks for a bounded time only, also where gunicorn asks for a socket that blocks for ever."""

    def setblocking(self, flag: bool) -> None:
        self.settimeout(WRITE_SECONDS if flag else 0.0)


class _Connection(TConn):  # type: ignore[misc]
    """A connection with the bytes of the request that is being collected."""

    def __init__(self, cfg: Any, sock: _Socket, client: Any, server: Any) -> None:
        super().__init__(cfg, sock, client, server)
        # gunicorn would otherwise set up a parser that reads from the socket.
        self.initialized = True
        self.received = bytearray()
        self.framing: Framing | None = None
        self.told_to_continue = False

    def take_request(self, framing: Framing) -> None:
        """Give gunicorn's parser the complete request and nothing else; keep what has come behind it."""
        request = framing.request(self.received)
        del self.received[: framing.position]
        pieces = range(0, len(request), _PARSED_AT_ONCE)
        source = (request[start : start + _PARSED_AT_ONCE] for start in pieces)
        self.parser = get_parser(self.cfg, source, self.client)


class BufferingWorker(ThreadWorker):  # type: ignore[misc]
    """See the module. `most_body` is the largest body that is collected before the application sees it."""

    most_body: ClassVar[int] = 262_144

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lingering: deque[_Connection] = deque()
        self.not_reading: deque[_Connection] = deque()

    # --- a connection's way: accepted, collected, served by a thread, kept alive or closed ---

    def accept(self, listener: socket.socket) -> None:
        if self.nr_conns >= self.worker_connections - 1:
            self._make_room()
        try:
            accepted, address = listener.accept()
        except OSError as error:
            if error.errno in _OUT_OF_FILES:
                self._make_room()
            elif error.errno not in _CLIENT_IS_GONE:
                raise
            return
        client = _Socket(fileno=accepted.detach())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        self.nr_conns += 1
        self._collect(_Connection(self.cfg, client, address, listener.getsockname()))

    def finish_request(self, conn: _Connection, future: Any) -> None:
        """The thread is done with a request: wait for the next one, or close."""
        try:
            keep = bool(future.result()) and self.alive
        except Exception:
            keep = False
        if not keep:
            self._linger(conn)
            return
        conn.sock.setblocking(False)
        # A client may have sent its next request already, behind the first one.
        if conn.received:
            self._collect(conn)
            self._hand_over_if_complete(conn)
        else:
            conn.set_timeout()
            self.keepalived_conns.append(conn)
            self._watch(conn, self._on_next_request)

    def _keepalive_after(self, conn: _Connection, keepalive: bool) -> bool:
        # The parser had no bytes but this request's, so what it left unread is in nobody's way.
        return keepalive

    def _on_next_request(self, conn: _Connection) -> None:
        self._unwatch(conn)
        self.keepalived_conns.remove(conn)
        self._collect(conn)

    def _collect(self, conn: _Connection) -> None:
        """Wait, without a thread, until the request is complete or its time is up."""
        conn.framing = Framing(most_body=self.most_body)
        conn.told_to_continue = False
        conn.timeout = clock.monotonic() + REQUEST_SECONDS
        self.pending_conns.append(conn)
        self._watch(conn, self._on_bytes)

    def _on_bytes(self, conn: _Connection) -> None:
        try:
            piece = conn.sock.recv(_READ_AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            self._drop(conn, self.pending_conns)
            return
        conn.received += piece
        self._hand_over_if_complete(conn)

    def _hand_over_if_complete(self, conn: _Connection) -> None:
        assert conn.framing is not None
        progress = conn.framing.examine(conn.received)
        if progress.complete:
            self._unwatch(conn)
            self.pending_conns.remove(conn)
            conn.take_request(conn.framing)
            self._hand_over_if_writable(conn)
        elif progress.refusal is not None:
            self._refuse(conn, progress.refusal)
        elif sum(len(each.received) for each in self.pending_conns) > MOST_BUFFERED:
            self._drop(conn, self.pending_conns)
        elif progress.expects_continue and not conn.told_to_continue:
            conn.told_to_continue = True
            with suppress(OSError):
                conn.sock.send(_CONTINUE)

    def _hand_over_if_writable(self, conn: _Connection) -> None:
        """Serve the request, but not while earlier answers fill the client's send buffer."""
        if _has_received_enough(conn.sock):
            self.enqueue_req(conn)
            return
        conn.timeout = clock.monotonic() + WRITE_SECONDS
        self.not_reading.append(conn)

    def _refuse(self, conn: _Connection, status: HTTPStatus) -> None:
        with suppress(OSError):
            conn.sock.send(_refusal(status, self.most_body))
        self._unwatch(conn)
        self.pending_conns.remove(conn)
        self._linger(conn)

    def _linger(self, conn: _Connection) -> None:
        """Let the client read the answer: closing with bytes unread would take it away again."""
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(conn)
            return
        conn.timeout = clock.monotonic() + LINGER_SECONDS
        self.lingering.append(conn)
        self._watch(conn, self._discard_received)

    def _discard_received(self, conn: _Connection) -> None:
        """Throw away what still arrives on a connection that is being closed, until its peer closes it."""
        try:
            ended = not conn.sock.recv(_READ_AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            ended = True
        if ended:
            self._drop(conn, self.lingering)

    # --- ending connections ---

    def murder_pending(self) -> None:
        """Close what has run out of time; while stopping, also who has sent nothing yet or does not read."""
        super().murder_pending()
        now = clock.monotonic()
        for conn in [each for each in self.not_reading if _has_received_enough(each.sock)]:
            self.not_reading.remove(conn)
            self.enqueue_req(conn)
        for waiting in (self.lingering, self.not_reading):
            while waiting and waiting[0].timeout <= now:
                self._drop(waiting[0], waiting)
        if not self.alive:
            for conn in [each for each in self.pending_conns if not each.received]:
                self._drop(conn, self.pending_conns)
            for conn in list(self.not_reading):
                self._drop(conn, self.not_reading)

    def _make_room(self) -> None:
        """Close the connection that has waited longest without being served."""
        for waiting in (self.lingering, self.not_reading, self.pending_conns, self.keepalived_conns):
            if waiting:
                self._drop(waiting[0], waiting)
                return

    def _drop(self, conn: _Connection, of: deque[_Connection]) -> None:
        of.remove(conn)
        self._unwatch(conn)
        self._close(conn)

    def _close(self, conn: _Connection) -> None:
        self.nr_conns -= 1
        conn.close()

    def _watch(self, conn: _Connection, on_ready: Callable[[_Connection], None]) -> None:
        def dispatch(_sock: object) -> None:
            # It may have been closed, to make room, by an event that came together with this one.
            if conn.sock.fileno() >= 0:
                on_ready(conn)

        self.poller.register(conn.sock, selectors.EVENT_READ, dispatch)

    def _unwatch(self, conn: _Connection) -> None:
        with suppress(OSError, KeyError, ValueError):
            self.poller.unregister(conn.sock)


def _has_received_enough(sock: socket.socket) -> bool:
    """Whether the client has taken nearly all of the earlier answers."""
    waiting = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(waiting, sys.byteorder) <= _MOST_UNSENT


def _refusal(status: HTTPStatus, most_body: int) -> bytes:
    """A whole answer: a problem, as the API's other errors are."""
    too_large = status == TOO_LARGE.status
    problem: dict[str, object] = {
        "type": TYPE + (TOO_LARGE.slug if too_large else status.phrase.lower().replace(" ", "-")),
        "title": TOO_LARGE.title if too_large else status.phrase,
        "status": status.value,
        "detail": f"At most {most_body} bytes are accepted."
        if too_large
        else "The request is not HTTP as effaced reads it: its length, chunks or headers are malformed.",
        "errors": [],
        "trace_id": None,
    }
    body = json.dumps(problem).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nConnection: close\r\n"
        f"Content-Type: application/problem+json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
