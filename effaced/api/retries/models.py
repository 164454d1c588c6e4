"""What is sent and answered about retries."""

from __future__ import annotations

from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import Field, model_validator

from effaced.api.models import Answer, Body, Moment, Name, Query
from effaced.api.requests.models import PolicyFields, Reason
from effaced.model import AttemptOutcome, PolicyScope
from effaced.retries.metrics import DEFAULT_HOURS, MOST_HOURS
from effaced.retries.policy import BackoffStrategy, check_changes


class RetryPolicyBody(Body):
    """The fields that are to differ from now on: exactly these, so that `{}` lets nothing differ."""

    policy: PolicyFields = Field(examples=[{"max_attempts": 12, "jitter": True}])
    reason: Reason | None = Field(default=None, description="Kept as a note.")

    @model_validator(mode="after")
    def _known_and_fitting(self) -> Self:
        # Here, so that a wrong field is named before anybody looks whether there is such a request.
        check_changes(self.policy, under="policy")
        return self


class HoursQuery(Query):
    hours: Annotated[int, Field(ge=1, le=MOST_HOURS)] = Field(
        default=DEFAULT_HOURS, description="How many hours back, the running one included."
    )


class FiguresQuery(HoursQuery):
    resolver: Name | None = Field(default=None, description="Of one resolver; without it, of all.")


class PolicyInForce(Answer):
    """When a call is tried again, and when no more. Times are in seconds."""

    max_attempts: int
    backoff_strategy: BackoffStrategy
    base_delay: float
    multiplier: float
    max_backoff_delay: float
    jitter: bool
    retry_status_codes: list[int]
    timeout: float = Field(
        description="The total time of a call, with all attempts and the waits between them."
    )
    retry_non_idempotent: bool


class RetryPolicy(Answer):
    """The policy in force, and what of it was changed at run time."""

    scope: PolicyScope
    resolver: str | None = Field(description="Of a resolver's policy, else null.")
    request_id: UUID | None = Field(description="Of a request's policy, else null.")
    policy: PolicyInForce
    override: dict[str, Any] = Field(description="The fields that were changed at this scope.")
    version: int = Field(description="Grows with every change; 0 where there was none.")
    changed_at: Moment | None
    changed_by: str | None


class AttemptFigures(Answer):
    """What attempts have come to."""

    attempts: int
    entries: int = Field(description="Different ones within an hour; over several hours their sum.")
    requests: int = Field(description="Like `entries`.")
    retries: int = Field(description="Attempts after the first.")
    outcomes: dict[AttemptOutcome, int]
    success_by_attempt: dict[str, int] = Field(description="How many succeeded at which attempt.")
    failure_by_reason: dict[str, int]
    avg_latency_ms: float | None
    p95_latency_ms_estimate: float | None


class HourFigures(AttemptFigures):
    hour: Moment = Field(description="When the hour began.")


class ResolverFigures(AttemptFigures):
    resolver: str


class RetrySummary(AttemptFigures):
    hours: int
    resolver: str | None
    by_resolver: dict[str, AttemptFigures]
    retention_hours: int = Field(description="How long hours are kept.")


class RetryTimeseries(Answer):
    hours: int
    resolver: str | None
    data: list[HourFigures] = Field(description="Every hour, also an empty one, the oldest first.")


class ResolverFiguresList(Answer):
    hours: int
    data: list[ResolverFigures]
