"""What every target has, whatever its kind: a name, the notices it wants, and a way to send them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Protocol
from uuid import UUID

from pydantic import AfterValidator, Field

from effaced.core.errors import EffacedError
from effaced.core.strict import Strict
from effaced.model import NoticeType

TEST = NoticeType.TEST


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message on its way out. `facts` are the notice's fields, `ref` the request's short name.

    `metadata` is what the sender of the request has attached to it, until the request is closed.
    """

    id: UUID
    type: str
    at: datetime
    facts: Mapping[str, Any]
    request_id: UUID | None = None
    ref: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class About:
    """What a message says of the request that it is about, as it is when the message is sent."""

    ref: str
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sent:
    """The target has accepted the message. `code` is a reservation, such as recipients that were refused."""

    status_code: int | None = None
    code: str | None = None


class NotDelivered(EffacedError):
    """The target has not accepted the message, or not in time. Class name and code are stored."""

    def __init__(
        self, code: str, *, status_code: int | None = None, retry_after: timedelta | None = None
    ) -> None:
        super().__init__(f"The message was not delivered ({code}).")
        self.code = code
        self.status_code = status_code
        self.retry_after = retry_after


def _no_test(events: frozenset[NoticeType]) -> frozenset[NoticeType]:
    if TEST in events:
        raise ValueError(f"{TEST} is sent by `effaced notify test` only")
    return events


class Common(Strict):
    """What every target says. With no `events` a target gets what its kind is for."""

    kind: str
    events: Annotated[frozenset[NoticeType], Field(min_length=1), AfterValidator(_no_test)] | None = None
    timeout: float = Field(default=10, gt=0, le=60, allow_inf_nan=False)


class Target(Protocol):
    """A place that messages are sent to."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def events(self) -> frozenset[NoticeType]: ...

    @property
    def timeout(self) -> timedelta: ...

    @property
    def where(self) -> str:
        """Its address for display, without secrets."""
        ...

    async def send(self, message: Outgoing) -> Sent:
        """Hand the message over, or raise NotDelivered. May be called again with the same one."""
        ...
