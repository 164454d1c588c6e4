"""Retrying a whole set of dead letters.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NotRequired, TypedDict
from uuid import UUID

from effaced.client.answers import Answer, Listed
from effaced.client.exchange import NOT_GIVEN, Call, Listing, NotGiven, given, part, stated
from effaced.client.runners import M, Resource, listing, operation


class ChosenDeadLetters(Answer):
    """The filter by which they were chosen."""

    status: list[str]
    domain: str | None = None
    resolver: str | None = None
    error: str | None = None
    code: str | None = None
    request_id: UUID | None = None
    assigned_to: UUID | None = None
    unassigned: bool = False
    late: bool = False
    expired: bool = False


class RedriveFilter(TypedDict):
    """Which dead letters, as in a list of them. A redrive takes those that are open."""

    status: NotRequired[
        Sequence[
            Literal[
                "pending",
                "reviewing",
                "replaying",
                "resolved",
                "requires_review",
                "permanently_failed",
                "rejected",
                "archived",
                "all",
            ]
        ]
    ]
    """Any of these; `all` takes every one. Without it the open ones: `pending`, `reviewing`,
    `requires_review`.
    """

    domain: NotRequired[
        Literal["external_call", "verification", "local_execution", "attestation", "message"] | None
    ]
    """What failed."""

    resolver: NotRequired[str | None]
    error: NotRequired[str | None]
    """The error class, exactly."""

    code: NotRequired[str | None]
    """The error code, exactly."""

    request_id: NotRequired[UUID | str | None]
    assigned_to: NotRequired[UUID | str | None]
    """The id of an officer."""

    unassigned: NotRequired[bool]
    """Only those that are assigned to nobody."""

    late: NotRequired[bool]
    """Only those that have been open longer than they may."""

    expired: NotRequired[bool]
    """Only those whose `expires_at` has passed."""


class Redrive(Answer):
    """A retry of a set of dead letters, which were chosen when it was created."""

    id: UUID
    status: str
    filter: ChosenDeadLetters
    force: bool
    per_second: float | None
    total: int
    """How many dead letters were chosen, at most 100,000."""

    done: int
    """How many were taken so far."""

    retried: int
    """How many of those are retried; the others were left alone."""

    skipped: dict[str, int] | None
    """How many were left alone, by the code that says why. Null in lists."""

    created_at: datetime
    created_by: str
    ended_at: datetime | None
    ended_by: str | None


class RedrivePage(Listed[Redrive]):
    pass


class RedriveResult(Answer):
    """What became of one of the dead letters."""

    dead_letter_id: UUID
    retried: bool
    code: str | None
    """Why it was left alone; null if it is retried."""

    message: str | None
    """The same for people."""


class RedriveResultPage(Listed[RedriveResult]):
    pass


class RedrivesApi(Resource[M]):
    """Retrying a whole set of dead letters."""

    @listing
    def list(self, *, after: str | None = None, limit: int | None = None) -> Listing[RedrivePage, Redrive]:
        """Redrives, newest first. They are kept for 30 days after their end.

        Needs the scope `operate:read`.
        """
        return Listing(
            "list_redrives", "GET", "/api/v1/redrives", RedrivePage, query={"after": after, "limit": limit}
        )

    @operation
    def create(
        self,
        *,
        filter: RedriveFilter,
        reason: str,
        force: bool | None = None,
        per_second: float | NotGiven | None = NOT_GIVEN,
        idempotency_key: str | None = None,
    ) -> Call[Redrive]:
        """Retry all open dead letters of a filter, at a limited rate.

        They are chosen now; the scheduler carries it out. One that fits none is refused with
        `nothing_matches`.

        Needs the scope `operate:write`.
        """
        return Call(
            "create_redrive",
            "POST",
            "/api/v1/redrives",
            Redrive,
            body={"filter": filter, "reason": reason} | given(force=force) | stated(per_second=per_second),
            idempotency_key=idempotency_key,
        )

    @operation
    def get(self, redrive_id: UUID | str) -> Call[Redrive]:
        """One redrive, and how far it is.

        Needs the scope `operate:read`.
        """
        return Call("get_redrive", "GET", f"/api/v1/redrives/{part(redrive_id)}", Redrive)

    @listing
    def list_results(
        self, redrive_id: UUID | str, *, after: str | None = None, limit: int | None = None
    ) -> Listing[RedriveResultPage, RedriveResult]:
        """What became of each dead letter so far, in the order in which they are taken.

        Needs the scope `operate:read`.
        """
        return Listing(
            "list_redrive_results",
            "GET",
            f"/api/v1/redrives/{part(redrive_id)}/results",
            RedriveResultPage,
            query={"after": after, "limit": limit},
        )

    @operation
    def cancel(self, redrive_id: UUID | str, *, idempotency_key: str | None = None) -> Call[Redrive]:
        """End a redrive where it is. What is retried already stays so.

        409 `ended` if it has ended.

        Needs the scope `operate:write`.
        """
        return Call(
            "cancel_redrive",
            "POST",
            f"/api/v1/redrives/{part(redrive_id)}/cancel",
            Redrive,
            idempotency_key=idempotency_key,
        )
