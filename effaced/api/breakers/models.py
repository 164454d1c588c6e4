"""What is answered about circuit breakers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from effaced.api.models import Answer, Moment, Page
from effaced.breakers.layered.drift import DriftReconciliationResult
from effaced.breakers.model import BreakerRole, BreakerState
from effaced.model import PolicyKind

Scope = Literal["resolver", "host"]
_NAME = "`resolver:` and a resolver's name, or `host:` and a host's."


# --- answered: state ---


class TrialBudget(Answer):
    """Trial calls of one role while half-open."""

    limit: int
    free: int


class BreakerPin(Answer):
    """A person holds the breaker in a state."""

    state: BreakerState
    by: str | None
    until: Moment | None
    reason: str | None


class Breaker(Answer):
    """A circuit breaker now."""

    name: str = Field(description=_NAME, examples=["resolver:crm"])
    scope: Scope
    key: str = Field(description="The name without its scope.")
    resolvers: list[str] = Field(description="Whose calls go through it.")
    state: BreakerState
    blocked_until: Moment | None
    blocked_by: str | None = Field(description="Why no call is made, as a code.")
    blocked_by_host: str | None = Field(description="The host's breaker, if that is what blocks.")
    reason: str | None = Field(description="Of its last transition, as a code.")
    failures: int
    successes: int
    trials_under_way: int
    trial_budget: dict[BreakerRole, TrialBudget]
    opened_at: Moment | None
    last_failure_at: Moment | None
    cooldown_until: Moment | None = Field(description="A vendor asked to be left alone until then.")
    pin: BreakerPin | None
    last_known: bool = Field(description="The store does not answer, so this is what was known last.")


class BreakerList(Answer):
    data: list[Breaker]


class BreakerTransition(Answer):
    """A breaker moved from one state to another, or began to hold calls because a vendor asked for it."""

    breaker: str = Field(description=_NAME)
    scope: Scope
    key: str
    old: BreakerState
    new: BreakerState
    reason: str
    at: Moment
    reset_timeout_s: float | None
    retry_at: Moment | None
    pinned_until: Moment | None
    actor: str


class BreakerTransitionPage(Page[BreakerTransition]):
    pass


# --- answered: policy ---


class Rolling(Answer):
    enabled: bool
    window_s: float
    threshold_failures: int
    cooldown_s: float


class Classify(Answer):
    failure_statuses: list[int]
    neutral_statuses: list[int]


class RolePolicy(Answer):
    """The policy in force for calls of one role."""

    fail_max: int
    reset_timeout_s: float
    max_reset_timeout_s: float
    retry_after_cap_s: float
    success_threshold: int
    trial_calls: int
    stuck_timeout_s: float
    jitter_ms: int
    rolling: Rolling
    classify: Classify


class BreakerPolicy(Answer):
    """The policy and rate limit in force, and what of both was changed at run time."""

    name: str = Field(description="A breaker's name, or `defaults`.")
    roles: dict[BreakerRole, RolePolicy]
    rate_per_second: float | None = Field(description="null without a limit; a host has none.")
    overrides: dict[Literal["breaker", "rate"], dict[str, Any]]


class UndonePolicy(Answer):
    """What was gone back to."""

    name: str
    kind: PolicyKind = Field(description="Whether the policy (`breaker`) or the rate limit was changed last.")
    override: dict[str, Any]
    version: int
    changed_at: Moment


# --- answered: figures ---


class BreakerSummary(Answer):
    """What one breaker did in the window."""

    breaker: str = Field(description=_NAME)
    opens: int
    opens_per_hour: float
    held_back_s: float
    calls: int
    calls_not_made_estimate: int
    time_saved_ms_estimate: int
    trials_ended: int
    trials_succeeded: int
    success_after_open: float | None = Field(
        description="The share of half-open phases that closed it; null without any."
    )
    reasons: dict[str, int] = Field(description="Why it opened, and how often.")


class BreakerSummaryList(Answer):
    window_s: int
    data: list[BreakerSummary]


class MissedChange(Answer):
    """A change that the shared store did not take."""

    at: Moment
    breaker: str = Field(description=_NAME)
    old: BreakerState
    new: BreakerState
    operation: str
    synced: bool = Field(description="Whether the store has it by now.")


class BreakerDrift(Answer):
    """A difference between a process and the shared store, and how it was resolved."""

    breaker: str = Field(description=_NAME)
    process_state: BreakerState
    store_state: BreakerState
    process_updated_at: Moment | None
    store_updated_at: Moment | None
    winner: Literal["l1", "l2", "both"] = Field(
        description="`l1` is the process, `l2` the store, `both` if they agreed."
    )
    result: DriftReconciliationResult
    reconciled_at: Moment
    jitter_seconds: float


class BreakerOutages(Answer):
    """What a shared store did not take while it was away, and how the differences were resolved."""

    window_s: int
    total_failures: int
    unsynced: int
    first_failure_at: Moment | None
    last_failure_at: Moment | None
    recovered_at: Moment | None
    duration_seconds: float
    errors: dict[str, int] = Field(description="Class names of errors, and how often each was met.")
    timeline: list[MissedChange] = Field(description="The latest 1,000, oldest first.")
    drift: list[BreakerDrift] = Field(description="The latest 1,000, oldest first.")


class AdviceFigures(Answer):
    """What advice rests on."""

    calls: int
    too_many_requests: int
    retry_afters: int
    median_retry_after_s: float | None
    opens: int
    trials_ended: int
    trials_failed: int


class SuggestedChange(Answer):
    kind: PolicyKind
    field: str
    old: float | None = Field(description="null where there was no limit.")
    new: float
    why: str


class BreakerAdvice(Answer):
    """What would change for one breaker, or was changed, and why."""

    breaker: str = Field(description=_NAME)
    since: Moment
    until: Moment
    seen: AdviceFigures
    changes: list[SuggestedChange]


class BreakerAdviceList(Answer):
    window_s: float
    data: list[BreakerAdvice]
