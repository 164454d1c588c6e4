"""Circuit breakers keep calls from systems that are down. A breaker is named by its resolver (`crm`)
or by scope and name (`resolver:crm`, `host:api.example`).


Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NotRequired, TypedDict
from uuid import UUID

from effaced.client.answers import Answer, Listed
from effaced.client.exchange import Call, Listing, given, part
from effaced.client.runners import M, Resource, listing, operation


class AdviceFigures(Answer):
    """What advice rests on."""

    calls: int
    too_many_requests: int
    retry_afters: int
    median_retry_after_s: float | None
    opens: int
    trials_ended: int
    trials_failed: int


class BreakerPin(Answer):
    """A person holds the breaker in a state."""

    state: str
    by: str | None
    until: datetime | None
    reason: str | None


class TrialBudget(Answer):
    """Trial calls of one role while half-open."""

    limit: int
    free: int


class Breaker(Answer):
    """A circuit breaker now."""

    name: str
    """`resolver:` and a resolver's name, or `host:` and a host's."""

    scope: str
    key: str
    """The name without its scope."""

    resolvers: list[str]
    """Whose calls go through it."""

    state: str
    blocked_until: datetime | None
    blocked_by: str | None
    """Why no call is made, as a code."""

    blocked_by_host: str | None
    """The host's breaker, if that is what blocks."""

    reason: str | None
    """Of its last transition, as a code."""

    failures: int
    successes: int
    trials_under_way: int
    trial_budget: dict[str, TrialBudget]
    opened_at: datetime | None
    last_failure_at: datetime | None
    cooldown_until: datetime | None
    """A vendor asked to be left alone until then."""

    pin: BreakerPin | None
    last_known: bool
    """The store does not answer, so this is what was known last."""


class SuggestedChange(Answer):
    kind: str
    field: str
    old: float | None
    """null where there was no limit."""

    new: float
    why: str


class BreakerAdvice(Answer):
    """What would change for one breaker, or was changed, and why."""

    breaker: str
    """`resolver:` and a resolver's name, or `host:` and a host's."""

    since: datetime
    until: datetime
    seen: AdviceFigures
    changes: list[SuggestedChange]


class BreakerAdviceList(Listed[BreakerAdvice]):
    window_s: float


class BreakerDrift(Answer):
    """A difference between a process and the shared store, and how it was resolved."""

    breaker: str
    """`resolver:` and a resolver's name, or `host:` and a host's."""

    process_state: str
    store_state: str
    process_updated_at: datetime | None
    store_updated_at: datetime | None
    winner: str
    """`l1` is the process, `l2` the store, `both` if they agreed."""

    result: str
    reconciled_at: datetime
    jitter_seconds: float


class ClassifyFields(TypedDict):
    """What a status counts as: single ones, or ranges such as `500-599`."""

    failure_statuses: NotRequired[Sequence[int | str] | None]
    neutral_statuses: NotRequired[Sequence[int | str] | None]


class RollingFields(TypedDict):
    enabled: NotRequired[bool | None]
    window_s: NotRequired[float | None]
    threshold_failures: NotRequired[int | None]
    cooldown_s: NotRequired[float | None]


class RoleFields(TypedDict):
    """What their values may be, the policies themselves say; here it is what they are called."""

    fail_max: NotRequired[int | None]
    reset_timeout_s: NotRequired[float | None]
    max_reset_timeout_s: NotRequired[float | None]
    retry_after_cap_s: NotRequired[float | None]
    success_threshold: NotRequired[int | None]
    trial_calls: NotRequired[int | None]
    stuck_timeout_s: NotRequired[float | None]
    jitter_ms: NotRequired[int | None]
    rolling: NotRequired[RollingFields | None]
    classify: NotRequired[ClassifyFields | None]


class BreakerFields(TypedDict):
    """Fields of a breaker policy, for all roles or under `roles` for some."""

    fail_max: NotRequired[int | None]
    reset_timeout_s: NotRequired[float | None]
    max_reset_timeout_s: NotRequired[float | None]
    retry_after_cap_s: NotRequired[float | None]
    success_threshold: NotRequired[int | None]
    trial_calls: NotRequired[int | None]
    stuck_timeout_s: NotRequired[float | None]
    jitter_ms: NotRequired[int | None]
    rolling: NotRequired[RollingFields | None]
    classify: NotRequired[ClassifyFields | None]
    roles: NotRequired[Mapping[str, RoleFields]]


class BreakerList(Listed[Breaker]):
    pass


class MissedChange(Answer):
    """A change that the shared store did not take."""

    at: datetime
    breaker: str
    """`resolver:` and a resolver's name, or `host:` and a host's."""

    old: str
    new: str
    operation: str
    synced: bool
    """Whether the store has it by now."""


