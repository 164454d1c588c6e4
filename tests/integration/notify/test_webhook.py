"""What goes over the wire to a system, as the specification's own library sees it."""

from __future__ import annotations

import asyncio
import base64
import socket
from datetime import UTC, datetime

import pytest
from receivers import SECRET, Receiver
from standardwebhooks import WebhookVerificationError

from effaced.core import clock
from effaced.model import NoticeType, new_id
from effaced.notify.target import NotDelivered, Outgoing
from effaced.notify.webhook import WebhookConfig, WebhookTarget

FACTS = {"resolver": "crm", "attempts": 8, "error": "Rejected"}


def target(url: str, *, timeout: float = 60) -> WebhookTarget:
    config = WebhookConfig(kind="webhook", url=url, secret=SECRET, timeout=timeout)  # type: ignore[arg-type]
    return WebhookTarget("oncall", config)


def message() -> Outgoing:
    return Outgoing(new_id(), NoticeType.ENTRY_ABANDONED, datetime.now(UTC), FACTS, new_id(), "ER-1")


def send(url: str, told: Outgoing | None = None, **options: float) -> object:
    return asyncio.run(target(url, **options).send(told or message()))


def test_the_signature_is_right_and_the_body_as_the_specification_has_it(oncall: Receiver) -> None:
    told = message()
    send(oncall.url, told)
    assert oncall.posts[0].verified() == {
        "type": "entry.abandoned",
        "timestamp": clock.text(told.at),
        "data": {"request_id": str(told.request_id), "ref": "ER-1", **FACTS},
    }
    assert oncall.posts[0].headers["content-type"] == "application/json"


def test_the_signature_of_another_secret_is_not_right(oncall: Receiver) -> None:
    send(oncall.url)
    other = "whsec_" + base64.b64encode(b"another secret of thirty-two by.").decode()
    with pytest.raises(WebhookVerificationError):
        oncall.posts[0].verified(other)


@pytest.mark.parametrize("status", [301, 307, 400, 404, 410, 500])
def test_anything_but_a_success_is_no_delivery(oncall: Receiver, status: int) -> None:
    oncall.statuses, oncall.headers = [status], {"Location": "/elsewhere"}
    with pytest.raises(NotDelivered) as caught:
        send(oncall.url)
    assert (caught.value.code, caught.value.status_code) == (f"http_{status}", status)
    assert len(oncall.posts) == 1, "no redirect is followed"


def test_a_receiver_that_never_answers_is_given_up(oncall: Receiver) -> None:
    oncall.stall = True
    with pytest.raises(NotDelivered, match="timeout"):
        send(oncall.url, timeout=0.2)


def test_a_receiver_that_is_not_there_is_named_by_the_error_s_class() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/token-in-the-path"
        with pytest.raises(NotDelivered) as caught:
            send(url)
    assert caught.value.code == "ConnectError"
    assert caught.value.__context__ is None, "httpx's exception holds the URL"


def test_neither_address_nor_secret_is_shown(oncall: Receiver) -> None:
    made = target(f"{oncall.url}/token-in-the-path")
    shown = f"{made!r} {made.config!r} {made.where}"
    assert "token-in-the-path" not in shown
    assert SECRET not in shown
    assert made.where == oncall.url.removesuffix("/hooks/effaced")
