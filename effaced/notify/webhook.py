"""Telling a system: a signed POST after the Standard Webhooks specification.

The signature covers id, time and body, so the receiver knows who sent it, that nobody changed it, and
that it is not an old one played again. The id is the message's: the same at every attempt.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated

import httpx
from pydantic import AfterValidator, SecretStr

from effaced.core import clock
from effaced.core import http_clients as clients
from effaced.model import USUAL_NOTICES, NoticeType
from effaced.notify.guard import AddressNotAllowed, Guard, Resolve, guarded_client, resolve
from effaced.notify.target import Common, NotDelivered, Outgoing, Sent

_PREFIX = "whsec_"


def _usable_url(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    try:
        url = httpx.URL(text)
        usable = url.scheme in ("http", "https") and bool(url.host) and not url.userinfo and not url.fragment
    except (httpx.InvalidURL, ValueError):
        usable = False
    if not usable or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("expected https://host/path, with neither user nor fragment in it")
    return value


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _usable_secret(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not text.startswith(_PREFIX) or not 24 <= len(_key(text)) <= 64:
        raise ValueError(f"expected {_PREFIX} and 24 to 64 random bytes as base64")
    return value


class WebhookConfig(Common):
    # An address may have a token in its path, so it is kept like a secret.
    url: Annotated[SecretStr, AfterValidator(_usable_url)]
    secret: Annotated[SecretStr, AfterValidator(_usable_secret)]


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """Tells a system over HTTP. Any 2xx means that it has the message."""

    name: str
    config: WebhookConfig = field(repr=False)
    kind = "webhook"

    @property
    def events(self) -> frozenset[NoticeType]:
        return self.config.events or USUAL_NOTICES

    @property
    def timeout(self) -> timedelta:
        return timedelta(seconds=self.config.timeout)

    @property
    def where(self) -> str:
        return origin_of(self.config.url.get_secret_value())

    async def send(self, message: Outgoing) -> Sent:
        url, secret = self.config.url.get_secret_value(), self.config.secret.get_secret_value()
        return await _post(clients.http_client(), url, [secret], message, self.timeout)


@dataclass(frozen=True, slots=True)
class RegisteredTarget:
    """A webhook that an API key has registered. The guard says where its messages may go.

    They are signed with every one of `secrets`: a rotated one is good for a while longer.
    """

    name: str
    url: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    events: frozenset[NoticeType]
    timeout: timedelta
    guard: Guard
    resolve: Resolve = resolve
    kind = "webhook"

    @property
    def where(self) -> str:
        return origin_of(self.url)

    async def send(self, message: Outgoing) -> Sent:
        if self.guard.why_not(self.url) is not None:  # the setting has changed since
            raise NotDelivered("address_not_allowed")
        client = guarded_client(self.guard, self.resolve)
        return await _post(client, self.url, self.secrets, message, self.timeout)


def new_secret() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def origin_of(url: str) -> str:
    """The part of an address that is shown: the rest may be a token."""
    parsed = httpx.URL(url)
    return f"{parsed.scheme}://{parsed.netloc.decode('ascii')}"


async def _post(
    client: AbstractAsyncContextManager[httpx.AsyncClient],
    url: str,
    keys: Sequence[str],
    message: Outgoing,
    timeout: timedelta,
) -> Sent:
    """Send and look at the status only: redirects are not followed, the answer's body is not read."""
    body = _body(message)
    headers = _signed(keys, message, body)
    trouble: NotDelivered
    try:
        async with asyncio.timeout(timeout.total_seconds()), client as opened:
            post = opened.build_request("POST", url, content=body, headers=headers, timeout=None)
            response = await opened.send(post, stream=True)
            await response.aclose()
    except TimeoutError:
        trouble = NotDelivered("timeout")
    except AddressNotAllowed:
        trouble = NotDelivered("address_not_allowed")
    except (httpx.HTTPError, httpx.StreamError) as error:
        trouble = NotDelivered(type(error).__name__)
    else:
        if response.is_success:
            return Sent(response.status_code)
        trouble = NotDelivered(
            f"http_{response.status_code}",
            status_code=response.status_code,
            retry_after=clients.retry_after(response.headers.get("Retry-After")),
        )
    # Raised out here: httpx's exceptions hold the request, which must not hang on to ours.
    raise trouble


def _body(message: Outgoing) -> bytes:
    about: dict[str, object] = {
        "request_id": str(message.request_id) if message.request_id else None,
        "ref": message.ref,
        "metadata": dict(message.metadata) or None,
    }
    data = {name: value for name, value in about.items() if value is not None} | dict(message.facts)
    told = {"type": message.type, "timestamp": clock.text(message.at), "data": data}
    return json.dumps(told, separators=(",", ":")).encode()


def _signed(keys: Sequence[str], message: Outgoing, body: bytes) -> dict[str, str]:
    moment = str(int(clock.now().timestamp()))
    content = f"{message.id}.{moment}.".encode() + body
    signatures = [hmac.digest(_key(each), content, hashlib.sha256) for each in keys]
    return {
        "Content-Type": "application/json",
        "webhook-id": str(message.id),
        "webhook-timestamp": moment,
        "webhook-signature": " ".join(f"v1,{base64.b64encode(each).decode()}" for each in signatures),
    }
