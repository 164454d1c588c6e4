"""What is sent and answered about dead letters. Only notes are free text."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from effaced.api.dead_letters.filter import FilterFields
from effaced.api.models import WHOLE, Answer, Body, Moment, Page, PageQuery, Query
from effaced.api.requests.models import Reason
from effaced.deadletters.archive import MAX_ARCHIVED
from effaced.model import DeadLetterDomain, DeadLetterStatus

MOST_EVICTED = 10_000
Age = Annotated[int, Field(ge=0, le=36_500), WHOLE]
SummaryStatus = Literal["active", "stale", "archived"]


# --- sent ---


class Expand(StrEnum):
    """What an answer can have besides."""

    NOTES = "notes"


class ExpandQuery(Query):
    expand: list[Expand] = Field(default=[], description="What to include.", max_length=len(Expand))


class DeadLetterQuery(FilterFields, PageQuery):
    pass


class StatsQuery(FilterFields, Query):
    """Facets and groups are of these; the totals are of all dead letters."""


class DeadLetterRetryBody(Body):
    reason: Reason
    force: bool = Field(default=False, description="Also if its retries are used up.")


class DeadLetterDecisionBody(Body):
    status: Literal["resolved", "rejected", "permanently_failed", "reviewing", "pending"]
    reason: Reason


class ChangedSubjectBody(Body):
    """Whether the row under the person's key is still theirs."""

    same_person: bool = Field(
        description="`true` has the request executed on the row as it is now; `false` cancels the request."
    )
    reason: Reason


class AssigneeBody(Body):
    assigned_to: UUID | None = Field(description="The id of an officer who is no auditor; null for nobody.")


class DeadLetterNoteBody(Body):
    text: Reason = Field(repr=False, description="Kept sealed, and shown to whoever may see the dead letter.")


class ArchiveBody(Body):
    older_than_days: Age = Field(default=30, description="Settled that long ago, or longer.")

    @property
    def age(self) -> timedelta:
        return timedelta(days=self.older_than_days)


class PurgeQuery(Query):
    older_than_days: Age = Field(description="Archived that long ago, or longer.")


class PurgeBody(Body):
    older_than_days: Age = Field(description="Archived that long ago, or longer.")
    expected: Annotated[int, Field(ge=0, le=2**31 - 1), WHOLE] = Field(
        description="`purgeable` of the preview. If another number would be removed now, none is."
    )
    reason: Reason


class EvictQuery(Query):
    count: Annotated[int, Field(ge=1, le=MOST_EVICTED), WHOLE] = Field(description="How many at most.")
    domain: DeadLetterDomain | None = None


class EvictBody(Body):
    count: Annotated[int, Field(ge=1, le=MOST_EVICTED), WHOLE] = Field(description="How many at most.")
    domain: DeadLetterDomain | None = None
    compress: bool = Field(default=False, description="Leave a summary of each kind.")
    reason: Reason


class SummaryQuery(PageQuery):
    domain: DeadLetterDomain | None = None
    status: SummaryStatus | None = None


class SummaryStatusBody(Body):
    status: Literal["stale", "archived"]


# --- answered ---


class DeadLetterNote(Answer):
    """What somebody wrote about a dead letter."""

    id: UUID
    author: str = Field(description="Who wrote it, as the audit trail has it.")
    at: Moment
    text: str | None = Field(
        description="Null if it was erased since, and in the replayed answer of an Idempotency-Key."
    )


class DeadLetterNoteList(Answer):
    data: list[DeadLetterNote]


class DeadLetterFailure(Answer):
    """The facts of one failure."""

    domain: DeadLetterDomain | None
    error: str | None
    code: str | None
    attempts: int | None
    status_code: int | None
    tables: list[str]


