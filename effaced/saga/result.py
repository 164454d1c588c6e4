"""What a call came to, what is decided by, and what was decided: three values, nothing done to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from effaced.audit.events import Event
from effaced.breakers.registry import Admission
from effaced.clients import RETRY_AFTER_CAP
from effaced.model import AttemptOutcome, DeadLetterDomain, OutboxStatus, StepOutcome, Verification
from effaced.outbox.entry import Entry
from effaced.resolvers.protocols import AlreadyAbsent, Answer, Erased, Rectified, Retained
from effaced.retries.policy import RetryPolicy


@dataclass(frozen=True, slots=True)
class Result:
    """What a call came to. `error` or `answer`; `verification` is the read-back, if there is one.

    `refused` says that the read-back could not be made because of our credentials. `admission` is how the
    breakers let the call through, `trial` that a half-open one did, to see how it goes.
    """

    entry: Entry
    answer: Answer | Rectified | None = None
    error: BaseException | None = field(default=None, repr=False)
    timed_out: bool = False
    status_code: int | None = None
    latency_ms: int = 0
    verification: Verification | None = None
    refused: bool = False
    retry_at: datetime | None = None
    admission: Admission | None = field(default=None, repr=False, compare=False)

    @property
    def trial(self) -> bool:
        return self.admission is not None and self.admission.trial

    @property
    def retry_after(self) -> timedelta | None:
        """How long the system asked to be left alone."""
        asked = getattr(self.error, "retry_after", None)
        return min(asked, RETRY_AFTER_CAP) if isinstance(asked, timedelta) else None

    @property
    def is_plain_success(self) -> bool:
        """Whether it is over, well, and needs no rule to say so."""
        plain = isinstance(self.answer, Erased | AlreadyAbsent | Retained | Rectified)
        return self.error is None and plain and self.verification is not Verification.DUE


@dataclass(frozen=True, slots=True)
class Rules:
    """What the decision goes by."""

    policy: RetryPolicy = field(default_factory=RetryPolicy)
    idempotent: bool = True

    @property
    def once(self) -> bool:
        """Whether a call must not be made a second time: nobody knows what the first one did."""
        return not self.idempotent and not self.policy.retry_non_idempotent


@dataclass(frozen=True, slots=True)
class Decision:
    """The entry's next state, and what has to be written down with it."""

    result: Result
    status: OutboxStatus
    attempt: AttemptOutcome
    gate: datetime | None = None
    attempts: int = 0
    last_error: str | None = None
    code: str = ""
    outcome: StepOutcome | None = None
    retained_basis: str | None = None
    times_parked: int = 0
    verification: Verification | None = None
    verify_due_at: datetime | None = None
    events: tuple[Event, ...] = ()
    failures: tuple[DeadLetterDomain, ...] = ()
    pauses: bool = False

    @property
    def entry(self) -> Entry:
        return self.result.entry
