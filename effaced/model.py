"""The words everything else is written in: states, operations, subject references, ids."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from effaced.core import clock


class RequestKind(StrEnum):
    """What the person asked for."""

    ERASURE = "erasure"
    RECTIFICATION = "rectification"


class RequestStatus(StrEnum):
    """Where a subject request stands. Overdue, blocked and waiting are derived, never stored."""

    RECEIVED = "received"
    IDENTITY_CHECK = "identity_check"
    REVIEW = "review"
    APPROVED = "approved"
    ON_HOLD = "on_hold"
    RUNNING = "running"
    COMPLETED = "completed"
    REFUSED = "refused"
    CANCELLED = "cancelled"

    @classmethod
    def _missing_(cls, value: object) -> RequestStatus | None:
        return cls.REFUSED if value == "denied" else None  # its name until 1.0, in old links and files


# Every status is in one of these, or is `running`.
UNEXECUTED = frozenset(
    (
        RequestStatus.RECEIVED,
        RequestStatus.IDENTITY_CHECK,
        RequestStatus.REVIEW,
        RequestStatus.APPROVED,
        RequestStatus.ON_HOLD,
    )
)
CLOSED = frozenset((RequestStatus.COMPLETED, RequestStatus.REFUSED, RequestStatus.CANCELLED))


class OutboxOperation(StrEnum):
    """Which external call an entry makes."""

    ERASE = "erase"
    RECTIFY = "rectify"


class OutboxStatus(StrEnum):
    """Where an external call stands."""

    PENDING = "pending"
    IN_FLIGHT = "in_flight"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SCHEDULED = "scheduled"
    ABANDONED = "abandoned"


class StepOutcome(StrEnum):
    """How an external call ended. All are good ends but the last, which is no longer needed.

    `expired` is the vendor's word after a date it had named; `verified_expiry` only if our own read-back
    confirmed it.
    """

    ERASED = "erased"
    ALREADY_ABSENT = "already_absent"
    EXPIRED = "expired"
    VERIFIED_EXPIRY = "verified_expiry"
    RETAINED = "retained"
    ATTESTED = "attested"
    RECTIFIED = "rectified"
    SUPERSEDED = "superseded"


class Verification(StrEnum):
    """What a read-back after a success said; `due` means it could not be made yet.

    `unverifiable` is one that was given up: only a person can start it again or attest. `attested` is a
    person's word against a read-back, or instead of one.
    """

    DUE = "due"
    CONFIRMED = "confirmed"
    STILL_PRESENT = "still_present"
    UNVERIFIABLE = "unverifiable"
    ATTESTED = "attested"


class ReadBackProof(StrEnum):
    """Whether a system's read-back was seen to tell a person who is there from one who is not."""

    PROVEN = "proven"
    UNPROVEN = "unproven"
    FAILED = "failed"


class CheckReason(StrEnum):
    """Why a check of a read-back ended as it did. The last two stand in no check: they are derived."""

    CANARY_SEEN = "canary_seen"
    CANARY_ERASED = "canary_erased"
    CANARY_NOT_ERASED_YET = "canary_not_erased_yet"
    NO_READ_BACK = "no_read_back"
    NO_CANARY = "no_canary"
    INVENTED_REFUSED = "invented_refused"
    MISFIT = "misfit"
    CANARY_ABSENT = "canary_absent"
    CANARY_UNANSWERED = "canary_unanswered"
    INVENTED_PRESENT = "invented_present"
    INVENTED_UNANSWERED = "invented_unanswered"
    ERASE_FAILED = "erase_failed"
    STILL_PRESENT = "still_present"
    NEVER_CHECKED = "never_checked"
    CONFIGURATION_CHANGED = "configuration_changed"


class Evidence(StrEnum):
    """What a succeeded step rests on. Only `confirmed` may be called verified."""

    CONFIRMED = "confirmed"  # our own read-back found nothing
    ATTESTED = "attested"  # a person says so
    VENDOR_WORD = "vendor_word"  # the system says so, and offers no read-back
    NOT_VERIFIABLE = "not_verifiable"  # a read-back should have been made, and could not be


def evidence_of(outcome: StepOutcome | None, verification: Verification | None) -> Evidence | None:
    """The one rule for all doors. None: not done, not needed, or a read-back is due or contradicts it."""
    if verification is Verification.CONFIRMED:
        return Evidence.CONFIRMED
    if verification is Verification.ATTESTED or outcome is StepOutcome.ATTESTED:
        return Evidence.ATTESTED
    if verification is Verification.UNVERIFIABLE:
        return Evidence.NOT_VERIFIABLE
    if verification is not None or outcome in (None, StepOutcome.SUPERSEDED):
        return None
    return Evidence.VENDOR_WORD


