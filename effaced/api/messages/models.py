"""What is sent and answered about message targets and deliveries."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from effaced.api.models import PRINTABLE, Answer, Body, Moment, Page, PageQuery
from effaced.model import NOTICES, DeliveryStatus, NoticeType
from effaced.notify.guard import LONGEST_URL


def _each_once(events: list[NoticeType]) -> list[NoticeType]:
    if len(set(events)) < len(events):
        raise PydanticCustomError("value", "must have each type once", {"code": "repeated"})
    return events


def _not_test(event: NoticeType) -> NoticeType:
    if event is NoticeType.TEST:
        raise PydanticCustomError("value", "is sent by the operation `test` only", {"code": "not_allowed"})
    return event


# The names of notify.yaml, in the same letters.
TargetName = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=r"^[a-z][a-z0-9_-]*$")]
Url = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_URL, pattern=PRINTABLE)]
EventType = Annotated[
    NoticeType,
    AfterValidator(_not_test),
    WithJsonSchema({"type": "string", "enum": sorted(each.value for each in NOTICES)}),
]
Events = Annotated[
    list[EventType],
    Field(min_length=1, max_length=len(NOTICES), json_schema_extra={"uniqueItems": True}),
    AfterValidator(_each_once),
]


# --- sent ---


class NewMessageTarget(Body):
    """A webhook to be registered."""

    name: TargetName = Field(examples=["shop"])
    url: Url = Field(
        repr=False,
        description="Where to POST: https, a public host, and the port 443 or one from 1,024 up. It is"
        " kept sealed and shown by its origin only.",
        examples=["https://hooks.shop.example/effaced"],
    )
    events: Events = Field(
        description="The types of messages to send.", examples=[["request.completed", "request.executed"]]
    )
    all_requests: bool = Field(
        default=False,
        description="Messages about everybody's requests, not only about those that this key has sent. Needs"
        " the scope `decide:read`.",
    )


class MessageTargetChanges(Body):
    """What to change; what is left out, or null, stays as it is."""

    url: Url | None = Field(default=None, repr=False)
    events: Events | None = None
    enabled: bool | None = Field(
        default=None,
        description="While a target is disabled nothing new is queued for it, and what is queued waits.",
    )


class DeliveryQuery(PageQuery):
    """Which deliveries; all that are given have to hold."""

    status: DeliveryStatus | None = None
    type: NoticeType | None = None
    request_id: UUID | None = Field(default=None, description="Of messages about this request.")


# --- answered ---


class MessageTarget(Answer):
    """A webhook that this API key has registered."""

    id: UUID
    name: str
    origin: str = Field(
        description="Scheme, host and port of the address.", examples=["https://hooks.shop.example"]
    )
    events: list[NoticeType]
    all_requests: bool
    enabled: bool
    created_at: Moment
    disabled_at: Moment | None
    old_secret_signs_until: Moment | None = Field(
        description="After a rotation: until then messages are signed with the old secret as well."
    )


class MessageTargetWithSecret(MessageTarget):
    """A target with its secret, which is shown this once."""

    secret: str | None = Field(
        description="`whsec_` and 32 random bytes as base64, as Standard Webhooks has it. Null when the call"
        " is repeated.",
        examples=["whsec_…"],
    )


class MessageTargetList(Answer):
    data: list[MessageTarget]


class Delivery(Answer):
    """One message for one target."""

    id: UUID
    message_id: UUID = Field(description="The `webhook-id` of every attempt.")
    type: NoticeType
    request_id: UUID | None
    status: DeliveryStatus
    attempts: int = Field(description="Since it was queued, or queued again.")
    created_at: Moment = Field(description="When the message was written.")
    next_attempt_at: Moment | None = Field(description="While it is pending, else null.")
    ended_at: Moment | None
    status_code: int | None = Field(description="Of the last answer.")
    last_error: str | None = Field(description="A class name or code, never a message.")


class DeliveryAttempt(Answer):
    """One attempt at a delivery."""

    at: Moment
    outcome: Literal["delivered", "failed"]
    status_code: int | None
    latency_ms: int
    error: str | None = Field(description="A class name or code, such as `timeout` or `address_not_allowed`.")


class DeliveryWithAttempts(Delivery):
    attempt_log: list[DeliveryAttempt] = Field(description="Every attempt, oldest first.")


class DeliveryPage(Page[Delivery]):
    pass
