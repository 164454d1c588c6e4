"""The types of notices, and what each may hold: ids, resolvers' names, class names, codes, counts.

Built like the audit events: a notice that holds anything else does not come into being, so nothing
personal can leave the house in a message by accident.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from effaced.audit.events import Code, Name, Payload
from effaced.model import Evidence, NoticeType, OutboxOperation, RequestKind, StepOutcome


class Notice(Payload):
    """Base of all notices. `request_id` is the request it is about, if it is about one."""

    type: ClassVar[NoticeType]
    request_id: UUID | None = None


class DeadLetterNotice(Notice):
    """Something waits for a person. `again`: it had been requeued, and has failed once more."""

    dead_letter_id: UUID
    error: Code
    code: Code | None = None
    resolver: Name | None = None
    entry_id: UUID | None = None
    attempts: int
    again: bool = False


class EntryAbandoned(DeadLetterNotice):
    type = NoticeType.ENTRY_ABANDONED


class VerificationFailed(DeadLetterNotice):
    type = NoticeType.VERIFICATION_FAILED


class ExecutionFailed(DeadLetterNotice):
    type = NoticeType.EXECUTION_FAILED


class AttestationOverdue(DeadLetterNotice):
    type = NoticeType.ATTESTATION_OVERDUE


class ResolverPaused(Notice):
    """Nothing more is sent to this resolver (`*`: to any); `code` says why."""

    type = NoticeType.RESOLVER_PAUSED
    resolver: Name
    code: Code
    until: datetime | None = None


class AbsenceSpiked(Notice):
    """Of `answers` people within an hour this resolver said of `absent` that they were not there."""

    type = NoticeType.RESOLVER_ABSENCES
    resolver: Name
    absent: int
    answers: int


class BreakerMoved(Notice):
    """`breaker` is `resolver:crm` or `host:api.example`; `reason` is the event that moved it."""

    breaker: Name
    reason: Code


class BreakerOpened(BreakerMoved):
    """Nothing is sent until a trial may be made, at `retry_at` at the earliest."""

    type = NoticeType.BREAKER_OPENED
    retry_at: datetime | None = None


class BreakerClosed(BreakerMoved):
    type = NoticeType.BREAKER_CLOSED


class RequestCompleted(Notice):
    type = NoticeType.REQUEST_COMPLETED
    operation: OutboxOperation


class RequestNotice(Notice):
    """A stage of a request's life."""

    kind: RequestKind


class RequestReceived(RequestNotice):
    type = NoticeType.REQUEST_RECEIVED
    due_at: datetime


class RequestApproved(RequestNotice):
    """Nothing stands in the way of executing it: the last approval was given, or none is needed."""

    type = NoticeType.REQUEST_APPROVED


class RequestExecuted(RequestNotice):
    """The company's database was changed; external calls follow."""

    type = NoticeType.REQUEST_EXECUTED


class RequestCancelled(RequestNotice):
    """It was closed without being executed."""

    type = NoticeType.REQUEST_CANCELLED


class RequestVerified(RequestNotice):
    """It is completed, and a read-back has confirmed each of its `calls`."""

    type = NoticeType.REQUEST_VERIFIED
    calls: int


class StepNotice(Notice):
    """One external call of a request, after an attempt."""

    entry_id: UUID
    resolver: Name
    operation: OutboxOperation
    attempts: int


class StepSucceeded(StepNotice):
    type = NoticeType.STEP_SUCCEEDED
    outcome: StepOutcome
    evidence: Evidence | None = None


class StepScheduled(StepNotice):
    """The system has named a date, or a person is to do it until then."""

    type = NoticeType.STEP_SCHEDULED
    until: datetime


class StepFailed(StepNotice):
    """It is tried again at `next_attempt_at`."""

    type = NoticeType.STEP_FAILED
    error: Code | None = None
    next_attempt_at: datetime


class StepAbandoned(StepNotice):
    """It was given up. A dead letter waits for a person, of which `entry.abandoned` tells."""

    type = NoticeType.STEP_ABANDONED
    error: Code | None = None
    code: Code | None = None
