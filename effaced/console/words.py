"""The console's words: every state as a word, a tone and an icon, the same on all pages.

Tones are the only colours there are: quiet, info, good, warn, bad.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from effaced.breakers.model import BreakerState
from effaced.datamap.model.data_map import Action
from effaced.model import (
    AttemptOutcome,
    CheckReason,
    DeadLetterDomain,
    DeadLetterStatus,
    DeliveryStatus,
    Evidence,
    NoticeType,
    OutboxOperation,
    OutboxStatus,
    PolicyKind,
    PolicyScope,
    ReadBackProof,
    RedriveStatus,
    RequestKind,
    RequestStatus,
    Role,
    StepOutcome,
    TargetChange,
    Verification,
)
from effaced.outbox.read import WaitsFor
from effaced.requests.read import Blocker, OpenState
from effaced.requests.retention import RetentionState


@dataclass(frozen=True, slots=True)
class Badge:
    """How a state looks."""

    word: str
    tone: str
    icon: str


class Station(StrEnum):
    """A call's state beyond its status: what it waits for, or that it is superseded."""

    PAUSED = "paused"
    AFTER = "after"
    PERSON = "person"
    SUPERSEDED = "superseded"


class Circuit(StrEnum):
    """A breaker's state on screen, including pins and a vendor's pause."""

    CLOSED = "closed"
    OPEN = "open"
    TRIAL = "trial"
    HELD_OPEN = "held_open"
    HELD_CLOSED = "held_closed"
    COOLING = "cooling"


