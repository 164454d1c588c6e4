"""What is sent and answered about retentions. They name tables and requests, never a person."""

from __future__ import annotations

from datetime import date
from typing import Literal
from uuid import UUID

from pydantic import Field

from effaced.api.models import Answer, Body, Moment, Name, Page, PageQuery
from effaced.api.requests.models import Reason
from effaced.requests.retention import RetentionState
from effaced.retention.read import EndingStatus, RetentionPhase

# --- sent ---


class RetentionQuery(PageQuery):
    request_id: UUID | None = None
    table: Name | None = None
    due_before: date | None = Field(
        default=None, description="The first of it need not be kept any more on an earlier day than this."
    )
    state: RetentionPhase | None = None
    order: Literal["created_at", "first_due"] = Field(
        default="created_at",
        description="`first_due`: what ends next comes first; what has ended or has no date is left out.",
    )


class NewEnding(Body):
    request_id: UUID = Field(description="Of this request everything that has come due is erased.")
    reason: Reason


# --- answered ---


class RetentionReason(Answer):
    """Why something is kept, as the data map in force says it."""

    basis: str
    until: str | None = Field(examples=["issued_on + 10 years"])


class RetentionAssessment(Answer):
    """What ending it now would do, counted by the data map in force."""

    state: RetentionState = Field(
        description="`due`: something is erased. Nothing is while it is `waiting` (for rows that point at"
        " it), `in_use` (the person's key is), `not_retained` (by the data map any more: request another"
        " erasure) or `unreadable` (a key is missing). `table_gone`: it is closed without erasing anything."
    )
    deleted: int = Field(description="Rows that would be deleted.")
    anonymised: int = Field(description="Rows that would be changed.")
    waiting: int = Field(description="Rows that have come due, but others point at them.")


class EndingProgress(Answer):
    rows: int = Field(description="How many rows are done.")
    total: int | None = Field(description="Of how many; null while nobody has counted them.")


class Retention(Answer):
    """What an erasure has left in one table, because the data map retains it."""

    id: UUID
    request_id: UUID
    table: str
    state: RetentionPhase = Field(
        description="`kept`; `due`: the first of it need not be kept any more; `ended`: nothing of it is"
        " left, or a later erasure of the same person has taken it over."
    )
    reasons: list[RetentionReason]
    rows: int
    undated_rows: int = Field(description="Rows whose end can't be computed, as a date is missing.")
    first_due: date | None = Field(
        description="The first day on which something of it need not be kept any more."
    )
    error: str | None = Field(description="Why it could not be ended: a class name, never a message.")
    ending: EndingProgress | None = Field(description="While it is being ended.")
    assessment: RetentionAssessment | None = Field(
        default=None, description="In the answer to one open retention; null in lists."
    )
    created_at: Moment
    checked_at: Moment = Field(description="When its rows were counted.")
    ended_at: Moment | None


class RetentionPage(Page[Retention]):
    pass


class Ending(Answer):
    """How far the end of a request's retentions is."""

    request_id: UUID
    status: EndingStatus = Field(
        description="`running`; `failed`: the last attempt was undone, see `error`; `due`: something has come"
        " due and nobody is ending it; `finished`: nothing is due."
    )
    created_by: str | None = Field(description="Who began it, while it is running.")
    progress: EndingProgress | None
    error: str | None = Field(description="A class name, never a message.")
    retentions: list[Retention]
