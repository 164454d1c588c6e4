"""What is sent and answered about subject requests. No answer names a person."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from effaced.accounts.metadata import KEY_PATTERN, MOST_KEYS, VALUE_PATTERN
from effaced.api.models import (
    PRINTABLE,
    Answer,
    Body,
    GivenMoment,
    Moment,
    Page,
    PageQuery,
    Query,
    without_fraction,
)
from effaced.audit.notes import LONGEST, code_of_note, problem_of_note
from effaced.model import (
    AttemptOutcome,
    CallRole,
    CorrectionValue,
    Evidence,
    OutboxOperation,
    OutboxStatus,
    RequestKind,
    RequestStatus,
    StepOutcome,
    Verification,
)
from effaced.requests.read import Due, OpenState
from effaced.retries.policy import RETRYABLE, BackoffStrategy, RetryPolicy

MOST_CORRECTIONS, LONGEST_VALUE = 50, 10_000
# No policy has as many fields. Each wrong name is answered with the closest right one, which costs time.
MOST_POLICY_FIELDS, MOST_STATUS_CODES = 50, 500


def _legible(text: str) -> str:
    if said := problem_of_note(text):
        raise PydanticCustomError("value", said, {"code": code_of_note(said)})
    return text


Reason = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST),
    AfterValidator(_legible),
    Field(json_schema_extra={"pattern": r"\S"}),
]
"""What a person says: kept as a note, so that there has to be something to read in it."""


def _policy_schema() -> dict[str, Any]:
    """What the policy itself checks, so that its document is that of the fields."""
    described = RetryPolicy.model_json_schema()
    fields = {
        name: {word: said for word, said in field.items() if word not in ("title", "default", "$ref")}
        for name, field in described["properties"].items()
    }
    fields["backoff_strategy"] = {"type": "string", "enum": list(BackoffStrategy)}
    fields["retry_status_codes"] |= {
        "description": "Any of 408, 429 and 500 to 599.",
        "items": {"type": "integer", "minimum": min(RETRYABLE), "maximum": max(RETRYABLE)},
        "maxItems": MOST_STATUS_CODES,
    }
    return {
        "type": "object",
        "properties": fields,
        "additionalProperties": False,
        "maxProperties": MOST_POLICY_FIELDS,
    }


def _whole_numbers(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: without_fraction(value) for name, value in fields.items()}


# The policy itself says what is wrong with a field. Names are checked before, since it repeats them.
PolicyFields = Annotated[
    dict[Annotated[str, StringConstraints(pattern=r"^[a-z_0-9]{1,64}$")], Any],
    Field(max_length=MOST_POLICY_FIELDS),
    AfterValidator(_whole_numbers),
    WithJsonSchema(_policy_schema()),
]


# --- sent ---


class SubjectRef(Body):
    """Whom a request is about."""

    # Without control characters: no key has them, and PostgreSQL can't even compare a NUL.
    id: Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=PRINTABLE)] = Field(
        description="The person's key in the data map's subject table, always as a string. A key of several"
        " columns is written `a|b`, in the map's order.",
        examples=["4711"],
    )
    type: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = Field(
        default=None,
        description="Which of the data map's kinds of people. Without it, the first.",
    )


def _correction_value(value: object) -> CorrectionValue:
    """A plain value, small enough to be kept. One answer for whatever else it may be."""
    if isinstance(value, str):
        if len(value) > LONGEST_VALUE:
            raise _wrong_value(f"must have at most {LONGEST_VALUE} characters", "too_long")
    elif isinstance(value, int | float) and not abs(value) < 2**63:
        raise _wrong_value("must be a number of at most 64 bits; send a longer one as a text", "too_large")
    elif value is not None and not isinstance(value, bool | int | float):
        raise _wrong_value("must be a text, a number, true, false or null", "wrong_type")
    return value


def _wrong_value(said: str, code: str) -> PydanticCustomError:
    return PydanticCustomError("value", said, {"code": code})


Value = Annotated[
    Any,
    AfterValidator(_correction_value),
    Field(json_schema_extra={"type": ["string", "number", "boolean", "null"], "maxLength": LONGEST_VALUE}),
]
Metadata = Annotated[
    dict[
        Annotated[str, StringConstraints(pattern=KEY_PATTERN)],
        Annotated[str, StringConstraints(pattern=VALUE_PATTERN)],
    ],
    Field(max_length=MOST_KEYS, json_schema_extra={"additionalProperties": False}),
]


Corrections = Annotated[dict[str, Value], Field(min_length=1, max_length=MOST_CORRECTIONS)]


class NewRequest(Body):
    """A subject request. A rectification says what to correct, by category or by `table.column`."""

    kind: Literal["erasure", "rectification"]
    subject: SubjectRef
    corrections: Corrections | None = Field(
        default=None,
        repr=False,
        description="What to correct; only of a rectification, which needs it.",
        examples=[{"email": "new@example.org"}],
    )
    reason: Reason | None = Field(
        default=None, repr=False, description="For officers to read; kept sealed.", examples=["by e-mail"]
    )
    retry: PolicyFields | None = Field(
        default=None,
        description="Fields of the retry policy that differ for this request's calls.",
        examples=[{"max_attempts": 20}],
    )
    metadata: Metadata | None = Field(
        default=None,
        description="Your own references, by the names that the API key declares. Nothing personal: values"
        " are kept in plain, shown to officers, and erased when the request is closed.",
        examples=[{"ticket": "T-4711"}],
    )


class PlanBody(Body):
    """What to plan, as it would be sent as a request."""

    kind: Literal["erasure", "rectification"] = "erasure"
    subject: SubjectRef
    corrections: Corrections | None = Field(
        default=None, repr=False, description="What to correct; only of a rectification, which needs it."
    )


class Expand(StrEnum):
    """What an answer can have besides."""

    ENTRIES = "entries"
    EVENTS = "events"


class ExpandQuery(Query):
    expand: list[Expand] = Field(
        default=[], description="What to include: may be there several times.", max_length=len(Expand)
    )


class RequestQuery(PageQuery, ExpandQuery):
    """Which requests; all that are given have to hold."""

    status: RequestStatus | OpenState | None = Field(default=None, description="As in the answers' `state`.")
    kind: RequestKind | None = None
    open: bool | None = Field(default=None, description="Whether it is not closed yet.")
    due: Due | None = Field(
        default=None, description="`overdue`, or `7d`: open and due today or on one of the next seven days."
    )
    received_from: GivenMoment | None = Field(default=None, description="Received at this moment or later.")
    received_before: GivenMoment | None = Field(default=None, description="Received before this moment.")
    subject_key: Annotated[str, StringConstraints(max_length=90, pattern=PRINTABLE)] | None = Field(
        default=None, description="`key` of a subject: the requests of one person."
    )
    metadata_key: Annotated[str, StringConstraints(pattern=KEY_PATTERN)] | None = Field(
        default=None, description="With `metadata_value`: open requests whose `metadata` has this."
    )
    metadata_value: Annotated[str, StringConstraints(pattern=VALUE_PATTERN)] | None = None
    order: Literal["due_at", "-due_at"] = Field(
        default="due_at", description="`-due_at`: the latest due date first."
    )


# --- answered ---


class Steps(Answer):
    """A request's external calls. There are none before it is executed."""

    total: int
    done: int


