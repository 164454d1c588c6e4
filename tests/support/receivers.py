"""Those who are told, as real servers on loopback: a webhook's receiver and a mail server."""

from __future__ import annotations

import asyncio
import base64
import datetime
import ipaddress
import json
import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from standardwebhooks import Webhook

SECRET = "whsec_" + base64.b64encode(b"thirty-two bytes of randomness..").decode()


@dataclass(frozen=True)
class Post:
    """One delivery, as it came over the wire."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    def json(self) -> Any:
        return json.loads(self.body)

    def verified(self, secret: str = SECRET) -> dict[str, Any]:
        """The body, if the signature is right; the specification's own library says so."""
        told: dict[str, Any] = Webhook(secret).verify(self.body, dict(self.headers))
        return told


@dataclass
class Receiver:
    """Answers with `statuses` one after the other, the last one for ever. `stall`: never answers."""

    url: str
    statuses: list[int] = field(default_factory=lambda: [204])
    headers: dict[str, str] = field(default_factory=dict)
    stall: bool = False
    posts: list[Post] = field(default_factory=list)
    stopping: Event = field(default_factory=Event)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        receiver: Receiver = self.server.receiver  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        receiver.posts.append(Post(self.path, headers, body))
        if receiver.stall:
            receiver.stopping.wait(30)
            self.close_connection = True
            return
        statuses = receiver.statuses
        self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
        for name, value in receiver.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def receiver(context: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A webhook's receiver that remembers what it got; with a context, over TLS."""
    server = _Server(("127.0.0.1", 0), _Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    made = Receiver(f"http://127.0.0.1:{server.server_address[1]}/hooks/effaced")
    server.receiver = made  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Mailbox:
    """What a mail server has taken. `refuse` are recipients that it does not know."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    refuse: set[str] = field(default_factory=set)
    logins: list[tuple[str, str]] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        if address in self.refuse:
            return "550 5.1.1 nobody of that name"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        mail = message_from_bytes(envelope.content, policy=default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.recipients.append(list(envelope.rcpt_tos))
        self.encrypted.append(server.transport.get_extra_info("sslcontext") is not None)
        return "250 taken"

    def authenticate(self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        self.logins.append((data.login.decode(), data.password.decode()))
        return AuthResult(success=True)


class _Controller(Controller):
    """aiosmtpd's, on whatever port is free. A client that hangs up is not worth a line in the log."""

    def factory(self) -> SMTP:
        self.loop.set_exception_handler(_ignore_lost_connections)
        return SMTP(self.handler, **self.SMTP_kwargs)

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        super()._trigger_server()


def _ignore_lost_connections(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    # A lost TLS connection leaves a future that nobody awaits. It is reported whenever the garbage collector
    # finds it, with a traceback, and formatting one inside ast.parse breaks ast.parse (CPython gh-106905).
    if not isinstance(context.get("exception"), ConnectionError):
        loop.default_exception_handler(context)


@contextmanager
def mailbox(*, security: str = "none", certificate: Path | None = None) -> Iterator[Mailbox]:
    """A mail server that remembers what it took."""
    box = Mailbox()
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    options: dict[str, Any] = {}
    if security == "starttls":
        options = {"tls_context": context, "require_starttls": True}
    controller = _Controller(
        box,
        hostname="127.0.0.1",
        port=0,
        ssl_context=context if security == "tls" else None,
        authenticator=box.authenticate,
        auth_require_tls=security == "starttls",
        **options,
    )
    controller.start()
    box.port = controller.port
    try:
        yield box
    finally:
        controller.stop()


def make_certificate(path: Path) -> Path:
    """A key and a certificate of its own for 127.0.0.1, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(pem + certificate.public_bytes(serialization.Encoding.PEM))
    return path
