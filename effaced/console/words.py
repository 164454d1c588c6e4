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
    """Where a call stands beyond its status: what it waits for, or why nobody need look at it."""

    PAUSED = "paused"
    AFTER = "after"
    PERSON = "person"
    SUPERSEDED = "superseded"


class Circuit(StrEnum):
    """How a breaker stands, a person's hand and a vendor's own pause included."""

    CLOSED = "closed"
    OPEN = "open"
    TRIAL = "trial"
    HELD_OPEN = "held_open"
    HELD_CLOSED = "held_closed"
    COOLING = "cooling"


# What has to happen next to a request, where its status alone says so.
NEXT_ACTIONS = {
    RequestStatus.RECEIVED: "Nothing for you: the request is being taken in.",
    RequestStatus.IDENTITY_CHECK: "The person's identity has to be checked.",
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
    (OutboxStatus.FAILED, Badge("Will be tried again", "warn", "cycle")),
    (OutboxStatus.SCHEDULED, Badge("Waiting at vendor", "info", "hourglass")),
    (OutboxStatus.ABANDONED, Badge("Abandoned", "bad", "cross")),
    (StepOutcome.ERASED, Badge("Erased", "good", "check")),
    (StepOutcome.ALREADY_ABSENT, Badge("Was not there", "good", "check")),
    (StepOutcome.EXPIRED, Badge("Expired, by the vendor's word", "quiet", "hourglass")),
    (StepOutcome.VERIFIED_EXPIRY, Badge("Expired, verified", "good", "check")),
    (StepOutcome.RETAINED, Badge("Retained by vendor", "warn", "lock")),
    (StepOutcome.ATTESTED, Badge("Done by hand", "good", "user")),
    (StepOutcome.RECTIFIED, Badge("Corrected", "good", "check")),
    (StepOutcome.SUPERSEDED, Badge("Overtaken", "quiet", "cross")),
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
    (DeadLetterStatus.REPLAYING, Badge("Being tried again", "info", "cycle")),
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
    (Blocker.ABANDONED, Badge("Abandoned", "bad", "alert")),
    (Blocker.VENDOR, Badge("Vendor", "info", "hourglass")),
    (Blocker.PERSON, Badge("Person", "warn", "user")),
    (Blocker.VERIFICATION, Badge("Not verified", "warn", "eye")),
    (WaitsFor.VENDOR, Badge("A vendor", "info", "hourglass")),
    (WaitsFor.PERSON, Badge("A person", "warn", "user")),
    (RetentionState.DUE, Badge("Ended", "warn", "clock")),
    (RetentionState.KEPT, Badge("Nothing due any more", "quiet", "check")),
    (RetentionState.WAITING, Badge("Waits for rows that point at it", "info", "hourglass")),
    (RetentionState.IN_USE, Badge("Key in use again: erase anew", "bad", "alert")),
    (RetentionState.NOT_RETAINED, Badge("No longer retained: erase anew", "bad", "alert")),
    (RetentionState.TABLE_GONE, Badge("Not in the map any more", "warn", "alert")),
    (RetentionState.UNREADABLE, Badge("Can't be read", "bad", "alert")),
    (Station.PAUSED, Badge("Paused", "warn", "pause")),
    (Station.AFTER, Badge("Waits for another", "quiet", "hourglass")),
    (Station.PERSON, Badge("Waiting for a person", "warn", "user")),
    (Station.SUPERSEDED, Badge("Overtaken", "quiet", "cross")),
    (Circuit.CLOSED, Badge("Breaker closed", "good", "check")),
    (Circuit.OPEN, Badge("Breaker open", "bad", "cross")),
    (Circuit.TRIAL, Badge("Breaker on trial", "warn", "cycle")),
    (Circuit.HELD_OPEN, Badge("Held open", "bad", "lock")),
    (Circuit.HELD_CLOSED, Badge("Held closed", "warn", "lock")),
    (Circuit.COOLING, Badge("Cooling down", "warn", "hourglass")),
]

