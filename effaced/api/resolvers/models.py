"""What is sent and answered about resolvers. No address or credential of a system is in it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from effaced.api.breakers.bodies import OperatorBody
from effaced.api.models import Answer, Moment
from effaced.breakers.model import BreakerState
from effaced.model import CheckReason, OutboxStatus, ReadBackProof
from effaced.triage.pause import MOST_HOURS
from effaced.triage.systems import Ability

# --- sent ---


class PauseBody(OperatorBody):
    hours: Annotated[float, Field(gt=0, le=MOST_HOURS, allow_inf_nan=False)] | None = Field(
        default=None, description="For how long; without it, until it is resumed.", examples=[2]
    )


# --- answered ---


class ResolverLimits(Answer):
    """How hard it may be driven, as configured. null: as the settings say."""

    timeout_s: float
    concurrency: int
    rate_per_second: float | None
    batch_size: int | None
    max_attempts: int | None
    max_age_s: float | None
    backoff_s: float | None
    backoff_cap_s: float | None
    idempotent: bool = Field(description="Whether a call may be made twice without harm.")


class ResolverPause(Answer):
    """Nothing of it is called."""

    resolver: str = Field(description="What was paused: this resolver, or `*` for all of them.")
    since: Moment
    until: Moment | None = Field(description="null: until it is resumed.")
    by: str = Field(description="The actor, as in the audit trail.")
    code: str
    reason: str | None


class BreakerInShort(Answer):
    """What its circuit breaker, or its host's, lets through."""

    name: str
    state: BreakerState
    pinned: bool
    blocked_until: Moment | None
    blocked_by: str | None = Field(description="Why no call is made, as a code.")
    blocked_by_host: str | None = Field(description="The host's breaker, if that is what blocks.")
    last_known: bool = Field(description="The store does not answer, so this is what was known last.")


class ReadBack(Answer):
    """Whether its read-back was seen to tell a person who is there from one who is not."""

    proof: ReadBackProof
    reason: CheckReason
    checked_at: Moment | None


class AbsenceAlarm(Answer):
    """It suddenly said of nearly everybody that they were not there."""

    at: Moment
    absent: int
    answers: int


class LastDay(Answer):
    """Its calls in the last 24 hours, the running one included."""

    calls: int = Field(description="Those that succeeded or failed.")
    success_rate: float | None = Field(description="From 0 to 1; null without calls.")
    p95_latency_ms_estimate: float | None
    last_success_at: Moment | None


class Resolver(Answer):
    """A connected system."""

    resolver: str = Field(description="Its name.")
    configured: bool = Field(description="false: only entries, dead letters or a pause are left of it.")
    kind: str | None = Field(examples=["http"])
    host: str | None = Field(
        description="Whom it calls, if that is one. Systems on one host share its breaker."
    )
    operations: list[Ability] = Field(
        description="`expire`: it deletes nothing on demand, only marks it to go later."
    )
    manual: bool = Field(description="Nothing is called: a person does it, and attests it.")
    reference: str | None = Field(description="The kind of reference by which it knows people.")
    fields: list[str] | None = Field(description="The categories of data that it holds; null: any.")
    after: list[str] = Field(description="Resolvers that have to succeed before this one is called.")
    limits: ResolverLimits | None
    rate_per_second: float | None = Field(description="In force, changes at run time included.")
    entries: dict[OutboxStatus, int] = Field(
        description="Its external calls that are not done, by status. Those done are not counted: too many."
    )
    dead_letters: int = Field(description="Open ones.")
    oldest_due_at: Moment | None = Field(
        description="Since when a call could have been made; also while it is paused or blocked."
    )
    pause: ResolverPause | None
    breaker: BreakerInShort | None = Field(description="null where nothing is called.")
    read_back: ReadBack | None = Field(
        description="null without a read-back: then an erasure rests on the system's word, or a person's."
    )
    absence_alarm: AbsenceAlarm | None = Field(description="Of the last 7 days.")
    last_day: LastDay | None = Field(description="null where nothing is called.")


class ResolverList(Answer):
    data: list[Resolver]


class ResolverPauseState(Answer):
    """What holds for the resolver, or for all of them (`*`), after the call."""

    resolver: str
    pause: ResolverPause | None = Field(description="A resumed resolver may still be paused with all others.")