class BreakerOutages(Answer):
    """What a shared store did not take while it was away, and how the differences were resolved."""

    window_s: int
    total_failures: int
    unsynced: int
    first_failure_at: datetime | None
    last_failure_at: datetime | None
    recovered_at: datetime | None
    duration_seconds: float
    errors: dict[str, int]
    """Class names of errors, and how often each was met."""

    timeline: list[MissedChange]
    """The latest 1,000, oldest first."""

    drift: list[BreakerDrift]
    """The latest 1,000, oldest first."""


class Classify(Answer):
    failure_statuses: list[int]
    neutral_statuses: list[int]


class Rolling(Answer):
    enabled: bool
    window_s: float
    threshold_failures: int
    cooldown_s: float


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

    name: str
    """A breaker's name, or `defaults`."""

    roles: dict[str, RolePolicy]
    rate_per_second: float | None
    """null without a limit; a host has none."""

    overrides: dict[str, dict[str, Any]]


class BreakerSummary(Answer):
    """What one breaker did in the window."""

    breaker: str
    """`resolver:` and a resolver's name, or `host:` and a host's."""

    opens: int
    opens_per_hour: float
    held_back_s: float
    calls: int
    calls_not_made_estimate: int
    time_saved_ms_estimate: int
    trials_ended: int
    trials_succeeded: int
    success_after_open: float | None
    """The share of half-open phases that closed it; null without any."""

    reasons: dict[str, int]
    """Why it opened, and how often."""


class BreakerSummaryList(Listed[BreakerSummary]):
    window_s: int


class BreakerTransition(Answer):
    """A breaker moved from one state to another, or began to hold calls because a vendor asked for it."""

    breaker: str
    """`resolver:` and a resolver's name, or `host:` and a host's."""

    scope: str
    key: str
    old: str
    new: str
    reason: str
    at: datetime
    reset_timeout_s: float | None
    retry_at: datetime | None
    pinned_until: datetime | None
    actor: str


class BreakerTransitionPage(Listed[BreakerTransition]):
    pass


class UndonePolicy(Answer):
    """What was gone back to."""

    name: str
    kind: str
    """Whether the policy (`breaker`) or the rate limit was changed last."""

    override: dict[str, Any]
    version: int
    changed_at: datetime


