"""What failed for good and waits for a decision.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from effaced.client.answers import Answer, Listed
from effaced.client.exchange import Call, Listing, given, part
from effaced.client.runners import M, Resource, listing, operation


class DeadLetterFailure(Answer):
    """The facts of one failure."""

    domain: str | None
    error: str | None
    code: str | None
    attempts: int | None
    status_code: int | None
    tables: list[str]


class DeadLetterNote(Answer):
    """What somebody wrote about a dead letter."""

    id: UUID
    author: str
    """Who wrote it, as the audit trail has it."""

    at: datetime
    text: str | None
    """Null if it was erased since, and in the replayed answer of an Idempotency-Key."""


class DeadLetter(Answer):
    """Something that failed for good."""

    id: UUID
    status: str
    domain: str
    resolver: str | None
    error: str
    """The class of the error, never its message."""

    code: str | None
    """A machine-readable code such as `http_400`."""

    entry_id: UUID | None
    """The external call that failed; of the domain `message` its delivery."""

    request_id: UUID | None
    attempts: int | None
    """How many there were before it was given up."""

    tables: list[str]
    """In which rows of the person were found that should be gone."""

    failures: list[DeadLetterFailure]
    """Each failure, once there is more than one."""

    retry_count: int
    max_retries: int
    """A retry beyond these needs `force`."""

    marks: dict[str, Any]
    """Counters of what was tried: `failed_replays`, `same_error`, `reopened`, `force_redrive_count`,
    `previous_total_retries`.
    """

    recommended_action: str | None
    """What to do first."""

    next_action_hint: str | None
    """`expired`: its time has passed undecided."""

    assigned_to: UUID | None
    """An officer."""

    late: bool
    """Whether it has been open longer than its domain allows."""

    created_at: datetime
    updated_at: datetime
    last_retry_at: datetime | None
    expires_at: datetime | None
    resolved_at: datetime | None
    resolved_by: str | None
    resolution: str | None
    """How it was settled: `replayed`, `attested`, `superseded`, `cancelled` or `by_hand`."""

    archived_at: datetime | None
    notes: list[DeadLetterNote] | None = None
    """With `expand=notes`, else null."""


class DeadLetterCleanup(Answer):
    archivable: int
    """How many were settled 30 days ago or longer."""

    purgeable: int
    """How many were archived 90 days ago or longer."""


class DeadLetterFacets(Answer):
    """How many each value would find, with the other filters as they are."""

    status: dict[str, int]
    domain: dict[str, int]
    resolver: dict[str, int]
    error: dict[str, int]


class DeadLetterGroup(Answer):
    """Dead letters that failed at the same place in the same way."""

    domain: str
    resolver: str | None
    error: str
    count: int
    oldest_at: datetime


class DeadLetterNoteList(Listed[DeadLetterNote]):
    pass


class DeadLetterPage(Listed[DeadLetter]):
    pass


class DeadLetterSla(Answer):
    """How long dead letters of a domain may stay open."""

    hours: float
    breached: int
    """How many are late."""


class DeadLetterStats(Answer):
    """Dead letters at a glance."""

    total: int
    active: int
    """Those that are not settled."""

    oldest_active_at: datetime | None
    by_status: dict[str, int]
    by_domain: dict[str, int]
    """Of those that are not settled."""

    sla: dict[str, DeadLetterSla]
    cleanup: DeadLetterCleanup
    facets: DeadLetterFacets
    groups: list[DeadLetterGroup]
    """The 100 biggest."""


class DeadLettersApi(Resource[M]):
    """What failed for good and waits for a decision."""

    @listing
    def list(
        self,
        *,
        after: str | None = None,
        limit: int | None = None,
        status: Sequence[
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
        | None = None,
        domain: Literal["external_call", "verification", "local_execution", "attestation", "message"]
        | None = None,
        resolver: str | None = None,
        error: str | None = None,
        code: str | None = None,
        request_id: UUID | str | None = None,
        assigned_to: UUID | str | None = None,
        unassigned: bool | None = None,
        late: bool | None = None,
        expired: bool | None = None,
    ) -> Listing[DeadLetterPage, DeadLetter]:
        """Dead letters, oldest first; without `status` those that are open.

        Needs the scope `operate:read`.
        """
        return Listing(
            "list_dead_letters",
            "GET",
            "/api/v1/dead-letters",
            DeadLetterPage,
            query={
                "after": after,
                "limit": limit,
                "status": status,
                "domain": domain,
                "resolver": resolver,
                "error": error,
                "code": code,
                "request_id": request_id,
                "assigned_to": assigned_to,
                "unassigned": unassigned,
                "late": late,
                "expired": expired,
            },
        )

    @operation
    def get_stats(
        self,
        *,
        status: Sequence[
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
        | None = None,
        domain: Literal["external_call", "verification", "local_execution", "attestation", "message"]
        | None = None,
        resolver: str | None = None,
        error: str | None = None,
        code: str | None = None,
        request_id: UUID | str | None = None,
        assigned_to: UUID | str | None = None,
        unassigned: bool | None = None,
        late: bool | None = None,
        expired: bool | None = None,
    ) -> Call[DeadLetterStats]:
        """How many there are, how late they are, and what they have in common.

        Facets and groups are of the filter, everything else of all dead letters.

        Needs the scope `operate:read`.
        """
        return Call(
            "get_dead_letter_stats",
            "GET",
            "/api/v1/dead-letters/stats",
            DeadLetterStats,
            query={
                "status": status,
                "domain": domain,
                "resolver": resolver,
                "error": error,
                "code": code,
                "request_id": request_id,
                "assigned_to": assigned_to,
                "unassigned": unassigned,
                "late": late,
                "expired": expired,
            },
        )

    @operation
    def get(
        self, dead_letter_id: UUID | str, *, expand: Sequence[Literal["notes"]] | None = None
    ) -> Call[DeadLetter]:
        """One dead letter.

        Needs the scope `operate:read`.
        """
        return Call(
            "get_dead_letter",
            "GET",
            f"/api/v1/dead-letters/{part(dead_letter_id)}",
            DeadLetter,
            query={"expand": expand},
        )

    @operation
    def retry(
        self,
        dead_letter_id: UUID | str,
        *,
        reason: str,
        force: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Call[DeadLetter]:
        """Retry the work behind a dead letter.

        409 says with its code why that can't be: `needs_force`, `already_` and its status, `reissue`,
        `reference_gone`, `not_approved` or `not_linked`.

        Needs the scope `operate:write`.
        """
        return Call(
            "retry_dead_letter",
            "POST",
            f"/api/v1/dead-letters/{part(dead_letter_id)}/retry",
            DeadLetter,
            body={"reason": reason} | given(force=force),
            idempotency_key=idempotency_key,
        )

    @operation
    def decide(
        self,
        dead_letter_id: UUID | str,
        *,
        status: Literal["resolved", "rejected", "permanently_failed", "reviewing", "pending"],
        reason: str,
        idempotency_key: str | None = None,
    ) -> Call[DeadLetter]:
        """Resolve, reject or give up a dead letter, review it, or open it again.

        One over work that was not done can't be resolved or rejected: 409 `work_not_done`. One that can't
        have the status after the one that it has: 409 `wrong_state`.

        Needs the scope `operate:write`.
        """
        return Call(
            "decide_dead_letter",
            "POST",
            f"/api/v1/dead-letters/{part(dead_letter_id)}/decision",
            DeadLetter,
            body={"status": status, "reason": reason},
            idempotency_key=idempotency_key,
        )

    @operation
    def decide_subject(
        self,
        dead_letter_id: UUID | str,
        *,
        same_person: bool,
        reason: str,
        idempotency_key: str | None = None,
    ) -> Call[DeadLetter]:
        """Say of a dead letter with the code `subject_changed` whether the row is still the person's.

        409 `nothing_to_decide` for any other.

        Needs the scope `operate:write`.
        """
        return Call(
            "decide_subject",
            "POST",
            f"/api/v1/dead-letters/{part(dead_letter_id)}/subject",
            DeadLetter,
            body={"same_person": same_person, "reason": reason},
            idempotency_key=idempotency_key,
        )

    @operation
    def assign(self, dead_letter_id: UUID | str, *, assigned_to: UUID | str | None) -> Call[DeadLetter]:
        """Assign a dead letter to an officer, or to nobody.

        Needs the scope `operate:write`.
        """
        return Call(
            "assign_dead_letter",
            "PUT",
            f"/api/v1/dead-letters/{part(dead_letter_id)}/assignee",
            DeadLetter,
            body={"assigned_to": assigned_to},
        )

    @listing
    def list_notes(self, dead_letter_id: UUID | str) -> Listing[DeadLetterNoteList, DeadLetterNote]:
        """What people wrote about a dead letter, the reasons of decisions included, oldest first.

        Needs the scope `operate:read`.
        """
        return Listing(
            "list_dead_letter_notes",
            "GET",
            f"/api/v1/dead-letters/{part(dead_letter_id)}/notes",
            DeadLetterNoteList,
        )

    @operation
    def create_note(
        self, dead_letter_id: UUID | str, *, text: str, idempotency_key: str | None = None
    ) -> Call[DeadLetterNote]:
        """Write something down about a dead letter.

        Needs the scope `operate:write`.
        """
        return Call(
            "create_dead_letter_note",
            "POST",
            f"/api/v1/dead-letters/{part(dead_letter_id)}/notes",
            DeadLetterNote,
            body={"text": text},
            idempotency_key=idempotency_key,
        )

    @operation
    def get_note(self, dead_letter_id: UUID | str, note_id: UUID | str) -> Call[DeadLetterNote]:
        """One note about a dead letter.

        Needs the scope `operate:read`.
        """
        return Call(
            "get_dead_letter_note",
            "GET",
            f"/api/v1/dead-letters/{part(dead_letter_id)}/notes/{part(note_id)}",
            DeadLetterNote,
        )