class AttemptOutcome(StrEnum):
    """The outcome of one attempt at an external call."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    CIRCUIT_OPEN = "circuit_open"
    SCHEDULED = "scheduled"


class CallRole(StrEnum):
    """What a call to a system was for."""

    ERASE = "erase"
    RECTIFY = "rectify"
    VERIFY = "verify"


class FailureKind(StrEnum):
    """Why a call failed, whatever a third party's code raised or answered.

    The system's passing trouble, its wish to be called less often, its final refusal, our credentials, our
    own circuit breaker, our own cancellation; or unknown, which may well be a bug of the resolver.
    """

    TRANSIENT = "transient"
    RATE_LIMITED = "rate_limited"
    PERMANENT = "permanent"
    CREDENTIALS = "credentials"
    BREAKER_OPEN = "breaker_open"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class PolicyKind(StrEnum):
    """What can be changed at run time: when to try again, when to stop asking, how fast to ask."""

    RETRY = "retry"
    BREAKER = "breaker"
    RATE = "rate"


class PolicyScope(StrEnum):
    """For whom it is changed."""

    GLOBAL = "global"
    RESOLVER = "resolver"
    HOST = "host"
    REQUEST = "request"


class DeadLetterStatus(StrEnum):
    """Where a failed operation stands with the people who look after it."""

    PENDING = "pending"
    REVIEWING = "reviewing"
    REPLAYING = "replaying"
    RESOLVED = "resolved"
    REQUIRES_REVIEW = "requires_review"
    PERMANENTLY_FAILED = "permanently_failed"
    REJECTED = "rejected"
    ARCHIVED = "archived"


class DeadLetterDomain(StrEnum):
    """Which part of the way a dead letter comes from."""

    EXTERNAL_CALL = "external_call"
    VERIFICATION = "verification"
    LOCAL_EXECUTION = "local_execution"
    ATTESTATION = "attestation"
    MESSAGE = "message"


class RedriveStatus(StrEnum):
    """The state of a redrive: retrying a whole set of dead letters."""

    RUNNING = "running"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class NoticeType(StrEnum):
    """What people and systems outside are told of."""

    ENTRY_ABANDONED = "entry.abandoned"
    VERIFICATION_FAILED = "verification.failed"
    EXECUTION_FAILED = "execution.failed"
    ATTESTATION_OVERDUE = "attestation.overdue"
    RESOLVER_PAUSED = "resolver.paused"
    RESOLVER_ABSENCES = "resolver.absences"
    BREAKER_OPENED = "breaker.opened"
    BREAKER_CLOSED = "breaker.closed"
    REQUEST_COMPLETED = "request.completed"


class DeliveryStatus(StrEnum):
    """Where a message stands on its way to one target."""

    PENDING = "pending"
    DELIVERED = "delivered"
    UNDELIVERABLE = "undeliverable"


class Role(StrEnum):
    """What an officer may do: read; read and act; act and administer."""

    AUDITOR = "auditor"
    OFFICER = "officer"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class SubjectRef:
    """How one external system knows the person, e.g. kind `crm_contact`, value `c-81`."""

    kind: str
    value: str = field(repr=False)


CorrectionValue = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Correction:
    """One corrected value of a rectification. Personal data: kept out of every log and repr.

    `column` is the name it goes by: a category of the data map such as `email`, or `table.column`.
    """

    column: str
    value: CorrectionValue = field(repr=False)


@dataclass(frozen=True, slots=True)
class SubjectKey:
    """The keyed hash that stands for a person after everything personal is gone."""

    key_id: str
    hmac: str


class ExportFormat(StrEnum):
    """What an export of the trail looks like."""

    CSV = "csv"
    JSONL = "jsonl"


class ExportStatus(StrEnum):
    """Where an export job stands."""

    PENDING = "pending"
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"
    EXPIRED = "expired"


def new_id() -> UUID:
    """A UUID version 7: unique, and sorted by time, so that new rows are appended to the end of an index."""
    millis = int(clock.now().timestamp() * 1000)
    value = (millis & (2**48 - 1)) << 80 | 0x7 << 76 | secrets.randbits(12) << 64
    return UUID(int=value | 0b10 << 62 | secrets.randbits(62))