class BreakersApi(Resource[M]):
    """Circuit breakers keep calls from systems that are down. A breaker is named by its resolver (`crm`)
    or by scope and name (`resolver:crm`, `host:api.example`).
    """

    @listing
    def list(self) -> Listing[BreakerList, Breaker]:
        """All breakers: of every resolver, of every host, and those of removed systems that are still stored.

        Needs the scope `operate:read`.
        """
        return Listing("list_breakers", "GET", "/api/v1/breakers", BreakerList)

    @listing
    def list_transitions(
        self, *, after: str | None = None, limit: int | None = None
    ) -> Listing[BreakerTransitionPage, BreakerTransition]:
        """The transitions of all breakers, newest first.

        Needs the scope `operate:read`.
        """
        return Listing(
            "list_transitions",
            "GET",
            "/api/v1/breakers/transitions",
            BreakerTransitionPage,
            query={"after": after, "limit": limit},
        )

    @listing
    def get_summary(self, *, window_s: int | None = None) -> Listing[BreakerSummaryList, BreakerSummary]:
        """What each breaker did: opens per hour, time saved, success after open, and reasons.

        Needs the scope `operate:read`.
        """
        return Listing(
            "get_breaker_summary",
            "GET",
            "/api/v1/breakers/summary",
            BreakerSummaryList,
            query={"window_s": window_s},
        )

    @operation
    def get_outages(self, *, window_s: int | None = None) -> Call[BreakerOutages]:
        """What a shared store did not take while it was away, and how the differences were resolved.

        Only where breakers are in Redis.

        Needs the scope `operate:read`.
        """
        return Call(
            "get_outages", "GET", "/api/v1/breakers/outages", BreakerOutages, query={"window_s": window_s}
        )

    @listing
    def get_advice(self, *, window_s: int | None = None) -> Listing[BreakerAdviceList, BreakerAdvice]:
        """What the figures suggest to change, and why. Changes nothing.

        Needs the scope `operate:read`.
        """
        return Listing(
            "get_advice", "GET", "/api/v1/breakers/advice", BreakerAdviceList, query={"window_s": window_s}
        )

    @operation
    def get(self, breaker: UUID | str) -> Call[Breaker]:
        """One breaker.

        Needs the scope `operate:read`.
        """
        return Call("get_breaker", "GET", f"/api/v1/breakers/{part(breaker)}", Breaker)

    @listing
    def list_breaker_transitions(
        self, breaker: UUID | str, *, after: str | None = None, limit: int | None = None
    ) -> Listing[BreakerTransitionPage, BreakerTransition]:
        """The transitions of one breaker, newest first.

        Needs the scope `operate:read`.
        """
        return Listing(
            "list_breaker_transitions",
            "GET",
            f"/api/v1/breakers/{part(breaker)}/transitions",
            BreakerTransitionPage,
            query={"after": after, "limit": limit},
        )

    @operation
    def get_policy(self, breaker: UUID | str) -> Call[BreakerPolicy]:
        """The policy in force for each role, and the rate limit; `defaults` are those of all.

        Needs the scope `operate:read`.
        """
        return Call("get_breaker_policy", "GET", f"/api/v1/breakers/{part(breaker)}/policy", BreakerPolicy)

    @operation
    def change_policy(
        self,
        breaker: UUID | str,
        *,
        reason: str,
        fields: BreakerFields | None = None,
        rate_per_second: float | None = None,
    ) -> Call[BreakerPolicy]:
        """Change fields of a breaker's policy or a resolver's rate limit; `defaults` changes them for all.

        Needs the scope `operate:write`.
        """
        return Call(
            "change_breaker_policy",
            "PUT",
            f"/api/v1/breakers/{part(breaker)}/policy",
            BreakerPolicy,
            body={"reason": reason} | given(fields=fields, rate_per_second=rate_per_second),
        )

    @operation
    def open(
        self,
        breaker: UUID | str,
        *,
        reason: str,
        seconds: float | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Breaker]:
        """Let no call through for a while. What waits keeps its attempts.

        Needs the scope `operate:write`.
        """
        return Call(
            "open_breaker",
            "POST",
            f"/api/v1/breakers/{part(breaker)}/open",
            Breaker,
            body={"reason": reason} | given(seconds=seconds),
            idempotency_key=idempotency_key,
        )

    @operation
    def close(
        self,
        breaker: UUID | str,
        *,
        reason: str,
        seconds: float | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Breaker]:
        """Let every call through for a while, whatever its outcome.

        Needs the scope `operate:write`.
        """
        return Call(
            "close_breaker",
            "POST",
            f"/api/v1/breakers/{part(breaker)}/close",
            Breaker,
            body={"reason": reason} | given(seconds=seconds),
            idempotency_key=idempotency_key,
        )

    @operation
    def unpin(self, breaker: UUID | str, *, reason: str, idempotency_key: str | None = None) -> Call[Breaker]:
        """Remove a pin and keep the state. 409 without a pin.

        Needs the scope `operate:write`.
        """
        return Call(
            "unpin_breaker",
            "POST",
            f"/api/v1/breakers/{part(breaker)}/unpin",
            Breaker,
            body={"reason": reason},
            idempotency_key=idempotency_key,
        )

    @operation
    def reset(
        self,
        breaker: UUID | str,
        *,
        reason: str,
        include_host: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Breaker]:
        """Close it and clear counters, pin and cooldown.

        `blocked_by_host` of the answer names the host's breaker, if that still blocks.

        Needs the scope `operate:write`.
        """
        return Call(
            "reset_breaker",
            "POST",
            f"/api/v1/breakers/{part(breaker)}/reset",
            Breaker,
            body={"reason": reason} | given(include_host=include_host),
            idempotency_key=idempotency_key,
        )

    @operation
    def delete(
        self, breaker: UUID | str, *, reason: str, idempotency_key: str | None = None
    ) -> Call[BreakerTransition]:
        """Delete the breaker of a system that is not configured any more. 409 while it is.

        It is a POST because it needs a reason, and many clients and proxies drop the body of a DELETE.

        Needs the scope `operate:write`.
        """
        return Call(
            "delete_breaker",
            "POST",
            f"/api/v1/breakers/{part(breaker)}/delete",
            BreakerTransition,
            body={"reason": reason},
            idempotency_key=idempotency_key,
        )

    @operation
    def undo_policy(
        self, breaker: UUID | str, *, reason: str, idempotency_key: str | None = None
    ) -> Call[UndonePolicy]:
        """Go back to before the last change of its policy or rate limit. Undoing twice restores the change.

        Needs the scope `operate:write`.
        """
        return Call(
            "undo_breaker_policy",
            "POST",
            f"/api/v1/breakers/{part(breaker)}/policy/undo",
            UndonePolicy,
            body={"reason": reason},
            idempotency_key=idempotency_key,
        )

    @listing
    def apply_advice(
        self,
        *,
        reason: str,
        breakers: Sequence[str] | None = None,
        window_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> Listing[BreakerAdviceList, BreakerAdvice]:
        """Apply the advice of this moment. The answer says what was changed, and from what.

        Needs the scope `operate:write`.
        """
        return Listing(
            "apply_advice",
            "POST",
            "/api/v1/breakers/advice/apply",
            BreakerAdviceList,
            body={"reason": reason} | given(breakers=breakers, window_s=window_s),
            idempotency_key=idempotency_key,
        )
