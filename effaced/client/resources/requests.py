"""What people ask for: to be erased, or corrected.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NotRequired, TypedDict
from uuid import UUID

from effaced.client.answers import Answer, Listed
from effaced.client.exchange import Call, Listing, given, part
from effaced.client.resources.shared import (
    Entry,
    Event,
    Plan,
    Request,
)
from effaced.client.runners import M, Resource, listing, operation


class Attempt(Answer):
    """One attempt at an external call."""

    entry_id: UUID
    resolver: str
    role: str | None
    number: int
    at: datetime
    """When the call began."""

    outcome: str
    status_code: int | None
    latency_ms: int
    error: str | None
    """A class name or code, never a message."""


class AttemptPage(Listed[Attempt]):
    pass


class EntryList(Listed[Entry]):
    pass


class EventPage(Listed[Event]):
    pass


class SubjectRef(TypedDict):
    """Whom a request is about."""

    id: str
    """The person's key in the data map's subject table, always as a string. A key of several columns is
    written `a|b`, in the map's order.
    """

    type: NotRequired[str | None]
    """Which of the data map's kinds of people. Without it, the first."""


class RequestPage(Listed[Request]):
    pass


class RequestsApi(Resource[M]):
    """What people ask for: to be erased, or corrected."""

    @listing
    def list(
        self,
        *,
        expand: Sequence[Literal["entries", "events"]] | None = None,
        after: str | None = None,
        limit: int | None = None,
        status: Literal[
            "received",
            "identity_check",
            "review",
            "approved",
            "on_hold",
            "running",
            "completed",
            "refused",
            "cancelled",
        ]
        | Literal["not_verified"]
        | None = None,
        kind: Literal["erasure", "rectification"] | None = None,
        open: bool | None = None,
        due: Literal["overdue", "7d"] | None = None,
        received_from: datetime | None = None,
        received_before: datetime | None = None,
        subject_key: str | None = None,
        metadata_key: str | None = None,
        metadata_value: str | None = None,
        order: Literal["due_at", "-due_at"] | None = None,
    ) -> Listing[RequestPage, Request]:
        """Requests by due date: those that this key has sent.

        A key with `decide:read` lists everybody's.

        Needs the scope `requests:read` or `decide:read`. Sandbox keys may call it.
        """
        return Listing(
            "list_requests",
            "GET",
            "/api/v1/requests",
            RequestPage,
            query={
                "expand": expand,
                "after": after,
                "limit": limit,
                "status": status,
                "kind": kind,
                "open": open,
                "due": due,
                "received_from": received_from,
                "received_before": received_before,
                "subject_key": subject_key,
                "metadata_key": metadata_key,
                "metadata_value": metadata_value,
                "order": order,
            },
        )

    @operation
    def create(
        self,
        *,
        kind: Literal["erasure", "rectification"],
        subject: SubjectRef,
        corrections: Mapping[str, Any] | None = None,
        reason: str | None = None,
        retry: Mapping[str, Any] | None = None,
        metadata: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Request]:
        """Send a request.

        The answer shows it as it was taken in: one that needs no approval says `approved`, and is executed
        before the answer leaves, or seconds later.

        Needs the scope `requests:write`. Sandbox keys may call it.
        """
        return Call(
            "create_request",
            "POST",
            "/api/v1/requests",
            Request,
            body={"kind": kind, "subject": subject}
            | given(corrections=corrections, reason=reason, retry=retry, metadata=metadata),
            idempotency_key=idempotency_key,
        )

    @operation
    def get(
        self, request_id: UUID | str, *, expand: Sequence[Literal["entries", "events"]] | None = None
    ) -> Call[Request]:
        """One request, by its `id` or its `ref`.

        Needs the scope `requests:read` or `decide:read`. Sandbox keys may call it.
        """
        return Call(
            "get_request", "GET", f"/api/v1/requests/{part(request_id)}", Request, query={"expand": expand}
        )

    @operation
    def get_plan(self, request_id: UUID | str) -> Call[Plan]:
        """What executing the request would do now, counted just now: nothing is changed, nobody is called.

        Of a sandbox request, what it would have done when it was sent.

        Needs the scope `requests:read` or `decide:read`. Sandbox keys may call it.
        """
        return Call("get_request_plan", "GET", f"/api/v1/requests/{part(request_id)}/plan", Plan)

    @operation
    def plan_new_request(
        self,
        *,
        subject: SubjectRef,
        kind: Literal["erasure", "rectification"] | None = None,
        corrections: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Plan]:
        """What a request would do if it were sent and executed now. Nothing is kept, changed or called.

        It is refused as the request would be.

        Needs the scope `requests:write`. Sandbox keys may call it.
        """
        return Call(
            "plan_new_request",
            "POST",
            "/api/v1/requests/plan",
            Plan,
            body={"subject": subject} | given(kind=kind, corrections=corrections),
            idempotency_key=idempotency_key,
        )

    @listing
    def list_entries(self, request_id: UUID | str) -> Listing[EntryList, Entry]:
        """The external calls of a request, by resolver.

        Needs the scope `requests:read` or `decide:read`.
        """
        return Listing("list_entries", "GET", f"/api/v1/requests/{part(request_id)}/entries", EntryList)

    @listing
    def list_events(
        self, request_id: UUID | str, *, after: str | None = None, limit: int | None = None
    ) -> Listing[EventPage, Event]:
        """The audit trail of a request, newest first.

        A key sees nothing there of what other keys have asked.

        Needs the scope `requests:read` or `decide:read`.
        """
        return Listing(
            "list_request_events",
            "GET",
            f"/api/v1/requests/{part(request_id)}/events",
            EventPage,
            query={"after": after, "limit": limit},
        )

    @listing
    def list_attempts(
        self, request_id: UUID | str, *, after: str | None = None, limit: int | None = None
    ) -> Listing[AttemptPage, Attempt]:
        """Every attempt at the external calls of a request, in the order of their results.

        Needs the scope `requests:read` or `decide:read`.
        """
        return Listing(
            "list_request_attempts",
            "GET",
            f"/api/v1/requests/{part(request_id)}/attempts",
            AttemptPage,
            query={"after": after, "limit": limit},
        )
