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
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated

import httpx
from pydantic import AfterValidator, SecretStr

from effaced.core import clock
from effaced.core import http_clients as clients
from effaced.model import NoticeType
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
        return self.config.events or frozenset(NoticeType)

    @property
    def timeout(self) -> timedelta:
        return timedelta(seconds=self.config.timeout)

    @property
    def where(self) -> str:
        url = httpx.URL(self.config.url.get_secret_value())
        return f"{url.scheme}://{url.netloc.decode('ascii')}"

    async def send(self, message: Outgoing) -> Sent:
        """Send and look at the status only: redirects are not followed, the answer's body is not read."""
        body = _body(message)
        headers = _signed(self.config.secret.get_secret_value(), message, body)
        trouble: NotDelivered
        try:
            async with asyncio.timeout(self.config.timeout), clients.http_client() as client:
                url = self.config.url.get_secret_value()
                post = client.build_request("POST", url, content=body, headers=headers, timeout=None)
                response = await client.send(post, stream=True)
                await response.aclose()
        except TimeoutError:
            trouble = NotDelivered("timeout")
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
    about = {"request_id": str(message.request_id) if message.request_id else None, "ref": message.ref}
    data = {name: value for name, value in about.items() if value is not None} | dict(message.facts)
    told = {"type": message.type, "timestamp": message.at.isoformat(), "data": data}
    return json.dumps(told, separators=(",", ":")).encode()


def _signed(secret: str, message: Outgoing, body: bytes) -> dict[str, str]:
    moment = str(int(clock.now().timestamp()))
    signed = hmac.digest(_key(secret), f"{message.id}.{moment}.".encode() + body, hashlib.sha256)
    return {
        "Content-Type": "application/json",
        "webhook-id": str(message.id),
        "webhook-timestamp": moment,
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }
