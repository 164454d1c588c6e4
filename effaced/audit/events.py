"""The types of events and what each may hold: ids, words, counts, class names, moments.

A payload that holds anything else does not come into being, so nothing personal can reach the trail by
accident. Names of people, typed reasons and error messages have no field to go to.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, TypeVar, Union, cast, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel, ConfigDict, StringConstraints

from effaced.model import (
    CheckReason,
    DeadLetterDomain,
    DeadLetterStatus,
    Evidence,
    OutboxOperation,
    PolicyKind,
    PolicyScope,
    ReadBackProof,
    RequestKind,
    Role,
    StepOutcome,
    Verification,
)

# A machine word: resolver, class, table or error code. Has no room for an e-mail address or a sentence.
Code = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:\-]{1,255}$")]
# A table's, column's or system's name comes from the company's own configuration.
Name = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f]{1,255}$")]
# A legal basis is written by the company in its data map, not by or about a person.
Basis = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^@]*$")]
HexDigest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]

_ALLOWED = (UUID, int, bool, datetime)
TYPES: dict[str, type[Event]] = {}


class Payload(BaseModel):
    """What may be kept and told: a subclass with a field that has room for more can't be declared."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        for name, field in cls.model_fields.items():
            if not _permitted(field.annotation, field.metadata):
                raise TypeError(f"{cls.__name__}.{name}: a payload can't hold a {field.annotation}")


class Event(Payload):
    """Base of all events. Subclasses register themselves under their `type`."""

    type: ClassVar[str]

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if "type" in cls.__dict__:
            TYPES[cls.type] = cls


def _permitted(annotation: Any, metadata: list[Any]) -> bool:
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return _permitted(inner, more)
    if get_origin(annotation) in (tuple, Union, UnionType):
        return all(_permitted(part, metadata) for part in get_args(annotation) if part is not Ellipsis)
    if annotation is str:
        return any(getattr(rule, "pattern", None) for rule in metadata)
    if not isinstance(annotation, type):
        return False
    return annotation is NoneType or issubclass(annotation, (StrEnum, Payload, *_ALLOWED))


class _Noted(Event):
    """An event with a reason that a person typed, kept in a note."""

    note_id: UUID | None = None
    note_hmac: HexDigest | None = None


# --- requests ---


class RequestReceived(Event):
    type = "REQUEST_RECEIVED"
    kind: RequestKind
    approvals_needed: int
    due_at: datetime
    datamap_hash: HexDigest


class RequestRepeated(Event):
    """The same person asked again while this request was open. That asking has a request of its own."""

    type = "REQUEST_REPEATED"


class RequestDuplicate(Event):
    """The person has an open erasure already; this request ends with it.

    Neither this event nor the next two name the other request: its API key may be another one, and whoever
    sent this request may export its trail.
    """

    type = "REQUEST_DUPLICATE"


class DuplicateCompleted(Event):
    """The erasure that this request was a duplicate of is completed, and this request with it."""

    type = "REQUEST_DUPLICATE_COMPLETED"


class DuplicateReleased(Event):
    """The erasure that this request was a duplicate of does not answer it: it needs a review of its own."""

    type = "REQUEST_DUPLICATE_RELEASED"


class RequestCancelled(_Noted):
    """An officer closed the request before it was executed."""

    type = "REQUEST_CANCELLED"


class SubjectConfirmed(_Noted):
    """An officer confirmed that the row under the person's key, as it was then, is the person's."""

    type = "SUBJECT_CONFIRMED"


class RequestApproved(_Noted):
    type = "REQUEST_APPROVED"
    approvals_given: int
    approvals_needed: int


class LocalTableErased(Event):
    table: Name
    action: Code
    rows: int


class CellRetained(Event):
    table: Name
    column: Name
    basis: Basis
    until: Name | None = None
    first_due: Code | None = None
    rows: int | None = None
    """In how many rows; not known where the erasure has cut them off from the person."""


class TextScrubbed(Event):
    table: Name
    column: Name
    rows: int


class LocalTableKept(Payload):
    """A table in which something of the person is retained; `rows` is None where that is not counted."""

    table: Name
    rows: int | None = None


class LocalErasureExecuted(Event):
    """The company's own database was changed, in the same transaction as this event."""

    type = "LOCAL_ERASURE_EXECUTED"
    datamap_hash: HexDigest
    tables: tuple[LocalTableErased, ...]
    retained: tuple[CellRetained, ...]
    scrubbed: tuple[TextScrubbed, ...] = ()
    external_calls: int
    without_reference: tuple[Name, ...]


class LocalErasureBegun(Event):
    """A person with very many rows is worked off in batches; the execution follows. Rows that are to go."""

    type = "LOCAL_ERASURE_BEGUN"
    datamap_hash: HexDigest
    tables: tuple[LocalTableErased, ...]


class LocalVerified(Event):
    """Reading back found nothing of the person that had to go, in as many tables. `kept`: what stays."""

    type = "LOCAL_VERIFIED"
    tables: int
    kept: tuple[LocalTableKept, ...] = ()


class LocalColumnCorrected(Event):
    table: Name
    columns: tuple[Name, ...]
    rows: int


class LocalRectificationExecuted(Event):
    """The company's own database was corrected, in the same transaction as this event. No value is here."""

    type = "LOCAL_RECTIFICATION_EXECUTED"
    datamap_hash: HexDigest
    fields: tuple[Name, ...]
    tables: tuple[LocalColumnCorrected, ...]
    external_calls: int
    without_reference: tuple[Name, ...]
    not_concerned: tuple[Name, ...]


class RequestSuperseded(Event):
    """The person was erased before this correction was carried out: there is nothing left to correct."""

    type = "REQUEST_SUPERSEDED"
    by: UUID


class LocalExecutionFailed(Event):
    type = "LOCAL_EXECUTION_FAILED"
    error: Code
    attempts: int
    tables: tuple[Name, ...] = ()


class RetentionEnded(_Noted):
    """What was kept of the person in a table need not be any more: `rows` were deleted or anonymised.

    Very many rows are told of by several events, one for each transaction.
    With action `closed` nothing was left to erase, and whose it was is forgotten.
    """

    type = "RETENTION_ENDED"
    table: Name
    action: Code
    rows: int
    datamap_hash: HexDigest


class RetentionFailed(Event):
    """What has come due could not be erased; what is told of before it stays erased."""

    type = "RETENTION_FAILED"
    error: Code


# --- external calls ---


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


class StepAttested(_Noted):
    """A person says that it was done by hand; the note says how."""

    type = "STEP_ATTESTED"
    operation: OutboxOperation
    resolver: Name
    prior_status: Code
    prior_error: Code | None = None


class AttestationAwaited(Event):
    """The system has no interface: a person has to do it, and to say so, by then."""

    type = "ATTESTATION_AWAITED"
    operation: OutboxOperation
    resolver: Name
    by: datetime


class ReferenceRevealed(_Noted):
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


class Requeued(_Noted):
    type = "ERASURE_REQUEUED"
    resolver: Name
    prior_attempts: int
    prior_error: Code | None


class ReadBackRequested(_Noted):
    """A person has an erasure made once more and read back."""

    type = "ERASURE_READ_BACK_REQUESTED"
    resolver: Name


class ReadBackAttested(_Noted):
    """A person says that the data is gone, whatever the read-back said; the note says how they know."""

    type = "ERASURE_READ_BACK_ATTESTED"
    resolver: Name
    prior: Verification


class ExecutionRequeued(_Noted):
    type = "LOCAL_EXECUTION_REQUEUED"


class MessageRequeued(_Noted):
    """A person has a message that could not be delivered sent once more."""

    type = "MESSAGE_REQUEUED"
    message_id: UUID
    target: Name


class BulkRequeued(_Noted):
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


# --- flow ---


class ResolverPaused(_Noted):
    """Nothing more is claimed for this resolver; `*` stands for all of them."""

    type = "RESOLVER_PAUSED"
    resolver: Name
    code: Code
    until: datetime | None = None


class ResolverResumed(_Noted):
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


class PolicyChanged(_Noted):
    """From now on these fields differ from what the files say, for whom `scope` and `key` name."""

    type = "POLICY_CHANGED"
    kind: PolicyKind
    scope: PolicyScope
    key: Name
    version: int
    fields: tuple[PolicyField, ...]


class PolicyUndone(PolicyChanged):
    type = "POLICY_UNDONE"


