"""Verifying signed messages: Standard Webhooks, version 1 (HMAC-SHA256)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from effaced.client.errors import WebhookRefused

_PREFIX = "whsec_"
_TIMESTAMP = re.compile(r"[0-9]{1,15}")
_MOST_SIGNATURES = 20


def verify_webhook(
    payload: bytes | str,
    headers: Mapping[str, str],
    secret: str | Sequence[str],
    *,
    tolerance: float = 300.0,
) -> dict[str, Any]:
    """The message, if it is signed with this secret and not older or newer than `tolerance` seconds.

    `payload` is the body as it arrived, before anything has parsed it. Give several secrets while one
    replaces another. Raises WebhookRefused. Keep the ids of messages you have handled (header
    `webhook-id`): one that got no answer is sent again.
    """
    body = payload.encode() if isinstance(payload, str) else bytes(payload)
    given = {name.lower(): value for name, value in headers.items()}
    message_id, sent_at = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if not message_id or not _TIMESTAMP.fullmatch(sent_at):
        raise WebhookRefused("The message has no webhook-id or no webhook-timestamp.")
    if abs(datetime.now(UTC).timestamp() - int(sent_at)) > tolerance:
        raise WebhookRefused("The message is too old, or from the future.")
    content = f"{message_id}.{sent_at}.".encode("utf-8", "surrogatepass") + body
    signatures = _signatures(given.get("webhook-signature", ""))
    known = [_key(each) for each in ([secret] if isinstance(secret, str) else secret)]
    # All of them are compared, so that the time it takes says nothing.
    matches = [
        hmac.compare_digest(hmac.new(key, content, hashlib.sha256).digest(), signature)
        for key in known
        for signature in signatures
    ]
    if not any(matches):
        raise WebhookRefused("No signature of the message holds.")
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise WebhookRefused("The message is signed, but it is no JSON object.")
    return message


def _signatures(header: str) -> list[bytes]:
    """Those of version 1. Others, and what can't be read, are passed over: there may be several."""
    found = []
    for each in header.split()[:_MOST_SIGNATURES]:
        version, _, encoded = each.partition(",")
        if version == "v1":
            try:
                found.append(base64.b64decode(encoded, validate=True))
            except (binascii.Error, ValueError):
                continue
    return found


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise ValueError(f"the secret must be {_PREFIX} and base64, as effaced has shown it")
    return key
