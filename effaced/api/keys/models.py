"""What is sent and answered about API keys. A token is in one answer only, and never again."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field, StringConstraints

from effaced.accounts.metadata import KEY_PATTERN, MOST_KEYS
from effaced.accounts.scopes import DEFAULT, Scope
from effaced.api.models import PRINTABLE, WHOLE, Answer, Body, Moment, Page
from effaced.model import Role

MetadataKey = Annotated[str, StringConstraints(pattern=KEY_PATTERN)]


class NewKey(Body):
    """A key that may do no more than the one that creates it."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=PRINTABLE)] = Field(
        description="Which system gets it. No two keys have the same name.", examples=["web shop"]
    )
    approvals_needed: Annotated[int, Field(ge=0, le=1), WHOLE] = Field(
        default=1,
        description="1: an officer approves each of its requests. 0: they are executed at once.",
    )
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(Scope))] = Field(
        default=list(DEFAULT), description="What it may be used for. Writing includes reading."
    )
    officer_id: UUID | None = Field(
        default=None,
        description="In whose name it decides: that of the calling key's officer, who is taken without it.",
    )
    sandbox: bool = Field(default=False, description="It tries requests out and executes nothing.")
    metadata_keys: Annotated[list[MetadataKey], Field(max_length=MOST_KEYS)] = Field(
        default=[],
        description="The names of what its requests can carry in `metadata`.",
        examples=[["ticket"]],
    )


class Key(Answer):
    """An API key, without what makes it one."""

    id: UUID
    name: str
    prefix: str = Field(description="With which its token begins.", examples=["eff_kq3vx7ab"])
    approvals_needed: int
    scopes: list[Scope] = Field(description="With those that others include.")
    officer_id: UUID | None
    sandbox: bool
    metadata_keys: list[str]
    created_at: Moment
    last_used_at: Moment | None = Field(description="To the minute.")
    revoked_at: Moment | None


class CreatedKey(Key):
    token: str | None = Field(
        description="To be sent as `Authorization: Bearer <token>`. Shown this once; null in the answer to a"
        " repeated call."
    )


class KeyPage(Page[Key]):
    pass


class OfficerOfKey(Answer):
    """The officer in whose name the key decides."""

    id: UUID
    name: str
    role: Role


class Me(Key):
    """The calling key."""

    officer: OfficerOfKey | None
    calls_per_minute: int | None = Field(description="How many calls it may make; null for any number.")