class BreakerForcedOpen(_Noted):
    """Somebody lets no call through to a resolver or a host until then."""

    type = "BREAKER_FORCED_OPEN"
    breaker: Name
    previous: Code
    until: datetime | None


class BreakerForcedClosed(_Noted):
    """Somebody lets every call through until then, whatever comes of it."""

    type = "BREAKER_FORCED_CLOSED"
    breaker: Name
    previous: Code
    until: datetime | None


class BreakerUnpinned(_Noted):
    """Somebody removed a pin. The breaker keeps its state."""

    type = "BREAKER_UNPINNED"
    breaker: Name
    previous: Code


class BreakerReset(_Noted):
    type = "BREAKER_RESET"
    breaker: Name
    previous: Code


class BreakerDeleted(_Noted):
    """Somebody deleted the breaker of a system that is not configured any more."""

    type = "BREAKER_DELETED"
    breaker: Name
    previous: Code


class DeadLetterOpened(Event):
    type = "DEAD_LETTER_OPENED"
    dead_letter_id: UUID
    domain: DeadLetterDomain
    error: Code


class DeadLetterDecided(_Noted):
    """Somebody resolved, rejected or gave up a letter, took it into review or out of it, or archived it."""

    type = "DEAD_LETTER_DECIDED"
    dead_letter_id: UUID
    prior: DeadLetterStatus
    status: DeadLetterStatus


class DeadLetterAssigned(Event):
    """A letter was given to an officer; with none, to nobody."""

    type = "DEAD_LETTER_ASSIGNED"
    dead_letter_id: UUID
    officer_id: UUID | None = None


class DeadLetterNoted(_Noted):
    type = "DEAD_LETTER_NOTED"
    dead_letter_id: UUID


class DeadLettersArchived(_Noted):
    type = "DEAD_LETTERS_ARCHIVED"
    count: int


class DeadLetterPurged(Event):
    """An archived letter was removed for good."""

    type = "DEAD_LETTER_PURGED"
    dead_letter_id: UUID
    domain: DeadLetterDomain
    error: Code


class DeadLettersPurged(_Noted):
    type = "DEAD_LETTERS_PURGED"
    count: int


class RedriveStarted(_Noted):
    """Another try for a whole set of letters begins; each that is requeued has an event of its own."""

    type = "REDRIVE_STARTED"
    redrive_id: UUID
    chosen: int
    force: bool


class RedriveEnded(Event):
    type = "REDRIVE_ENDED"
    redrive_id: UUID
    requeued: int
    skipped: int
    cancelled: bool


# --- people and access ---


class OfficerCreated(Event):
    type = "OFFICER_CREATED"
    officer_id: UUID
    role: Role


class OfficerDeactivated(Event):
    type = "OFFICER_DEACTIVATED"
    officer_id: UUID


class PasswordChanged(Event):
    type = "PASSWORD_CHANGED"
    officer_id: UUID


class SignedIn(Event):
    type = "SIGNED_IN"
    officer_id: UUID


class SignInRefused(Event):
    """`count` sign-ins of an account, or of unknown ones, were refused since `since`; `why` is the last's."""

    type = "SIGN_IN_REFUSED"
    officer_id: UUID | None
    why: Code
    count: int = 1
    since: datetime | None = None


class ApiKeyCreated(Event):
    type = "API_KEY_CREATED"
    api_key_id: UUID
    approvals_needed: int
    scopes: tuple[Code, ...] = ()


class ApiKeyRevoked(Event):
    type = "API_KEY_REVOKED"
    api_key_id: UUID


class SubjectSearched(Event):
    """An officer looked a person up by an identifier."""

    type = "SUBJECT_SEARCHED"
    kind: Code
    found: int


class NoteForgotten(Event):
    """What a person typed was removed. The events that point at it keep its id and keyed hash."""

    type = "NOTE_FORGOTTEN"
    note_id: UUID


class AuditExported(Event):
    """`events` events were taken out, of those that were committed when the newest was `events_up_to`."""

    type = "AUDIT_EXPORTED"
    format: Code
    events_up_to: int
    events: int | None = None
    request_id: UUID | None = None
    event_type: Code | None = None
    by_actor: Code | None = None
    since: datetime | None = None
    until: datetime | None = None