# The next action on a request, where the status alone determines it.
NEXT_ACTIONS = {
    RequestStatus.RECEIVED: "Nothing for you: the request is being taken in.",
    RequestStatus.IDENTITY_CHECK: "An officer has to check the person's identity.",
    RequestStatus.ON_HOLD: "A legal hold has to end or be lifted.",
    RequestStatus.REFUSED: "Nothing: the request was refused.",
    RequestStatus.CANCELLED: "Nothing: the request was cancelled.",
}
_BADGES: list[tuple[StrEnum, Badge]] = [
    (RequestStatus.RECEIVED, Badge("Received", "quiet", "inbox")),
    (RequestStatus.IDENTITY_CHECK, Badge("Identity check", "warn", "user")),
    (RequestStatus.REVIEW, Badge("Waiting for approval", "warn", "user")),
    (RequestStatus.APPROVED, Badge("Approved", "info", "check")),
    (RequestStatus.ON_HOLD, Badge("On hold", "warn", "pause")),
    (RequestStatus.RUNNING, Badge("Running", "info", "cycle")),
    (OpenState.NOT_VERIFIED, Badge("Not verified", "warn", "eye")),
    (RequestStatus.COMPLETED, Badge("Completed", "good", "check")),
    (RequestStatus.REFUSED, Badge("Refused", "quiet", "cross")),
    (RequestStatus.CANCELLED, Badge("Cancelled", "quiet", "cross")),
    (OutboxStatus.PENDING, Badge("Queued", "quiet", "dots")),
    (OutboxStatus.IN_FLIGHT, Badge("Calling", "info", "cycle")),
    (OutboxStatus.SUCCEEDED, Badge("Done", "good", "check")),
    (OutboxStatus.FAILED, Badge("Will be retried", "warn", "cycle")),
    (OutboxStatus.SCHEDULED, Badge("Waiting at vendor", "info", "hourglass")),
    (OutboxStatus.ABANDONED, Badge("Abandoned", "bad", "cross")),
    (StepOutcome.ERASED, Badge("Erased", "good", "check")),
    (StepOutcome.ALREADY_ABSENT, Badge("Already absent", "good", "check")),
    (StepOutcome.EXPIRED, Badge("Expired, vendor's word", "quiet", "hourglass")),
    (StepOutcome.VERIFIED_EXPIRY, Badge("Expired, verified", "good", "check")),
    (StepOutcome.RETAINED, Badge("Retained by vendor", "warn", "lock")),
    (StepOutcome.ATTESTED, Badge("Done by hand", "good", "user")),
    (StepOutcome.RECTIFIED, Badge("Corrected", "good", "check")),
    (StepOutcome.SUPERSEDED, Badge("Superseded", "quiet", "cross")),
    (Verification.DUE, Badge("Not verified yet", "warn", "clock")),
    (Verification.CONFIRMED, Badge("Confirmed gone", "good", "check")),
    (Verification.STILL_PRESENT, Badge("Still present", "bad", "alert")),
    (ReadBackProof.PROVEN, Badge("Proven", "good", "check")),
    (ReadBackProof.UNPROVEN, Badge("Unproven", "warn", "alert")),
    (ReadBackProof.FAILED, Badge("Check failed", "bad", "cross")),
    (Verification.UNVERIFIABLE, Badge("Not verifiable", "bad", "alert")),
    (Verification.ATTESTED, Badge("Attested gone", "info", "user")),
    (Evidence.CONFIRMED, Badge("Verified", "good", "check")),
    (Evidence.ATTESTED, Badge("Attested", "info", "user")),
    (Evidence.VENDOR_WORD, Badge("Vendor's word", "quiet", "note")),
    (Evidence.NOT_VERIFIABLE, Badge("Not verifiable", "bad", "alert")),
    (DeadLetterStatus.PENDING, Badge("Open", "bad", "alert")),
    (DeadLetterStatus.REVIEWING, Badge("In review", "warn", "eye")),
    (DeadLetterStatus.REPLAYING, Badge("Being retried", "info", "cycle")),
    (DeadLetterStatus.RESOLVED, Badge("Resolved", "good", "check")),
    (DeadLetterStatus.REQUIRES_REVIEW, Badge("Failed again", "bad", "alert")),
    (DeadLetterStatus.PERMANENTLY_FAILED, Badge("Given up", "quiet", "cross")),
    (DeadLetterStatus.REJECTED, Badge("Rejected", "quiet", "cross")),
    (DeadLetterStatus.ARCHIVED, Badge("Archived", "quiet", "inbox")),
    (RedriveStatus.RUNNING, Badge("Running", "info", "cycle")),
    (RedriveStatus.FINISHED, Badge("Finished", "good", "check")),
    (RedriveStatus.CANCELLED, Badge("Cancelled", "quiet", "cross")),
    (Action.DELETED, Badge("Deleted", "bad", "cross")),
    (Action.ANONYMISED, Badge("Anonymised", "good", "check")),
    (Action.PSEUDONYMISED, Badge("Pseudonymised", "info", "key")),
    (Action.RETAINED, Badge("Retained", "warn", "lock")),
    (Action.DETACHED, Badge("Detached", "quiet", "out")),
    (Blocker.APPROVAL, Badge("Approval", "warn", "user")),
    (Blocker.HOLD, Badge("Hold", "warn", "pause")),
    (Blocker.ABANDONED, Badge("Failed step", "bad", "alert")),
    (Blocker.VENDOR, Badge("Vendor", "info", "hourglass")),
    (Blocker.PERSON, Badge("Person", "warn", "user")),
    (Blocker.VERIFICATION, Badge("Not verified", "warn", "eye")),
    (WaitsFor.VENDOR, Badge("A vendor", "info", "hourglass")),
    (WaitsFor.PERSON, Badge("A person", "warn", "user")),
    (RetentionState.DUE, Badge("Ended", "warn", "clock")),
    (RetentionState.KEPT, Badge("Nothing left to erase", "quiet", "check")),
    (RetentionState.WAITING, Badge("Waits for rows that reference it", "info", "hourglass")),
    (RetentionState.IN_USE, Badge("Key in use again: request a new erasure", "bad", "alert")),
    (RetentionState.NOT_RETAINED, Badge("No longer retained: request a new erasure", "bad", "alert")),
    (RetentionState.TABLE_GONE, Badge("No longer in the map", "warn", "alert")),
    (RetentionState.UNREADABLE, Badge("Can't be read", "bad", "alert")),
    (Station.PAUSED, Badge("Paused", "warn", "pause")),
    (Station.AFTER, Badge("Waits for another system", "quiet", "hourglass")),
    (Station.PERSON, Badge("Waiting for a person", "warn", "user")),
    (Station.SUPERSEDED, Badge("Superseded", "quiet", "cross")),
    (Circuit.CLOSED, Badge("Breaker closed", "good", "check")),
    (Circuit.OPEN, Badge("Breaker open", "bad", "cross")),
    (Circuit.TRIAL, Badge("Breaker half-open", "warn", "cycle")),
    (Circuit.HELD_OPEN, Badge("Pinned open", "bad", "lock")),
    (Circuit.HELD_CLOSED, Badge("Pinned closed", "warn", "lock")),
    (Circuit.COOLING, Badge("Cooling down", "warn", "hourglass")),
]