class Links(Answer):
    self: str


class TableProgress(Answer):
    done: int
    total: int


class Progress(Answer):
    """How far the work on a person's very many rows is."""

    done: int
    total: int
    tables: dict[str, TableProgress]


class Entry(Answer):
    """One external call of a request."""

    id: UUID
    resolver: str
    operation: OutboxOperation
    status: OutboxStatus
    outcome: StepOutcome | None
    corrections: list[str]
    waits_for: list[str] = Field(description="Resolvers that are called first.")
    attempts: int
    next_attempt_at: Moment | None
    last_error: str | None = Field(description="A class name or code, never a message.")
    evidence: Evidence | None = Field(
        description="What its success rests on; null while there is none, or while a read-back is due or"
        " contradicts it."
    )
    verification: Verification | None = Field(description="What a read-back said.")


class Event(Answer):
    """One event of the audit trail."""

    id: int
    type: str
    at: Moment
    actor: str
    entry_id: UUID | None
    payload: dict[str, Any] = Field(description="Ids, words, counts and moments; nothing personal.")


class RetryApplied(Answer):
    """Whether the `retry` that was sent holds."""

    applied: bool
    reason: Literal["duplicate"] | None = Field(
        description="`duplicate`: the calls are those of the earlier request, under its policy."
    )


