"""Messages to registered targets: connected to what was checked, and signed with every secret."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from receivers import Receiver, make_certificate, receiver
from standardwebhooks import Webhook, WebhookVerificationError

from effaced.model import NoticeType, new_id
from effaced.notify.guard import Guard
from effaced.notify.target import NotDelivered, Outgoing
from effaced.notify.webhook import RegisteredTarget, new_secret

LOOPBACK = Guard((ip_network("127.0.0.1/32"),))
SECRET = new_secret()
LOOPBACKS = ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"]


@dataclass
class NameServer:
    """Answers with one list of addresses after the other, and counts who asks."""

    answers: list[Sequence[str]]
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def target(url: str, guard: Guard = LOOPBACK, **more: Any) -> RegisteredTarget:
    known = {"name": "api:x", "secrets": (SECRET,), "events": frozenset((NoticeType.REQUEST_EXECUTED,))}
    return RegisteredTarget(**{**known, "url": url, "timeout": timedelta(seconds=30), "guard": guard, **more})


def send(to: RegisteredTarget) -> None:
    message = Outgoing(new_id(), NoticeType.REQUEST_EXECUTED, datetime.now(UTC), {"kind": "erasure"})
    asyncio.run(to.send(message))


def refusal(to: RegisteredTarget) -> str:
    with pytest.raises(NotDelivered) as caught:
        send(to)
    return caught.value.code


def by_name(url: str, name: str) -> str:
    return url.replace("127.0.0.1", name)


def test_a_name_that_leads_to_another_address_a_moment_later_gains_nothing(oncall: Receiver) -> None:
    server = NameServer([["127.0.0.1"], ["127.0.0.2"]])
    to = target(by_name(oncall.url, "rebinding.example"), resolve=server)
    send(to)
    assert len(server.asked) == 1, "what was checked is what is connected to"
    assert oncall.posts[0].headers["host"].startswith("rebinding.example:")
    assert refusal(to) == "address_not_allowed"
    assert len(oncall.posts) == 1


def test_a_name_that_also_leads_inside_is_refused_before_anything_is_sent(oncall: Receiver) -> None:
    server = NameServer([["127.0.0.1", "127.0.0.2"]])
    assert refusal(target(by_name(oncall.url, "both.example"), resolve=server)) == "address_not_allowed"
    assert oncall.posts == []


def test_the_next_address_is_tried_where_nobody_listens(oncall: Receiver) -> None:
    guard = Guard((ip_network("127.0.0.0/8"),))
    server = NameServer([["127.0.0.9", "127.0.0.1"]])
    send(target(by_name(oncall.url, "two.example"), guard, resolve=server))
    assert len(oncall.posts) == 1


@pytest.mark.parametrize("host", LOOPBACKS)
def test_this_machine_is_refused_however_it_is_written(oncall: Receiver, host: str) -> None:
    url = by_name(oncall.url, host).replace("http://", "https://")
    assert refusal(target(url, Guard())) == "address_not_allowed"


def test_plain_http_is_refused_once_the_setting_is_gone(oncall: Receiver) -> None:
    assert refusal(target(oncall.url, Guard())) == "address_not_allowed"
    assert oncall.posts == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(oncall: Receiver, status: int) -> None:
    with receiver() as inside:
        oncall.statuses, oncall.headers = [status], {"Location": inside.url}
        assert refusal(target(oncall.url)) == f"http_{status}"
        assert inside.posts == []


def test_no_proxy_is_used(oncall: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/hooks/effaced"))
        monkeypatch.setenv("NO_PROXY", "")
        monkeypatch.setenv("no_proxy", "")
        send(target(oncall.url))
        assert (len(oncall.posts), proxy.posts) == (1, [])


def test_a_name_that_is_not_known_is_refused() -> None:
    assert refusal(target("https://nobody.invalid/", resolve=NameServer([[]]))) == "address_not_allowed"


def test_nobody_listening_is_named_by_the_error_s_class() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert refusal(target(f"http://127.0.0.1:{free.getsockname()[1]}/")) == "ConnectError"


def test_both_secrets_of_a_rotation_verify_and_no_other(oncall: Receiver) -> None:
    new, old = new_secret(), new_secret()
    send(target(oncall.url, secrets=(new, old)))
    (post,) = oncall.posts
    assert post.verified(new) == post.verified(old)
    assert len(post.headers["webhook-signature"].split(" ")) == 2
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(post.body, dict(post.headers))


def test_the_certificate_has_to_be_of_the_name_not_of_the_address(tmp_path: Path) -> None:
    named: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(make_certificate(tmp_path / "server.pem"))
    context.sni_callback = lambda _socket, name, _context: named.append(name)
    with receiver(context) as server:
        url = by_name(server.url, "hooks.example").replace("http://", "https://")
        assert refusal(target(url, resolve=NameServer([["127.0.0.1"]]))) == "ConnectError"
        assert (named, server.posts) == (["hooks.example"], [])


def test_neither_address_nor_secrets_are_shown(oncall: Receiver) -> None:
    made = target(f"{oncall.url}/token-in-the-path")
    shown = f"{made!r} {made.where}"
    assert "token-in-the-path" not in shown
    assert SECRET not in shown