_LABELS: list[tuple[StrEnum, str]] = [
    (RequestKind.ERASURE, "Erasure"),
    (RequestKind.RECTIFICATION, "Rectification"),
    (OutboxOperation.ERASE, "Erase"),
    (OutboxOperation.RECTIFY, "Correct"),
    (DeadLetterDomain.EXTERNAL_CALL, "External call"),
    (DeadLetterDomain.VERIFICATION, "Verification"),
    (DeadLetterDomain.LOCAL_EXECUTION, "Own database"),
    (DeadLetterDomain.ATTESTATION, "Work by hand"),
    (DeadLetterDomain.MESSAGE, "Message"),
    (AttemptOutcome.SUCCESS, "succeeded"),
    (AttemptOutcome.FAILURE, "failed"),
    (AttemptOutcome.TIMEOUT, "timed out"),
    (AttemptOutcome.CIRCUIT_OPEN, "was not made"),
    (AttemptOutcome.SCHEDULED, "was answered with a later date"),
    (CheckReason.CANARY_SEEN, "it saw a test person and did not see an invented one"),
    (CheckReason.CANARY_ERASED, "it saw a test person, who was erased, and saw that they were gone"),
    (CheckReason.CANARY_NOT_ERASED_YET, "it saw a test person, who was not erased at once"),
    (CheckReason.NO_READ_BACK, "the system has no read-back"),
    (CheckReason.NO_CANARY, "no test person was seen, so it may find everybody absent"),
    (CheckReason.INVENTED_REFUSED, "the system refuses an invented person, so nobody was seen absent"),
    (CheckReason.MISFIT, "the configuration does not fit the system"),
    (CheckReason.CANARY_ABSENT, "it did not find a test person who should be there"),
    (CheckReason.CANARY_UNANSWERED, "the system gave no usable answer about a test person"),
    (CheckReason.INVENTED_PRESENT, "it found a person who was invented"),
    (CheckReason.INVENTED_UNANSWERED, "the system gave no usable answer about an invented person"),
    (CheckReason.ERASE_FAILED, "the test person could not be erased"),
    (CheckReason.STILL_PRESENT, "it still found the test person after the system had erased them"),
    (CheckReason.NEVER_CHECKED, "it was never checked"),
    (CheckReason.CONFIGURATION_CHANGED, "the configuration was changed after the last check"),
    (NoticeType.ENTRY_ABANDONED, "A call was given up"),
    (NoticeType.VERIFICATION_FAILED, "Erased data may still be there"),
    (NoticeType.EXECUTION_FAILED, "The own database could not be changed"),
    (NoticeType.ATTESTATION_OVERDUE, "A confirmation is overdue"),
    (NoticeType.RESOLVER_PAUSED, "A system is paused"),
    (NoticeType.RESOLVER_ABSENCES, "A system suddenly knows nobody"),
    (NoticeType.BREAKER_OPENED, "Calls to a system are held back"),
    (NoticeType.BREAKER_CLOSED, "A system is called again"),
    (NoticeType.REQUEST_COMPLETED, "A request is completed"),
    (BreakerState.CLOSED, "closed"),
    (BreakerState.OPEN, "open"),
    (BreakerState.HALF_OPEN, "on trial"),
    (PolicyKind.RETRY, "Retry policy"),
    (PolicyKind.BREAKER, "Breaker policy"),
    (PolicyKind.RATE, "Rate limit"),
    (PolicyScope.GLOBAL, "Everything"),
    (PolicyScope.RESOLVER, "Resolver"),
    (PolicyScope.HOST, "Host"),
    (PolicyScope.REQUEST, "Request"),
    (DeliveryStatus.PENDING, "On its way"),
    (DeliveryStatus.DELIVERED, "Delivered"),
    (DeliveryStatus.UNDELIVERABLE, "Undeliverable"),
    (Role.AUDITOR, "Auditor"),
    (Role.OFFICER, "Officer"),
    (Role.ADMIN, "Admin"),
]

# What a dead letter's recommended action asks of the reader.
ADVICE = {
    "check_with_vendor": "The vendor reported success, yet the data is there. Ask the vendor, then requeue.",
    "fix_and_requeue": "Trying again will not help until the cause is fixed. Fix it, then requeue.",
    "requeue_when_vendor_is_back": "The vendor did not answer long enough. Requeue once it does.",
    "requeue_when_it_answers": "The message did not get through. See to the target, then requeue.",
    "reissue": "It can't be requeued: the corrected values went with the failure. "
    "Send the correction again, or correct it by hand and attest.",
    "confirm_or_cancel": "The row under the person's key has none of the identifiers that were recorded when "
    "the request came in: it may be somebody else's. Confirm that it is the same person, or cancel.",
    "find_the_cause": "It was tried again and failed in the same way. Find the cause before the next try.",
    "escalate": "It keeps failing after being tried again. Somebody who can change the system has to look.",
    "do_by_hand_and_attest": "Nobody attested it in time. Do it by hand, then attest; "
    "a requeue sets a new date.",
}

# Why a breaker moved.
MOVES = {
    "consecutive_failures": "calls failed one after the other",
    "rolling_failures": "too many calls failed within a short time",
    "trial_started": "its wait was over, a call is tried",
    "trial_failed": "the call on trial failed",
    "trials_succeeded": "the calls on trial succeeded",
    "forced_open": "somebody holds it open",
    "forced_closed": "somebody holds it closed",
    "unpinned": "somebody unpinned it",
    "reset": "somebody reset it",
    "deleted": "somebody deleted it",
    "retry_after": "the vendor asked for a pause",
    "known_open": "it was known to be open when its store came back",
    "known_half_open": "it was known to be on trial when its store came back",
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
