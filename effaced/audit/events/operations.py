"""Events about systems: pauses, alarms, checks, policies and circuit breakers."""

from __future__ import annotations

from datetime import datetime

from effaced.audit.events.base import Code, Event, Name, Noted, Payload
from effaced.model import CheckReason, PolicyKind, PolicyScope, ReadBackProof


class ResolverPaused(Noted):
    """Nothing more is claimed for this resolver; `*` stands for all of them."""

    type = "RESOLVER_PAUSED"
    resolver: Name
    code: Code
    until: datetime | None = None


class ResolverResumed(Noted):
    type = "RESOLVER_RESUMED"
    resolver: Name


class AbsenceSpiked(Event):
    """Within an hour a system said of nearly everybody that they were not there; in the week before not."""

    type = "ABSENCE_SPIKED"
    resolver: Name
    absent: int
    answers: int
    absent_before: int
    answers_before: int


class ResolverChecked(Event):
    """Somebody checked whether a system's read-back tells who is there; told when the result changes.

    `canary_erased`: the check was allowed to erase the canary, and told the system to.
    """

    type = "RESOLVER_CHECKED"
    resolver: Name
    proof: ReadBackProof
    reason: CheckReason
    canary_erased: bool = False


class PolicyField(Payload):
    """One field that somebody changed; None where it is as the files say. A list has many words."""

    field: Code
    was: tuple[Code, ...] | None = None
    now: tuple[Code, ...] | None = None


class PolicyChanged(Noted):
    """From now on these fields differ from what the files say, for whom `scope` and `key` name."""

    type = "POLICY_CHANGED"
    kind: PolicyKind
    scope: PolicyScope
    key: Name
    version: int
    fields: tuple[PolicyField, ...]


class PolicyUndone(PolicyChanged):
    type = "POLICY_UNDONE"


class BreakerForcedOpen(Noted):
    """Somebody lets no call through to a resolver or a host until then."""

    type = "BREAKER_FORCED_OPEN"
    breaker: Name
    previous: Code
    until: datetime | None


class BreakerForcedClosed(Noted):
    """Somebody lets every call through until then, whatever comes of it."""

    type = "BREAKER_FORCED_CLOSED"
    breaker: Name
    previous: Code
    until: datetime | None


class BreakerUnpinned(Noted):
    """Somebody removed a pin. The breaker keeps its state."""

    type = "BREAKER_UNPINNED"
    breaker: Name
    previous: Code


class BreakerReset(Noted):
    type = "BREAKER_RESET"
    breaker: Name
    previous: Code


class BreakerDeleted(Noted):
    """Somebody deleted the breaker of a system that is not configured any more."""

    type = "BREAKER_DELETED"
    breaker: Name
    previous: Code
