"""Breaker states, roles and events, and the row that all processes share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from effaced.core.errors import EffacedError, Problem, Refused, Unavailable
from effaced.core.names import LONGEST, name_problem

RESOLVER = "resolver"
HOST = "host"


class BreakerState(StrEnum):
    """Closed lets calls through, open blocks them, half-open lets a few trial calls through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


# The more restrictive state has the higher number.
RESTRICTION = {BreakerState.CLOSED: 1, BreakerState.HALF_OPEN: 2, BreakerState.OPEN: 3}


class BreakerRole(StrEnum):
    """What a call is for. Each role has trial calls of its own."""

    ERASE = "erase"
    RECTIFY = "rectify"
    VERIFY = "verify"


class BreakerEvent(StrEnum):
    """What moves a breaker from one state to another; also the reason its transition records."""

    CONSECUTIVE_FAILURES = "consecutive_failures"
    ROLLING_FAILURES = "rolling_failures"
    TRIAL_STARTED = "trial_started"
    TRIAL_FAILED = "trial_failed"
    TRIALS_SUCCEEDED = "trials_succeeded"
    FORCED_OPEN = "forced_open"
    FORCED_CLOSED = "forced_closed"
    UNPINNED = "unpinned"
    RESET = "reset"
    DELETED = "deleted"
    KNOWN_OPEN = "known_open"
    KNOWN_HALF_OPEN = "known_half_open"


# The reasons of transitions that record a hold, and that it was ended early. The state stays what it was.
RETRY_AFTER, COOLDOWN_ENDED = "retry_after", "cooldown_ended"


def resolver_name(resolver: str) -> str:
    return f"{RESOLVER}:{resolver}"


def host_name(host: str) -> str:
    """Host names are case-insensitive."""
    return f"{HOST}:{host.lower()}"


def split_name(service_name: str) -> tuple[str, str]:
    """Scope and key: `resolver:crm` is the resolver `crm`. A name without a scope is a host."""
    scope, found, key = service_name.partition(":")
    return (scope, key) if found and scope in (RESOLVER, HOST) else (HOST, service_name)


def canonical_name(service_name: str) -> str:
    """`host:API.example`, or `API.example`, as `host:api.example`."""
    scope, key = split_name(service_name)
    return host_name(key) if scope == HOST else resolver_name(key)


def require_name(service_name: str) -> str:
    """The name, with a host's in lower case. Refused if it is not that of a resolver's or host's breaker."""
    scope, found, key = service_name.partition(":")
    if not found or scope not in (RESOLVER, HOST) or name_problem("", key):
        expected = f"must be resolver:NAME or host:NAME, with 1 to {LONGEST} printable characters as NAME"
        raise Refused(f"A breaker's name {expected}.", problems=[Problem("name", expected, code="malformed")])
    return canonical_name(service_name)


@dataclass(frozen=True, slots=True)
class Slot:
    """One trial call in progress. Numbers are never reused, so no slot is freed twice."""

    number: int
    role: BreakerRole
    since: datetime


@dataclass(frozen=True, slots=True)
class CircuitBreakerStateData:
    """One breaker. Only `machine.py` decides how it changes.

    `retry_at` is when a trial may start. `reset_timeout_s` is the wait in force, None if the policy's.
    `generation` grows with every transition: a result counts only in the generation of its call.
    `version` grows with every write. `pinned` is the state an officer holds it in, until `expires_at`;
    `control_reason` is a code or a note's id. `cooldown_since` is when the cooldown began, so that it keeps
    its length when the clock is set back.
    """

    service_name: str
    state: BreakerState = BreakerState.CLOSED
    failure_count: int = 0
    success_count: int = 0
    opened_at: datetime | None = None
    last_failure_at: datetime | None = None
    retry_at: datetime | None = None
    reset_timeout_s: float | None = None
    slots: tuple[Slot, ...] = ()
    slots_given: int = 0
    recent_failures: tuple[datetime, ...] = ()
    reason: str | None = None
    generation: int = 0
    version: int = 0
    pinned: BreakerState | None = None
    controlled_by: str | None = None
    control_reason: str | None = None
    expires_at: datetime | None = None
    cooldown_since: datetime | None = None
    cooldown_until: datetime | None = None
    cooldown_reason: str | None = None
    updated_at: datetime | None = None

    @property
    def half_open_request_count(self) -> int:
        """Trial calls in progress, in all roles."""
        return len(self.slots)

    @property
    def half_open_window_started_at(self) -> datetime | None:
        return min((slot.since for slot in self.slots), default=None)

    @property
    def manually_controlled(self) -> bool:
        """Whether it was pinned; `is_pinned` says whether the pin still holds."""
        return self.pinned is not None

    def is_pinned(self, now: datetime) -> bool:
        return self.pinned is not None and (self.expires_at is None or self.expires_at > now)

    def is_cooling(self, now: datetime) -> bool:
        return self.cooldown_until is not None and self.cooldown_until > now


@dataclass(frozen=True, slots=True)
class CircuitBreakerCloseAttempt:
    """The row after a success; `did_close` is true only for the caller whose success closed it."""

    state: CircuitBreakerStateData
    did_close: bool


@dataclass(frozen=True, slots=True)
class CircuitBreakerOpenAttempt:
    """The row after a failure; `did_open` is true only for the caller whose failure opened it."""

    state: CircuitBreakerStateData
    did_open: bool


@dataclass(frozen=True, slots=True)
class Transition:
    """A breaker moved from one state to another, or began to hold calls because a vendor asked for it.

    `retry_at` is when it lets a call through again. `actor` is `system`, or who did it. `control_reason` is
    why it is pinned: a code or a note's id.
    """

    service_name: str
    old: BreakerState
    new: BreakerState
    reason: str
    at: datetime
    reset_timeout_s: float | None = None
    retry_at: datetime | None = None
    pinned_until: datetime | None = None
    actor: str = "system"
    generation: int = 0
    control_reason: str | None = None

    @property
    def scope(self) -> str:
        return split_name(self.service_name)[0]

    @property
    def key(self) -> str:
        return split_name(self.service_name)[1]


class BreakerOpenError(EffacedError):
    """The breaker denies this call. Nothing was sent, and no attempt is used up."""

    def __init__(self, service_name: str, *, reason: str, retry_at: datetime, remaining: timedelta) -> None:
        seconds = max(0, round(remaining.total_seconds()))
        super().__init__(f"{service_name} is blocked ({reason}); retry in {seconds} seconds.")
        self.service_name = service_name
        self.reason = reason
        self.retry_at = retry_at
        self.remaining = remaining


class StoreUnavailable(Unavailable):
    """The breaker store does not answer. `error` is the class name of the underlying error."""

    def __init__(self, error: BaseException) -> None:
        self.error = type(error).__name__
        super().__init__(f"The breaker store does not answer ({self.error}).")
