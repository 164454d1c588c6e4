"""What is sent and answered about redrives."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field

from effaced.api.dead_letters.filter import FilterFields
from effaced.api.models import Answer, Body, Moment, Page
from effaced.api.requests.models import Reason
from effaced.model import DeadLetterDomain, DeadLetterStatus, RedriveStatus
from effaced.triage.redrive import FASTEST, PER_SECOND

# --- sent ---


class RedriveFilter(FilterFields, Body):
    """Which dead letters, as in a list of them. A redrive takes those that are open."""


class NewRedrive(Body):
    filter: RedriveFilter
    reason: Reason
    force: bool = Field(default=False, description="Also those whose retries are used up.")
    per_second: Annotated[float, Field(ge=0.01, le=FASTEST)] | None = Field(
        default=PER_SECOND, description="How many are called in a second; null: all at once."
    )


# --- answered ---


class ChosenDeadLetters(Answer):
    """The filter by which they were chosen."""

    status: list[DeadLetterStatus]
    domain: DeadLetterDomain | None = None
    resolver: str | None = None
    error: str | None = None
    code: str | None = None
    request_id: UUID | None = None
    assigned_to: UUID | None = None
    unassigned: bool = False
    late: bool = False
    expired: bool = False


class Redrive(Answer):
    """A retry of a set of dead letters, which were chosen when it was created."""

    id: UUID
    status: RedriveStatus
    filter: ChosenDeadLetters
    force: bool
    per_second: float | None
    total: int = Field(description="How many dead letters were chosen, at most 100,000.")
    done: int = Field(description="How many were taken so far.")
    retried: int = Field(description="How many of those are retried; the others were left alone.")
    skipped: dict[str, int] | None = Field(
        description="How many were left alone, by the code that says why. Null in lists."
    )
    created_at: Moment
    created_by: str
    ended_at: Moment | None
    ended_by: str | None


class RedrivePage(Page[Redrive]):
    pass


class RedriveResult(Answer):
    """What became of one of the dead letters."""

    dead_letter_id: UUID
    retried: bool
    code: str | None = Field(description="Why it was left alone; null if it is retried.")
    message: str | None = Field(description="The same for people.")


class RedriveResultPage(Page[RedriveResult]):
    pass
