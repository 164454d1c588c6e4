"""The systems that are called to erase or correct people: what they can do, and how they do.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from effaced.client.answers import Answer, Listed
from effaced.client.exchange import Call, Listing, given, part
from effaced.client.runners import M, Resource, listing, operation


class AbsenceAlarm(Answer):
    """It suddenly said of nearly everybody that they were not there."""

    at: datetime
    absent: int
    answers: int


class BreakerInShort(Answer):
    """What its circuit breaker, or its host's, lets through."""

    name: str
    state: str
    pinned: bool
    blocked_until: datetime | None
    blocked_by: str | None
    """Why no call is made, as a code."""

    blocked_by_host: str | None
    """The host's breaker, if that is what blocks."""

    last_known: bool
    """The store does not answer, so this is what was known last."""


class LastDay(Answer):
    """Its calls in the last 24 hours, the running one included."""

    calls: int
    """Those that succeeded or failed."""

    success_rate: float | None
    """From 0 to 1; null without calls."""

    p95_latency_ms_estimate: float | None
    last_success_at: datetime | None


class ReadBack(Answer):
    """Whether its read-back was seen to tell a person who is there from one who is not."""

    proof: str
    reason: str
    checked_at: datetime | None


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
    idempotent: bool
    """Whether a call may be made twice without harm."""


class ResolverPause(Answer):
    """Nothing of it is called."""

    resolver: str
    """What was paused: this resolver, or `*` for all of them."""

    since: datetime
    until: datetime | None
    """null: until it is resumed."""

    by: str
    """The actor, as in the audit trail."""

    code: str
    reason: str | None


class Resolver(Answer):
    """A connected system."""

    resolver: str
    """Its name."""

    configured: bool
    """false: only entries, dead letters or a pause are left of it."""

    kind: str | None
    host: str | None
    """Whom it calls, if that is one. Systems on one host share its breaker."""

    operations: list[str]
    """`expire`: it deletes nothing on demand, only marks it to go later."""

    manual: bool
    """Nothing is called: a person does it, and attests it."""

    reference: str | None
    """The kind of reference by which it knows people."""

    fields: list[str] | None
    """The categories of data that it holds; null: any."""

    after: list[str]
    """Resolvers that have to succeed before this one is called."""

    limits: ResolverLimits | None
    rate_per_second: float | None
    """In force, changes at run time included."""

    entries: dict[str, int]
    """Its external calls that are not done, by status. Those done are not counted: too many."""

    dead_letters: int
    """Open ones."""

    oldest_due_at: datetime | None
    """Since when a call could have been made; also while it is paused or blocked."""

    pause: ResolverPause | None
    breaker: BreakerInShort | None
    """null where nothing is called."""

    read_back: ReadBack | None
    """null without a read-back: then an erasure rests on the system's word, or a person's."""

    absence_alarm: AbsenceAlarm | None
    """Of the last 7 days."""

    last_day: LastDay | None
    """null where nothing is called."""


class ResolverList(Listed[Resolver]):
    pass


class ResolverPauseState(Answer):
    """What holds for the resolver, or for all of them (`*`), after the call."""

    resolver: str
    pause: ResolverPause | None
    """A resumed resolver may still be paused with all others."""


class ResolversApi(Resource[M]):
    """The systems that are called to erase or correct people: what they can do, and how they do."""

    @listing
    def list(self) -> Listing[ResolverList, Resolver]:
        """Every configured system, then those of which only entries, dead letters or a pause are left.

        Needs the scope `operate:read`.
        """
        return Listing("list_resolvers", "GET", "/api/v1/resolvers", ResolverList)

    @operation
    def get(self, resolver: UUID | str) -> Call[Resolver]:
        """One system.

        Needs the scope `operate:read`.
        """
        return Call("get_resolver", "GET", f"/api/v1/resolvers/{part(resolver)}", Resolver)

    @operation
    def pause(
        self,
        resolver: UUID | str,
        *,
        reason: str,
        hours: float | None = None,
        idempotency_key: str | None = None,
    ) -> Call[ResolverPauseState]:
        """Have nothing of it called for a while, or until it is resumed. `*` stands for all of them.

        Entries keep their attempts, and calls in flight are finished. 409 if it is paused already.

        Needs the scope `operate:write`.
        """
        return Call(
            "pause_resolver",
            "POST",
            f"/api/v1/resolvers/{part(resolver)}/pause",
            ResolverPauseState,
            body={"reason": reason} | given(hours=hours),
            idempotency_key=idempotency_key,
        )

    @operation
    def resume(
        self, resolver: UUID | str, *, reason: str, idempotency_key: str | None = None
    ) -> Call[ResolverPauseState]:
        """Let it be called again. `*` ends the pause of all, and leaves those of single resolvers.

        409 if it is not paused.

        Needs the scope `operate:write`.
        """
        return Call(
            "resume_resolver",
            "POST",
            f"/api/v1/resolvers/{part(resolver)}/resume",
            ResolverPauseState,
            body={"reason": reason},
            idempotency_key=idempotency_key,
        )
