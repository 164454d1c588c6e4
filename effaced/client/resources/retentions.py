"""What erasures had to keep, and until when.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal
from uuid import UUID

from effaced.client.answers import Answer, Listed
from effaced.client.exchange import Call, Listing, part
from effaced.client.runners import M, Resource, listing, operation


class EndingProgress(Answer):
    rows: int
    """How many rows are done."""

    total: int | None
    """Of how many; null while nobody has counted them."""


class RetentionAssessment(Answer):
    """What ending it now would do, counted by the data map in force."""

    state: str
    """`due`: something is erased. Nothing is while it is `waiting` (for rows that point at it), `in_use`
    (the person's key is), `not_retained` (by the data map any more: request another erasure) or
    `unreadable` (a key is missing). `table_gone`: it is closed without erasing anything.
    """

    deleted: int
    """Rows that would be deleted."""

    anonymised: int
    """Rows that would be changed."""

    waiting: int
    """Rows that have come due, but others point at them."""


class RetentionReason(Answer):
    """Why something is kept, as the data map in force says it."""

    basis: str
    until: str | None


class Retention(Answer):
    """What an erasure has left in one table, because the data map retains it."""

    id: UUID
    request_id: UUID
    table: str
    state: str
    """`kept`; `due`: the first of it need not be kept any more; `ended`: nothing of it is left, or a later
    erasure of the same person has taken it over.
    """

    reasons: list[RetentionReason]
    rows: int
    undated_rows: int
    """Rows whose end can't be computed, as a date is missing."""

    first_due: date | None
    """The first day on which something of it need not be kept any more."""

    error: str | None
    """Why it could not be ended: a class name, never a message."""

    ending: EndingProgress | None
    """While it is being ended."""

    assessment: RetentionAssessment | None = None
    """In the answer to one open retention; null in lists."""

    created_at: datetime
    checked_at: datetime
    """When its rows were counted."""

    ended_at: datetime | None


class Ending(Answer):
    """How far the end of a request's retentions is."""

    request_id: UUID
    status: str
    """`running`; `failed`: the last attempt was undone, see `error`; `due`: something has come due and
    nobody is ending it; `finished`: nothing is due.
    """

    created_by: str | None
    """Who began it, while it is running."""

    progress: EndingProgress | None
    error: str | None
    """A class name, never a message."""

    retentions: list[Retention]


class RetentionPage(Listed[Retention]):
    pass


class RetentionsApi(Resource[M]):
    """What erasures had to keep, and until when."""

    @listing
    def list(
        self,
        *,
        after: str | None = None,
        limit: int | None = None,
        request_id: UUID | str | None = None,
        table: str | None = None,
        due_before: date | None = None,
        state: Literal["kept", "due", "ended"] | None = None,
        order: Literal["created_at", "first_due"] | None = None,
    ) -> Listing[RetentionPage, Retention]:
        """What erasures have kept: one for each request and table.

        Needs the scope `operate:read`.
        """
        return Listing(
            "list_retentions",
            "GET",
            "/api/v1/retentions",
            RetentionPage,
            query={
                "after": after,
                "limit": limit,
                "request_id": request_id,
                "table": table,
                "due_before": due_before,
                "state": state,
                "order": order,
            },
        )

    @operation
    def get(self, retention_id: UUID | str) -> Call[Retention]:
        """One retention, with what ending it now would do.

        Needs the scope `operate:read`.
        """
        return Call("get_retention", "GET", f"/api/v1/retentions/{part(retention_id)}", Retention)

    @operation
    def create_ending(
        self, *, request_id: UUID | str, reason: str, idempotency_key: str | None = None
    ) -> Call[Ending]:
        """Erase what need not be kept any more of a request.

        The scheduler does it, in short transactions. 409 with `nothing_due`, `already_running`, `in_use`,
        `waiting`, `not_retained` or `unreadable` where nothing could be erased.

        Needs the scope `operate:write`.
        """
        return Call(
            "create_ending",
            "POST",
            "/api/v1/retentions/endings",
            Ending,
            body={"request_id": request_id, "reason": reason},
            idempotency_key=idempotency_key,
        )

    @operation
    def get_ending(self, request_id: UUID | str) -> Call[Ending]:
        """How far the end of a request's retentions is.

        Needs the scope `operate:read`.
        """
        return Call("get_ending", "GET", f"/api/v1/retentions/endings/{part(request_id)}", Ending)