_LABELS: list[tuple[StrEnum, str]] = [
    (RequestKind.ERASURE, "Erasure"),
    (RequestKind.RECTIFICATION, "Rectification"),
    (OutboxOperation.ERASE, "Erase"),
    (OutboxOperation.RECTIFY, "Correct"),
    (DeadLetterDomain.EXTERNAL_CALL, "External call"),
    (DeadLetterDomain.VERIFICATION, "Verification"),
    (DeadLetterDomain.LOCAL_EXECUTION, "Your database"),
    (DeadLetterDomain.ATTESTATION, "Manual step"),
    (DeadLetterDomain.MESSAGE, "Message"),
    (AttemptOutcome.SUCCESS, "succeeded"),
    (AttemptOutcome.FAILURE, "failed"),
    (AttemptOutcome.TIMEOUT, "timed out"),
    (AttemptOutcome.CIRCUIT_OPEN, "was not made"),
    (AttemptOutcome.SCHEDULED, "was scheduled for a later date"),
    (CheckReason.CANARY_SEEN, "it saw a test person and did not see an invented one"),
    (CheckReason.CANARY_ERASED, "it saw a test person, who was erased, and saw that they were gone"),
    (CheckReason.CANARY_NOT_ERASED_YET, "it saw a test person, who was not erased at once"),
    (CheckReason.NO_READ_BACK, "the system has no read-back"),
    (CheckReason.NO_CANARY, "it saw no test person, so it may report everybody as absent"),
    (CheckReason.INVENTED_REFUSED, "the system refuses an invented person, so nobody was seen absent"),
    (CheckReason.MISFIT, "the configuration does not match the system"),
    (CheckReason.CANARY_ABSENT, "it did not find a test person who should be there"),
    (CheckReason.CANARY_UNANSWERED, "the system gave no usable answer about a test person"),
    (CheckReason.INVENTED_PRESENT, "it found a person who was invented"),
    (CheckReason.INVENTED_UNANSWERED, "the system gave no usable answer about an invented person"),
    (CheckReason.ERASE_FAILED, "the test person could not be erased"),
    (CheckReason.STILL_PRESENT, "it still found the test person after the system had erased them"),
    (CheckReason.NEVER_CHECKED, "it was never checked"),
    (CheckReason.CONFIGURATION_CHANGED, "the configuration has changed since the last check"),
    (NoticeType.ENTRY_ABANDONED, "A call was abandoned"),
    (NoticeType.VERIFICATION_FAILED, "Erased data may still be there"),
    (NoticeType.EXECUTION_FAILED, "Your database could not be changed"),
    (NoticeType.ATTESTATION_OVERDUE, "An attestation is overdue"),
    (NoticeType.RESOLVER_PAUSED, "A system is paused"),
    (NoticeType.RESOLVER_ABSENCES, "A system suddenly finds nobody"),
    (NoticeType.BREAKER_OPENED, "A circuit breaker opened"),
    (NoticeType.BREAKER_CLOSED, "A circuit breaker closed"),
    (NoticeType.REQUEST_COMPLETED, "A request is completed"),
    (NoticeType.REQUEST_RECEIVED, "A request was received"),
    (NoticeType.REQUEST_APPROVED, "A request was approved"),
    (NoticeType.REQUEST_EXECUTED, "A request was executed"),
    (NoticeType.REQUEST_CANCELLED, "A request was cancelled"),
    (NoticeType.REQUEST_VERIFIED, "A request is verified"),
    (NoticeType.STEP_SUCCEEDED, "A step succeeded"),
    (NoticeType.STEP_SCHEDULED, "A step is scheduled"),
    (NoticeType.STEP_FAILED, "A step failed and is retried"),
    (NoticeType.STEP_ABANDONED, "A step was abandoned"),
    (NoticeType.TEST, "A test message"),
    (TargetChange.REGISTERED, "registered"),
    (TargetChange.CHANGED, "changed"),
    (TargetChange.SECRET_ROTATED, "given a new secret"),
    (TargetChange.DELETED, "deleted"),
    (BreakerState.CLOSED, "closed"),
    (BreakerState.OPEN, "open"),
    (BreakerState.HALF_OPEN, "half-open"),
    (PolicyKind.RETRY, "Retry policy"),
    (PolicyKind.BREAKER, "Breaker policy"),
    (PolicyKind.RATE, "Rate limit"),
    (PolicyScope.GLOBAL, "All systems"),
    (PolicyScope.RESOLVER, "System"),
    (PolicyScope.HOST, "Host"),
    (PolicyScope.REQUEST, "Request"),
    (DeliveryStatus.PENDING, "Pending"),
    (DeliveryStatus.DELIVERED, "Delivered"),
    (DeliveryStatus.UNDELIVERABLE, "Undeliverable"),
    (Role.AUDITOR, "Auditor"),
    (Role.OFFICER, "Officer"),
    (Role.ADMIN, "Admin"),
]

