"""API keys: who calls, and what for.

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


class CreatedKey(Answer):
    id: UUID
    name: str
    prefix: str
    """With which its token begins."""

    approvals_needed: int
    scopes: list[str]
    """With those that others include."""

    officer_id: UUID | None
    sandbox: bool
    metadata_keys: list[str]
    created_at: datetime
    last_used_at: datetime | None
    """To the minute."""

    revoked_at: datetime | None
    token: str | None
    """To be sent as `Authorization: Bearer <token>`. Shown this once; null in the answer to a repeated
    call.
    """


class Key(Answer):
    """An API key, without what makes it one."""

    id: UUID
    name: str
    prefix: str
    """With which its token begins."""

    approvals_needed: int
    scopes: list[str]
    """With those that others include."""

    officer_id: UUID | None
    sandbox: bool
    metadata_keys: list[str]
    created_at: datetime
    last_used_at: datetime | None
    """To the minute."""

    revoked_at: datetime | None


class KeyPage(Listed[Key]):
    pass


class OfficerOfKey(Answer):
    """The officer in whose name the key decides."""

    id: UUID
    name: str
    role: str


class Me(Answer):
    """The calling key."""

    id: UUID
    name: str
    prefix: str
    """With which its token begins."""

    approvals_needed: int
    scopes: list[str]
    """With those that others include."""

    officer_id: UUID | None
    sandbox: bool
    metadata_keys: list[str]
    created_at: datetime
    last_used_at: datetime | None
    """To the minute."""

    revoked_at: datetime | None
    officer: OfficerOfKey | None
    calls_per_minute: int | None
    """How many calls it may make; null for any number."""


class KeysApi(Resource[M]):
    """API keys: who calls, and what for."""

    @operation
    def get_me(self) -> Call[Me]:
        """The calling key: what it may do, in whose name, and how often it may call.

        Every API key may call it. Sandbox keys may call it.
        """
        return Call("get_me", "GET", "/api/v1/me", Me)

    @listing
    def list(self, *, after: str | None = None, limit: int | None = None) -> Listing[KeyPage, Key]:
        """All API keys, revoked ones included, in the order of their creation.

        Needs the scope `keys:read`.
        """
        return Listing("list_keys", "GET", "/api/v1/keys", KeyPage, query={"after": after, "limit": limit})

    @operation
    def create(
        self,
        *,
        name: str,
        approvals_needed: int | None = None,
        scopes: Sequence[
            Literal[
                "requests:read",
                "requests:write",
                "operate:read",
                "operate:write",
                "decide:read",
                "decide:approve",
                "decide:attest",
                "audit:read",
                "messages:read",
                "messages:write",
                "keys:read",
                "keys:write",
            ]
        ]
        | None = None,
        officer_id: UUID | str | None = None,
        sandbox: bool | None = None,
        metadata_keys: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[CreatedKey]:
        """Create an API key that may do no more than the calling one.

        It has no scope that the calling key lacks, needs at least as many approvals, and decides for the
        same officer or for none if the calling key has none. The token is shown in this answer only.

        Needs the scope `keys:write`.
        """
        return Call(
            "create_key",
            "POST",
            "/api/v1/keys",
            CreatedKey,
            body={"name": name}
            | given(
                approvals_needed=approvals_needed,
                scopes=scopes,
                officer_id=officer_id,
                sandbox=sandbox,
                metadata_keys=metadata_keys,
            ),
            idempotency_key=idempotency_key,
        )

    @operation
    def get(self, key_id: UUID | str) -> Call[Key]:
        """One API key.

        Needs the scope `keys:read`.
        """
        return Call("get_key", "GET", f"/api/v1/keys/{part(key_id)}", Key)

    @operation
    def revoke(self, key_id: UUID | str, *, idempotency_key: str | None = None) -> Call[Key]:
        """End an API key at once: one that may do no more than the calling key, or the calling key itself.

        Requests that it sent go on.

        Needs the scope `keys:write`.
        """
        return Call(
            "revoke_key", "POST", f"/api/v1/keys/{part(key_id)}/revoke", Key, idempotency_key=idempotency_key
        )