class DeadLetter(Answer):
    """Something that failed for good."""

    id: UUID
    status: DeadLetterStatus
    domain: DeadLetterDomain
    resolver: str | None
    error: str = Field(description="The class of the error, never its message.")
    code: str | None = Field(description="A machine-readable code such as `http_400`.")
    entry_id: UUID | None = Field(
        description="The external call that failed; of the domain `message` its delivery."
    )
    request_id: UUID | None
    attempts: int | None = Field(description="How many there were before it was given up.")
    tables: list[str] = Field(description="In which rows of the person were found that should be gone.")
    failures: list[DeadLetterFailure] = Field(description="Each failure, once there is more than one.")
    retry_count: int
    max_retries: int = Field(description="A retry beyond these needs `force`.")
    marks: dict[str, Any] = Field(
        description="Counters of what was tried: `failed_replays`, `same_error`, `reopened`,"
        " `force_redrive_count`, `previous_total_retries`."
    )
    recommended_action: str | None = Field(description="What to do first.")
    next_action_hint: str | None = Field(description="`expired`: its time has passed undecided.")
    assigned_to: UUID | None = Field(description="An officer.")
    late: bool = Field(description="Whether it has been open longer than its domain allows.")
    created_at: Moment
    updated_at: Moment
    last_retry_at: Moment | None
    expires_at: Moment | None
    resolved_at: Moment | None
    resolved_by: str | None
    resolution: str | None = Field(
        description="How it was settled: `replayed`, `attested`, `superseded`, `cancelled` or `by_hand`."
    )
    archived_at: Moment | None
    notes: list[DeadLetterNote] | None = Field(default=None, description="With `expand=notes`, else null.")


class DeadLetterPage(Page[DeadLetter]):
    pass


class DeadLetterSla(Answer):
    """How long dead letters of a domain may stay open."""

    hours: float
    breached: int = Field(description="How many are late.")


class DeadLetterCleanup(Answer):
    archivable: int = Field(description="How many were settled 30 days ago or longer.")
    purgeable: int = Field(description="How many were archived 90 days ago or longer.")


class DeadLetterFacets(Answer):
    """How many each value would find, with the other filters as they are."""

    status: dict[str, int]
    domain: dict[str, int]
    resolver: dict[str, int]
    error: dict[str, int]


class DeadLetterGroup(Answer):
    """Dead letters that failed at the same place in the same way."""

    domain: DeadLetterDomain
    resolver: str | None
    error: str
    count: int
    oldest_at: Moment


class DeadLetterStats(Answer):
    """Dead letters at a glance."""

    total: int
    active: int = Field(description="Those that are not settled.")
    oldest_active_at: Moment | None
    by_status: dict[DeadLetterStatus, int]
    by_domain: dict[DeadLetterDomain, int] = Field(description="Of those that are not settled.")
    sla: dict[DeadLetterDomain, DeadLetterSla]
    cleanup: DeadLetterCleanup
    facets: DeadLetterFacets
    groups: list[DeadLetterGroup] = Field(description="The 100 biggest.")


class ArchivedDeadLetters(Answer):
    archived: int = Field(description=f"At most {MAX_ARCHIVED:,} at once.")
    left: int = Field(description="How many there are still to archive.")


class PurgePreview(Answer):
    older_than_days: int
    purgeable: int


class PurgedDeadLetters(Answer):
    purged: int


class EvictionPreview(Answer):
    count: int
    evictable: int


class EvictedDeadLetters(Answer):
    evicted: int


class DeadLetterSummary(Answer):
    """What is left of dead letters of one kind that were evicted."""

    id: UUID
    domain: DeadLetterDomain
    error: str
    code: str | None
    count: int
    status: SummaryStatus = Field(description="An `active` one still grows.")
    first_seen: Moment
    last_seen: Moment
    compressed_at: Moment
    stale_at: Moment | None
    archived_at: Moment | None


class DeadLetterSummaryTotals(Answer):
    """Of all summaries, whatever the filter."""

    summaries: int
    dead_letters: int = Field(description="How many they stand for.")
    by_status: dict[SummaryStatus, int]
    by_domain: dict[DeadLetterDomain, int]


class DeadLetterSummaryPage(Page[DeadLetterSummary]):
    totals: DeadLetterSummaryTotals
