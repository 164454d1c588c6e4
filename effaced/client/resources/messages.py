"""Webhooks to which effaced sends what happens to requests, and what was delivered to them.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

from effaced.client.answers import Answer, Listed
from effaced.client.exchange import Call, Listing, given, part
from effaced.client.runners import M, Resource, listing, operation


class Delivery(Answer):
    """One message for one target."""

    id: UUID
    message_id: UUID
    """The `webhook-id` of every attempt."""

    type: str
    request_id: UUID | None
    status: str
    attempts: int
    """Since it was queued, or queued again."""

    created_at: datetime
    """When the message was written."""

    next_attempt_at: datetime | None
    """While it is pending, else null."""

    ended_at: datetime | None
    status_code: int | None
    """Of the last answer."""

    last_error: str | None
    """A class name or code, never a message."""


class DeliveryAttempt(Answer):
    """One attempt at a delivery."""

    at: datetime
    outcome: str
    status_code: int | None
    latency_ms: int
    error: str | None
    """A class name or code, such as `timeout` or `address_not_allowed`."""


class DeliveryPage(Listed[Delivery]):
    pass


class DeliveryWithAttempts(Answer):
    id: UUID
    message_id: UUID
    """The `webhook-id` of every attempt."""

    type: str
    request_id: UUID | None
    status: str
    attempts: int
    """Since it was queued, or queued again."""

    created_at: datetime
    """When the message was written."""

    next_attempt_at: datetime | None
    """While it is pending, else null."""

    ended_at: datetime | None
    status_code: int | None
    """Of the last answer."""

    last_error: str | None
    """A class name or code, never a message."""

    attempt_log: list[DeliveryAttempt]
    """Every attempt, oldest first."""


class MessageTarget(Answer):
    """A webhook that this API key has registered."""

    id: UUID
    name: str
    origin: str
    """Scheme, host and port of the address."""

    events: list[str]
    all_requests: bool
    enabled: bool
    created_at: datetime
    disabled_at: datetime | None
    old_secret_signs_until: datetime | None
    """After a rotation: until then messages are signed with the old secret as well."""


class MessageTargetList(Listed[MessageTarget]):
    pass


class MessageTargetWithSecret(Answer):
    """A target with its secret, which is shown this once."""

    id: UUID
    name: str
    origin: str
    """Scheme, host and port of the address."""

    events: list[str]
    all_requests: bool
    enabled: bool
    created_at: datetime
    disabled_at: datetime | None
    old_secret_signs_until: datetime | None
    """After a rotation: until then messages are signed with the old secret as well."""

    secret: str | None
    """`whsec_` and 32 random bytes as base64, as Standard Webhooks has it. Null when the call is repeated."""


class MessagesApi(Resource[M]):
    """Webhooks to which effaced sends what happens to requests, and what was delivered to them."""

    @listing
    def list_targets(self) -> Listing[MessageTargetList, MessageTarget]:
        """The webhooks that this key has registered, by name: at most ten.

        Needs the scope `messages:read`.
        """
        return Listing("list_message_targets", "GET", "/api/v1/message-targets", MessageTargetList)

    @operation
    def create_target(
        self,
        *,
        name: str,
        url: str,
        events: Sequence[
            Literal[
                "attestation.overdue",
                "breaker.closed",
                "breaker.opened",
                "entry.abandoned",
                "execution.failed",
                "request.approved",
                "request.cancelled",
                "request.completed",
                "request.executed",
                "request.received",
                "request.verified",
                "resolver.absences",
                "resolver.paused",
                "step.abandoned",
                "step.failed",
                "step.scheduled",
                "step.succeeded",
                "verification.failed",
            ]
        ],
        all_requests: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Call[MessageTargetWithSecret]:
        """Register a webhook.

        It gets messages about the requests that this key has sent, from now on. Types about systems
        (`breaker.*`, `resolver.*`) are sent while the key has the scope `operate:read`. Messages are signed
        as Standard Webhooks has it; the secret is in this answer and in no other.

        Needs the scope `messages:write`.
        """
        return Call(
            "create_message_target",
            "POST",
            "/api/v1/message-targets",
            MessageTargetWithSecret,
            body={"name": name, "url": url, "events": events} | given(all_requests=all_requests),
            idempotency_key=idempotency_key,
        )

    @operation
    def get_target(self, target_id: UUID | str) -> Call[MessageTarget]:
        """One webhook that this key has registered.

        Needs the scope `messages:read`.
        """
        return Call("get_message_target", "GET", f"/api/v1/message-targets/{part(target_id)}", MessageTarget)

    @operation
    def update_target(
        self,
        target_id: UUID | str,
        *,
        url: str | None = None,
        events: Sequence[
            Literal[
                "attestation.overdue",
                "breaker.closed",
                "breaker.opened",
                "entry.abandoned",
                "execution.failed",
                "request.approved",
                "request.cancelled",
                "request.completed",
                "request.executed",
                "request.received",
                "request.verified",
                "resolver.absences",
                "resolver.paused",
                "step.abandoned",
                "step.failed",
                "step.scheduled",
                "step.succeeded",
                "verification.failed",
            ]
        ]
        | None = None,
        enabled: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Call[MessageTarget]:
        """Change the address or the types of a webhook, or disable and enable it.

        Needs the scope `messages:write`.
        """
        return Call(
            "update_message_target",
            "POST",
            f"/api/v1/message-targets/{part(target_id)}",
            MessageTarget,
            body={} | given(url=url, events=events, enabled=enabled),
            idempotency_key=idempotency_key,
        )

    @operation
    def delete_target(self, target_id: UUID | str) -> Call[None]:
        """Delete a webhook, with the log of its deliveries. What is queued for it is not sent.

        Needs the scope `messages:write`.
        """
        return Call(
            "delete_message_target", "DELETE", f"/api/v1/message-targets/{part(target_id)}", type(None)
        )

    @operation
    def rotate_target_secret(
        self, target_id: UUID | str, *, idempotency_key: str | None = None
    ) -> Call[MessageTargetWithSecret]:
        """Give a webhook a new secret.

        For 24 hours messages are signed with the one before it as well, so that a receiver can be changed
        in between. A second rotation within that time ends the first secret.

        Needs the scope `messages:write`.
        """
        return Call(
            "rotate_message_target_secret",
            "POST",
            f"/api/v1/message-targets/{part(target_id)}/rotate-secret",
            MessageTargetWithSecret,
            idempotency_key=idempotency_key,
        )

    @operation
    def test_target(self, target_id: UUID | str, *, idempotency_key: str | None = None) -> Call[Delivery]:
        """Queue a `notify.test` message. It is sent within seconds; the delivery says what came of it.

        Needs the scope `messages:write`.
        """
        return Call(
            "test_message_target",
            "POST",
            f"/api/v1/message-targets/{part(target_id)}/test",
            Delivery,
            idempotency_key=idempotency_key,
        )

    @listing
    def list_deliveries(
        self,
        target_id: UUID | str,
        *,
        after: str | None = None,
        limit: int | None = None,
        status: Literal["pending", "delivered", "undeliverable"] | None = None,
        type: Literal[
            "entry.abandoned",
            "verification.failed",
            "execution.failed",
            "attestation.overdue",
            "resolver.paused",
            "resolver.absences",
            "breaker.opened",
            "breaker.closed",
            "request.completed",
            "request.received",
            "request.approved",
            "request.executed",
            "request.cancelled",
            "request.verified",
            "step.succeeded",
            "step.scheduled",
            "step.failed",
            "step.abandoned",
            "notify.test",
        ]
        | None = None,
        request_id: UUID | str | None = None,
    ) -> Listing[DeliveryPage, Delivery]:
        """What was sent to a webhook, and what is on its way, newest first. Kept for 90 days.

        Needs the scope `messages:read`.
        """
        return Listing(
            "list_deliveries",
            "GET",
            f"/api/v1/message-targets/{part(target_id)}/deliveries",
            DeliveryPage,
            query={"after": after, "limit": limit, "status": status, "type": type, "request_id": request_id},
        )

    @operation
    def get_delivery(self, target_id: UUID | str, delivery_id: UUID | str) -> Call[DeliveryWithAttempts]:
        """One delivery, with every attempt at it.

        Needs the scope `messages:read`.
        """
        return Call(
            "get_delivery",
            "GET",
            f"/api/v1/message-targets/{part(target_id)}/deliveries/{part(delivery_id)}",
            DeliveryWithAttempts,
        )

    @operation
    def replay_delivery(
        self, target_id: UUID | str, delivery_id: UUID | str, *, idempotency_key: str | None = None
    ) -> Call[Delivery]:
        """Send the same message again, under the same `webhook-id`. Refused while it is pending.

        Needs the scope `messages:write`.
        """
        return Call(
            "replay_delivery",
            "POST",
            f"/api/v1/message-targets/{part(target_id)}/deliveries/{part(delivery_id)}/replay",
            Delivery,
            idempotency_key=idempotency_key,
        )
