"""What officers decide, through API keys that act in their names.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from uuid import UUID

from effaced.client.exchange import Call, given, part
from effaced.client.resources.shared import (
    Entry,
    Request,
)
from effaced.client.runners import M, Resource, operation


class DecisionsApi(Resource[M]):
    """What officers decide, through API keys that act in their names."""

    @operation
    def approve_request(
        self,
        request_id: UUID | str,
        *,
        reason: str,
        datamap_hash: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Request]:
        """Approve a request in the name of the key's officer.

        The rules are the console's: nobody approves what they entered, nor twice, through however many
        keys. The last approval that is needed makes the request `approved`; it is executed before the
        answer leaves, or seconds later.

        Needs the scope `decide:approve`.
        """
        return Call(
            "approve_request",
            "POST",
            f"/api/v1/requests/{part(request_id)}/approve",
            Request,
            body={"reason": reason} | given(datamap_hash=datamap_hash),
            idempotency_key=idempotency_key,
        )

    @operation
    def attest_entry(
        self, entry_id: UUID | str, *, reason: str, idempotency_key: str | None = None
    ) -> Call[Entry]:
        """Attest, in the name of the key's officer, that a call was made by hand, or that the data is gone.

        It counts for a call that was abandoned or waits for a person, and for an erasure that no read-back
        has confirmed. The request completes if this was the last that it waited for.

        Needs the scope `decide:attest`.
        """
        return Call(
            "attest_entry",
            "POST",
            f"/api/v1/entries/{part(entry_id)}/attest",
            Entry,
            body={"reason": reason},
            idempotency_key=idempotency_key,
        )