# What each recommended action of a dead letter means for an officer.
ADVICE = {
    "check_with_vendor": "The vendor reported success, but the data is still there. "
    "Ask the vendor, then retry.",
    "fix_and_requeue": "A retry will not help until the cause is fixed. Fix it, then retry.",
    "requeue_when_vendor_is_back": "The vendor was unavailable for too long. Retry once it answers.",
    "requeue_when_it_answers": "The message could not be delivered. Fix the target, then retry.",
    "reissue": "It can't be retried: the corrected values were deleted when it failed. "
    "Send the correction again, or correct it by hand and attest.",
    "confirm_or_cancel": "The row under the person's key has none of the identifiers that were recorded when "
    "the request came in: it may be somebody else's. Confirm that it is the same person, or cancel.",
    "find_the_cause": "It was retried and failed in the same way. Find the cause before the next retry.",
    "escalate": "It keeps failing after retries. Ask somebody who can change the system.",
    "do_by_hand_and_attest": "Nobody attested it in time. Do it by hand, then attest; "
    "a retry sets a new date.",
}

# The reasons of breaker transitions.
MOVES = {
    "consecutive_failures": "too many consecutive failures",
    "rolling_failures": "too many failures within the window",
    "trial_started": "its wait was over: trial call",
    "trial_failed": "the trial call failed",
    "trials_succeeded": "the trial calls succeeded",
    "forced_open": "pinned open",
    "forced_closed": "pinned closed",
    "unpinned": "unpinned",
    "reset": "reset",
    "deleted": "deleted",
    "assigned": "set by the application",
    "retry_after": "the vendor asked for a pause (Retry-After)",
    "cooldown_ended": "the pause that the vendor asked for was ended",
    "known_open": "it was open when the store recovered",
    "known_half_open": "it was half-open when the store recovered",
}


# A StrEnum's member is its text: a pending call and a pending dead letter are equal, but not the same.
Key = tuple[type[StrEnum], str]
BADGES: dict[Key, Badge] = {(type(state), state.value): badge for state, badge in _BADGES}
LABELS: dict[Key, str] = {
    **{key: badge.word for key, badge in BADGES.items()},
    **{(type(word), word.value): text for word, text in _LABELS},
}


def badge(state: StrEnum) -> Badge:
    return BADGES[type(state), state.value]


def label(word: StrEnum) -> str:
    return LABELS[type(word), word.value]


def move(reason: str) -> str:
    return MOVES.get(reason, reason.replace("_", " "))


def advice(code: str) -> str:
    return ADVICE.get(code, "")
