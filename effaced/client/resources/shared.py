"""What several resources answer or take.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from effaced.client.answers import Answer


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


class Event(Answer):
    """One event of the audit trail."""

    id: int
    type: str
    at: datetime
    actor: str
    entry_id: UUID | None
    payload: dict[str, Any]
    """Ids, words, counts and moments; nothing personal."""


class KeptColumns(Answer):
    """Columns of one table that stay for the same reason."""

    columns: list[str]
    basis: str
    """Under which provision, as the data map has it."""

    until: str | None
    """Until when, as the data map has it."""


class Links(Answer):
    self: str


class PlannedCall(Answer):
    """A system, and whether it would be called."""

    resolver: str
    called: bool
    note: str | None
    """`no_reference`: it does not know the person. `not_concerned`: it holds nothing of what is corrected.
    `unable`: it is called but can't correct; a person has to.
    """


class PlannedCorrection(Answer):
    """What a rectification would change in one table of your database."""

    table: str
    columns: list[str]
    rows: int


class PlannedTable(Answer):
    """What an erasure would do in one table of your database."""

    table: str
    action: str
    rows: int
    """How many rows would change; none of them if the action is `retained`."""

    rows_kept: int
    """In how many of the person's rows something stays."""

    kept: list[KeptColumns]
    scrubbed: dict[str, int]
    """Per column of texts, in how many rows something was found."""


class Plan(Answer):
    """What executing would do now. Nothing was changed, and nobody was called."""

    kind: str
    datamap_hash: str
    """The data map by which it was planned."""

    rows: int
    """How many rows would change."""

    tables: list[PlannedTable]
    corrections: list[PlannedCorrection]
    calls: list[PlannedCall]


class PolicyInForce(Answer):
    """When a call is tried again, and when no more. Times are in seconds."""

    max_attempts: int
    backoff_strategy: str
    base_delay: float
    multiplier: float
    max_backoff_delay: float
    jitter: bool
    retry_status_codes: list[int]
    timeout: float
    """The total time of a call, with all attempts and the waits between them."""

    retry_non_idempotent: bool


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

    metadata: dict[str, str] | None
    """Empty once the request is closed. Null in the answer to a repeated call that sent any."""

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

    plan: Plan | None = None
    """What a sandbox request would have done when it was sent; else null."""

    entries: list[Entry] | None
    """With `expand=entries`, else null."""

    events: list[Event] | None
    """The last 500 events of its trail, oldest first. With `expand=events`, else null."""

    links: Links


class RetryPolicy(Answer):
    """The policy in force, and what of it was changed at run time."""

    scope: str
    resolver: str | None
    """Of a resolver's policy, else null."""

    request_id: UUID | None
    """Of a request's policy, else null."""

    policy: PolicyInForce
    override: dict[str, Any]
    """The fields that were changed at this scope."""

    version: int
    """Grows with every change; 0 where there was none."""

    changed_at: datetime | None
    changed_by: str | None
