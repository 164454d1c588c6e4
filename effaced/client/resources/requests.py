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


class Entry(Answer):
    """One external call of a request."""

    id: UUID
    resolver: str
    operation: str
    status: str
    outcome: str | None
    corrections: list[str]
    waits_for: list[str]
    """Resolvers that are called first."""

    attempts: int
    next_attempt_at: datetime | None
    last_error: str | None
    """A class name or code, never a message."""

    evidence: str | None
    """What its success rests on; null while there is none, or while a read-back is due or contradicts it."""

    verification: str | None
    """What a read-back said."""


class EntryList(Listed[Entry]):
    pass


class Event(Answer):
    """One event of the audit trail."""

    id: int
    type: str
    at: datetime
    actor: str
    entry_id: UUID | None
    payload: dict[str, Any]
    """Ids, words, counts and moments; nothing personal."""


class EventPage(Listed[Event]):
    pass


class Links(Answer):
    self: str


class SubjectRef(TypedDict):
    """Whom a request is about."""

    id: str
    """The person's key in the data map's subject table, always as a string. A key of several columns is
    written `a|b`, in the map's order.
    """

    type: NotRequired[str | None]
    """Which of the data map's kinds of people. Without it, the first."""


class TableProgress(Answer):
    done: int
    total: int


class Progress(Answer):
    """How far the work on a person's very many rows is."""

    done: int
    total: int
    tables: dict[str, TableProgress]


class RetryApplied(Answer):
    """Whether the `retry` that was sent holds."""

    applied: bool
    reason: str | None
    """`duplicate`: the calls are those of the earlier request, under its policy."""


class Steps(Answer):
    """A request's external calls. There are none before it is executed."""

    total: int
    done: int


class Request(Answer):
    """A subject request."""

    id: UUID
    ref: str
    kind: str
    status: str
    state: str
    """The status, or `not_verified`: every call has succeeded, but a read-back is due, was given up, or
    found the data.
    """

    received_at: datetime
    due_at: datetime
    executed_at: datetime | None
    completed_at: datetime | None
    closed_at: datetime | None
    corrections: list[str]
    """The names of what is corrected."""

    metadata: dict[str, str]
    steps: Steps
    unverified: int
    """Calls that have succeeded, but whose read-back is due, was given up, or found the data."""

    evidence: dict[str, int] | None
    """How many calls rest on what. With `expand=entries`, else null."""

    verification: dict[str, int] | None
    """How many read-backs said what. With `expand=entries`, else null."""

    progress: Progress | None
    duplicate_of: UUID | None
    """The earlier request that this one ends with, if the same key has sent both."""

    retry: RetryApplied | None = None
    """In the answer to a request that was sent with `retry`, else null."""

    sandbox: bool = False
    """It was sent with a sandbox key and is never executed."""

    entries: list[Entry] | None
    """With `expand=entries`, else null."""

    events: list[Event] | None
    """The last 500 events of its trail, oldest first. With `expand=events`, else null."""

    links: Links


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