class KeptColumns(Answer):
    """Columns of one table that stay for the same reason."""

    columns: list[str]
    basis: str = Field(description="Under which provision, as the data map has it.")
    until: str | None = Field(description="Until when, as the data map has it.")


class PlannedTable(Answer):
    """What an erasure would do in one table of your database."""

    table: str
    action: str
    rows: int = Field(description="How many rows would change; none of them if the action is `retained`.")
    rows_kept: int = Field(description="In how many of the person's rows something stays.")
    kept: list[KeptColumns]
    scrubbed: dict[str, int] = Field(description="Per column of texts, in how many rows something was found.")


class PlannedCorrection(Answer):
    """What a rectification would change in one table of your database."""

    table: str
    columns: list[str]
    rows: int


class PlannedCall(Answer):
    """A system, and whether it would be called."""

    resolver: str
    called: bool
    note: Literal["no_reference", "not_concerned", "unable"] | None = Field(
        description="`no_reference`: it does not know the person. `not_concerned`: it holds nothing of what"
        " is corrected. `unable`: it is called but can't correct; a person has to."
    )


class Plan(Answer):
    """What executing would do now. Nothing was changed, and nobody was called."""

    kind: RequestKind
    datamap_hash: str = Field(description="The data map by which it was planned.")
    rows: int = Field(description="How many rows would change.")
    tables: list[PlannedTable]
    corrections: list[PlannedCorrection]
    calls: list[PlannedCall]


class Request(Answer):
    """A subject request."""

    id: UUID
    ref: str = Field(examples=["ER-7KQ2-M4XP"])
    kind: RequestKind
    status: RequestStatus
    state: RequestStatus | OpenState = Field(
        description="The status, or `not_verified`: every call has succeeded, but a read-back is due, was"
        " given up, or found the data."
    )
    received_at: Moment
    due_at: Moment
    executed_at: Moment | None
    completed_at: Moment | None
    closed_at: Moment | None
    corrections: list[str] = Field(description="The names of what is corrected.")
    metadata: dict[str, str] | None = Field(
        description="Empty once the request is closed. Null in the answer to a repeated call that sent any."
    )
    steps: Steps
    unverified: int = Field(
        description="Calls that have succeeded, but whose read-back is due, was given up, or found the data."
    )
    evidence: dict[Evidence, int] | None = Field(
        description="How many calls rest on what. With `expand=entries`, else null."
    )
    verification: dict[Verification, int] | None = Field(
        description="How many read-backs said what. With `expand=entries`, else null."
    )
    progress: Progress | None
    duplicate_of: UUID | None = Field(
        description="The earlier request that this one ends with, if the same key has sent both."
    )
    retry: RetryApplied | None = Field(
        default=None, description="In the answer to a request that was sent with `retry`, else null."
    )
    sandbox: bool = Field(default=False, description="It was sent with a sandbox key and is never executed.")
    plan: Plan | None = Field(
        default=None, description="What a sandbox request would have done when it was sent; else null."
    )
    entries: list[Entry] | None = Field(description="With `expand=entries`, else null.")
    events: list[Event] | None = Field(
        description="The last 500 events of its trail, oldest first. With `expand=events`, else null."
    )
    links: Links


class RequestPage(Page[Request]):
    pass


class EntryList(Answer):
    data: list[Entry]


class EventPage(Page[Event]):
    pass


class Attempt(Answer):
    """One attempt at an external call."""

    entry_id: UUID
    resolver: str
    role: CallRole | None
    number: int
    at: Moment = Field(description="When the call began.")
    outcome: AttemptOutcome
    status_code: int | None
    latency_ms: int
    error: str | None = Field(description="A class name or code, never a message.")


class AttemptPage(Page[Attempt]):
    pass
