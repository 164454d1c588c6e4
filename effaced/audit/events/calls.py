"""Events of external calls: how they ended, what was verified, who had them tried again."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar, cast
from uuid import UUID

from effaced.audit.events.base import Code, Event, Name, Noted
from effaced.model import Evidence, OutboxOperation, StepOutcome, Verification


class StepSucceeded(Event):
    """`evidence` is what the success rests on; none while a read-back is due or contradicts it.

    Events from before there was this field have none either: `verified_expiry` in them means no more than
    that the vendor found nothing. Whether it was verified, ERASURE_EXTERNAL_VERIFIED says.
    """

    type = "ERASURE_STEP_SUCCEEDED"
    resolver: Name
    outcome: StepOutcome
    attempts: int
    retained_basis: Code | None = None
    evidence: Evidence | None = None


class RectificationStepSucceeded(StepSucceeded):
    type = "RECTIFICATION_STEP_SUCCEEDED"


class StepFailed(Event):
    """The call is abandoned. `superseded_by` is the request that has overtaken it."""

    type = "ERASURE_STEP_FAILED"
    resolver: Name
    error: Code
    code: Code
    attempts: int
    superseded_by: UUID | None = None


class RectificationStepFailed(StepFailed):
    type = "RECTIFICATION_STEP_FAILED"


class StepAttested(Noted):
    """A person says that it was done by hand; the note says how."""

    type = "STEP_ATTESTED"
    operation: OutboxOperation
    resolver: Name
    prior_status: Code
    prior_error: Code | None = None
    api_key_id: UUID | None = None


class AttestationAwaited(Event):
    """The system has no interface: a person has to do it, and to say so, by then."""

    type = "ATTESTATION_AWAITED"
    operation: OutboxOperation
    resolver: Name
    by: datetime


class ReferenceRevealed(Noted):
    """Somebody was shown how a system knows the person, and what is to be corrected there."""

    type = "REFERENCE_REVEALED"
    resolver: Name


class ExpiryScheduled(Event):
    type = "ERASURE_EXPIRY_SCHEDULED"
    resolver: Name
    until: datetime
    slips: int
    prior_attempts: int


class ExternallyVerified(Event):
    type = "ERASURE_EXTERNAL_VERIFIED"
    resolver: Name


class ExternalVerificationFailed(Event):
    type = "ERASURE_EXTERNAL_VERIFICATION_FAILED"
    resolver: Name


class ReadBackGivenUp(Event):
    """The read-back can't be made, and is not tried again without a person. The request stays open."""

    type = "ERASURE_READ_BACK_GIVEN_UP"
    resolver: Name


class Requeued(Noted):
    type = "ERASURE_REQUEUED"
    resolver: Name
    prior_attempts: int
    prior_error: Code | None


class ReadBackRequested(Noted):
    """A person has an erasure made once more and read back."""

    type = "ERASURE_READ_BACK_REQUESTED"
    resolver: Name


class ReadBackAttested(Noted):
    """A person says that the data is gone, whatever the read-back said; the note says how they know."""

    type = "ERASURE_READ_BACK_ATTESTED"
    resolver: Name
    prior: Verification
    api_key_id: UUID | None = None


class ExecutionRequeued(Noted):
    type = "LOCAL_EXECUTION_REQUEUED"


class MessageRequeued(Noted):
    """A person has a message that could not be delivered sent once more."""

    type = "MESSAGE_REQUEUED"
    message_id: UUID
    target: Name


class BulkRequeued(Noted):
    type = "BULK_REQUEUE"
    chosen: int
    requeued: int


class ErasureCompleted(Event):
    """Every call has succeeded. With `unverified` read-backs open the request is not completed yet."""

    type = "ERASURE_COMPLETED"
    operation: OutboxOperation
    unverified: int | None = None


class RectificationCompleted(ErasureCompleted):
    """`superseded` of its calls were overtaken by a later request and not made."""

    type = "RECTIFICATION_COMPLETED"
    superseded: int = 0


class VerificationCompleted(Event):
    """After ERASURE_COMPLETED the last open read-back was confirmed or attested: the request is completed."""

    type = "ERASURE_VERIFICATION_COMPLETED"
    operation: OutboxOperation


class RequestReopened(Event):
    """The request stood as completed although `unverified` of its read-backs are open: it is not."""

    type = "REQUEST_REOPENED"
    unverified: int


# The events of a correction's calls, by those of an erasure's.
_RECTIFICATION: dict[type[Event], type[Event]] = {
    StepSucceeded: RectificationStepSucceeded,
    StepFailed: RectificationStepFailed,
    ErasureCompleted: RectificationCompleted,
}
E = TypeVar("E", bound=Event)


def event_for(operation: OutboxOperation, event: type[E]) -> type[E]:
    """The type of this event for that operation: corrections have types of their own."""
    return cast(type[E], _RECTIFICATION[event]) if operation is OutboxOperation.RECTIFY else event
