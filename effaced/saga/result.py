"""Results of calls, the rules for deciding about them, and the decisions: plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from effaced.audit.events import Event
from effaced.breakers.admitted import Admission
from effaced.model import (
    AttemptOutcome,
    DeadLetterDomain,
    FailureKind,
    OutboxStatus,
    StepOutcome,
    Verification,
)
from effaced.outbox.entry import Entry
from effaced.resolvers.protocols import AlreadyAbsent, Answer, Erased, Rectified, Retained
from effaced.retries.policy import RetryPolicy
from effaced.saga.answers import CallFailure

_OVER = (Erased, AlreadyAbsent, Retained, Rectified)


@dataclass(frozen=True, slots=True)
class ReadBack:
    """The result of a read-back; `due` with the `failure` that kept it from saying anything.

    `due` without a failure: nobody was asked yet.
    """

    at: datetime
    seen: Verification = Verification.DUE
    failure: CallFailure | None = None
    latency_ms: int = 0

    @property
    def refused(self) -> bool:
        """Whether it was our credentials."""
        return self.failure is not None and self.failure.kind is FailureKind.CREDENTIALS

    @property
    def was_made(self) -> bool:
        return self.failure is not None or self.seen is not Verification.DUE

    @property
    def attempt(self) -> AttemptOutcome:
        if self.failure is None:
            return AttemptOutcome.SUCCESS
        return AttemptOutcome.TIMEOUT if self.failure.timed_out else AttemptOutcome.FAILURE


class Result(NamedTuple):
    """The result of a call: an `answer` or a `failure`, and the `read_back` after it, if there was one.

    `admission` is how the breakers let the call through; on trial, `retry_at` is when they admit the next.
    """

    entry: Entry
    answer: Answer | Rectified | None = None
    failure: CallFailure | None = None
    latency_ms: int = 0
    cached: bool = False
    read_back: ReadBack | None = None
    retry_at: datetime | None = None
    admission: Admission | None = None

    @property
    def trial(self) -> bool:
        return self.admission is not None and self.admission.trial

    @property
    def status_code(self) -> int | None:
        said = self.failure or self.answer
        return said.status_code if said else None

    @property
    def verification(self) -> Verification | None:
        return self.read_back.seen if self.read_back else None

    @property
    def refused(self) -> bool:
        """Whether the read-back could not be made because of our credentials."""
        return self.read_back is not None and self.read_back.refused

    @property
    def is_plain_success(self) -> bool:
        """Whether the call succeeded and no rule is needed to decide about it."""
        plain = type(self.answer) in _OVER
        return self.failure is None and plain and self.verification is not Verification.DUE


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for deciding about a result."""

    policy: RetryPolicy = field(default_factory=RetryPolicy)
    idempotent: bool = True

    @property
    def must_not_repeat(self) -> bool:
        """Whether a call that may have been made must not be made again: twice does harm."""
        return not self.idempotent and not self.policy.retry_non_idempotent


class EntryUpdate(NamedTuple):
    """What is written into the entry's row. Those of a flush that are equal are written by one statement."""

    status: OutboxStatus
    attempts: int = 0
    times_parked: int = 0
    gate: datetime | None = None
    last_error: str | None = None
    outcome: StepOutcome | None = None
    retained_basis: str | None = None
    verification: Verification | None = None
    verify_due_at: datetime | None = None


class Decision(NamedTuple):
    """The entry's next state, and what has to be written down with it."""

    result: Result
    update: EntryUpdate
    attempt: AttemptOutcome
    events: tuple[Event, ...] = ()
    failures: tuple[DeadLetterDomain, ...] = ()
    code: str = ""
    pauses: bool = False

    @property
    def entry(self) -> Entry:
        return self.result.entry

    @property
    def status(self) -> OutboxStatus:
        return self.update.status
