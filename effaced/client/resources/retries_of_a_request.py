"""When the calls of one request are tried again.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from effaced.client.exchange import Call, given, part
from effaced.client.resources.shared import (
    RetryPolicy,
)
from effaced.client.runners import M, Resource, operation


class RetriesOfARequestApi(Resource[M]):
    """When the calls of one request are tried again."""

    @operation
    def get_request_retry_policy(self, request_id: UUID | str) -> Call[RetryPolicy]:
        """The policy of one request that this key has sent.

        Needs the scope `requests:write`.
        """
        return Call(
            "get_request_retry_policy", "GET", f"/api/v1/requests/{part(request_id)}/retry", RetryPolicy
        )

    @operation
    def set_request_retry_policy(
        self, request_id: UUID | str, *, policy: Mapping[str, Any], reason: str | None = None
    ) -> Call[RetryPolicy]:
        """Say which fields differ for one open request that this key has sent.

        `retry_non_idempotent` can only be set with `operate:write`; without it, a change leaves it as it
        is.

        Needs the scope `requests:write`.
        """
        return Call(
            "set_request_retry_policy",
            "PUT",
            f"/api/v1/requests/{part(request_id)}/retry",
            RetryPolicy,
            body={"policy": policy} | given(reason=reason),
        )

    @operation
    def delete_request_retry_policy(self, request_id: UUID | str) -> Call[RetryPolicy]:
        """Let nothing differ for one request that this key has sent.

        Needs the scope `requests:write`.
        """
        return Call(
            "delete_request_retry_policy", "DELETE", f"/api/v1/requests/{part(request_id)}/retry", RetryPolicy
        )
