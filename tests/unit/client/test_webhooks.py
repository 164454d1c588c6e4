"""Signed messages: what the reference implementation signs is accepted, and nothing else."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks.webhooks import Webhook

from effaced.client import WebhookRefused, verify_webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + "QUJD" * 8
BODY = json.dumps({"type": "request.completed", "data": {"ref": "ER-7KQ2-M4XP"}})


def signed(
    secret: str = SECRET, body: str = BODY, *, age: float = 0, message: str = "msg_1"
) -> dict[str, str]:
    at = datetime.now(UTC) - timedelta(seconds=age)
    return {
        "Webhook-Id": message,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(message, at, body),
    }


@pytest.mark.parametrize("payload", [BODY, BODY.encode(), bytearray(BODY.encode())])
def test_accepts_what_the_reference_implementation_signs(payload: str | bytes) -> None:
    assert verify_webhook(payload, signed(), SECRET)["data"] == {"ref": "ER-7KQ2-M4XP"}


def test_one_of_several_signatures_is_enough() -> None:
    headers = signed()
    headers["webhook-signature"] = " ".join(
        ["v1a,AAAA", "v1,not base64!", signed(OTHER)["webhook-signature"], headers["webhook-signature"]]
    )
    assert verify_webhook(BODY, headers, SECRET)


def test_takes_several_secrets_while_one_replaces_another() -> None:
    assert verify_webhook(BODY, signed(OTHER), [SECRET, OTHER])


@pytest.mark.parametrize("age", [301, -301, 10**9])
def test_refuses_what_is_too_old_or_from_the_future(age: float) -> None:
    with pytest.raises(WebhookRefused, match="too old"):
        verify_webhook(BODY, signed(age=age), SECRET)


def test_the_tolerance_can_be_chosen() -> None:
    assert verify_webhook(BODY, signed(age=900), SECRET, tolerance=1_000)


@pytest.mark.parametrize(
    "changed",
    [
        {"Webhook-Id": "msg_2"},
        {"Webhook-Id": ""},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": "-5"},
        {"webhook-timestamp": "٣"},
        {"webhook-timestamp": "9" * 15},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1,ü"},
        {"webhook-signature": "v2,AAAA"},
    ],
    ids=repr,
)
def test_refuses_other_headers(changed: dict[str, str]) -> None:
    with pytest.raises(WebhookRefused):
        verify_webhook(BODY, signed() | changed, SECRET)


def test_refuses_a_changed_body_and_another_secret() -> None:
    for body, secret in ((BODY + " ", SECRET), (BODY, OTHER)):
        with pytest.raises(WebhookRefused, match="signature"):
            verify_webhook(body, signed(), secret)


@pytest.mark.parametrize("body", ["", "no json", "[]", "5", pytest.param("[" * 200_000, id="deep")])
def test_refuses_what_is_signed_but_no_message(body: str) -> None:
    with pytest.raises(WebhookRefused, match="no JSON object"):
        verify_webhook(body, signed(body=body), SECRET)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_ü", "whsec_!!"])
def test_a_secret_that_is_none_is_the_callers_mistake_and_accepts_nothing(secret: str) -> None:
    with pytest.raises(ValueError, match="secret"):
        verify_webhook(BODY, signed(), secret)
