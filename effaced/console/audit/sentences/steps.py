"""Steps at systems: calls, read-backs, attestations, failed steps and retries."""

from __future__ import annotations

from datetime import datetime

from effaced.console.audit.sentences.sentence import (
    Moment,
    Payload,
    Sentence,
    after_attempts,
    count,
    through_api,
)
from effaced.console.words import label
from effaced.model import (
    DeadLetterDomain,
    DeadLetterStatus,
    Evidence,
    OutboxOperation,
    StepOutcome,
)


def _abandoned(payload: Payload) -> str:
    if payload.get("superseded_by"):
        return f"{payload['resolver']} was not called: a later request supersedes the correction."
    why = f"({payload['error']}, {payload['code']})"
    return f"{payload['resolver']} was abandoned {after_attempts(payload)} {why}."


def _by_hand(payload: Payload, moment: Moment) -> str:
    what = "erase" if payload["operation"] == OutboxOperation.ERASE else "correct"
    return (
        f"{payload['resolver']} waits for a person to {what} the data there and to attest it "
        f"by {moment(datetime.fromisoformat(payload['by']))}."
    )


def _attested(payload: Payload) -> str:
    what = "erased" if payload["operation"] == OutboxOperation.ERASE else "corrected"
    before = f" It had been abandoned ({payload['prior_error']})." if payload.get("prior_error") else ""
    return (
        f"{payload['resolver']} was {what} by hand, as attested by an officer{through_api(payload)}.{before}"
    )


def _outcome(payload: Payload) -> str:
    outcome = StepOutcome(payload["outcome"])
    basis = f" ({payload['retained_basis']})" if payload.get("retained_basis") else ""
    evidence = payload.get("evidence")
    # Earlier events say `verified_expiry` also where nobody had looked.
    if outcome is StepOutcome.VERIFIED_EXPIRY and evidence != Evidence.CONFIRMED:
        outcome = StepOutcome.EXPIRED
    seen = evidence == Evidence.CONFIRMED
    return {
        StepOutcome.ERASED: "erased the data" if seen else "reported the data as erased",
        StepOutcome.ALREADY_ABSENT: "had nothing to erase"
        if seen
        else "reported that it had nothing to erase",
        StepOutcome.EXPIRED: "reported the data as expired",
        StepOutcome.VERIFIED_EXPIRY: "let the data expire, and the read-back confirmed it",
        StepOutcome.RETAINED: f"keeps the data for a legal reason{basis}",
        StepOutcome.ATTESTED: "was done by hand",
        StepOutcome.RECTIFIED: "corrected the data",
    }[outcome]


def _scheduled(payload: Payload, moment: Moment) -> str:
    until = moment(datetime.fromisoformat(payload["until"]))
    slipped = f" The date has moved {count(payload['slips'], 'time')}." if payload["slips"] else ""
    return f"{payload['resolver']} will delete the data by {until}.{slipped}"


STEPS: dict[str, Sentence] = {
    "ERASURE_STEP_SUCCEEDED": Sentence("good", "check", lambda p, _m: f"{p['resolver']} {_outcome(p)}."),
    "ERASURE_STEP_FAILED": Sentence("bad", "cross", lambda p, _m: _abandoned(p)),
    "RECTIFICATION_STEP_SUCCEEDED": Sentence(
        "good", "check", lambda p, _m: f"{p['resolver']} {_outcome(p).replace('to erase', 'to correct')}."
    ),
    "RECTIFICATION_STEP_FAILED": Sentence("bad", "cross", lambda p, _m: _abandoned(p)),
    "STEP_ATTESTED": Sentence("good", "user", lambda p, _m: _attested(p)),
    "ATTESTATION_AWAITED": Sentence("warn", "user", _by_hand),
    "REFERENCE_REVEALED": Sentence(
        "warn", "eye", lambda p, _m: f"The reference to the person at {p['resolver']} was shown."
    ),
    "ERASURE_EXPIRY_SCHEDULED": Sentence("info", "hourglass", _scheduled),
    "ERASURE_EXTERNAL_VERIFIED": Sentence(
        "good", "eye", lambda p, _m: f"Verified: {p['resolver']} no longer holds the data."
    ),
    "ERASURE_EXTERNAL_VERIFICATION_FAILED": Sentence(
        "bad", "eye", lambda p, _m: f"Not verified: {p['resolver']} still holds the data."
    ),
    "ERASURE_READ_BACK_GIVEN_UP": Sentence(
        "bad",
        "eye",
        lambda p, _m: (
            f"Not verifiable: {p['resolver']} could not be asked whether the data is gone. "
            "A person has to verify it again or attest."
        ),
    ),
    "ERASURE_REQUEUED": Sentence(
        "info",
        "cycle",
        lambda p, _m: f"{p['resolver']} will be retried with a full set of attempts.",
    ),
    "ERASURE_READ_BACK_ATTESTED": Sentence(
        "info", "user", lambda p, _m: f"Attested{through_api(p)}: {p['resolver']} no longer holds the data."
    ),
    "ERASURE_READ_BACK_REQUESTED": Sentence(
        "info", "cycle", lambda p, _m: f"{p['resolver']} will be called to erase and then read back again."
    ),
    "MESSAGE_REQUEUED": Sentence(
        "info", "cycle", lambda p, _m: f"The message to {p['target']} will be sent again."
    ),
    "BULK_REQUEUE": Sentence(
        "info",
        "cycle",
        lambda p, _m: f"Retried {p['requeued']:,} of {count(p['chosen'], 'selected failed step')}.",
    ),
    "DEAD_LETTER_OPENED": Sentence(
        "bad",
        "alert",
        lambda p, _m: (
            f"A step failed permanently: {label(DeadLetterDomain(p['domain'])).lower()}, {p['error']}."
        ),
    ),
    "DEAD_LETTER_DECIDED": Sentence(
        "quiet",
        "inbox",
        lambda p, _m: (
            f"A failed step was {label(DeadLetterStatus(p['prior'])).lower()} "
            f"and is now {label(DeadLetterStatus(p['status'])).lower()}."
        ),
    ),
    "DEAD_LETTER_ASSIGNED": Sentence(
        "quiet",
        "user",
        lambda p, _m: (
            "A failed step was assigned to an officer."
            if p.get("officer_id")
            else "A failed step was unassigned."
        ),
    ),
    "DEAD_LETTER_NOTED": Sentence("quiet", "user", lambda _p, _m: "A note was added to a failed step."),
    "DEAD_LETTERS_ARCHIVED": Sentence(
        "quiet", "inbox", lambda p, _m: f"{count(p['count'], 'failed step')} archived."
    ),
    "DEAD_LETTER_PURGED": Sentence(
        "warn",
        "cross",
        lambda p, _m: (
            f"An archived failed step was deleted: {label(DeadLetterDomain(p['domain'])).lower()}, "
            f"{p['error']}."
        ),
    ),
    "DEAD_LETTERS_PURGED": Sentence(
        "warn", "cross", lambda p, _m: f"{count(p['count'], 'archived failed step')} deleted."
    ),
    "REDRIVE_STARTED": Sentence(
        "info",
        "cycle",
        lambda p, _m: (
            f"A bulk retry of {count(p['chosen'], 'failed step')} was started"
            f"{', including those whose retries were used up' if p['force'] else ''}."
        ),
    ),
    "REDRIVE_ENDED": Sentence(
        "quiet",
        "cycle",
        lambda p, _m: (
            f"The bulk retry was {'cancelled' if p['cancelled'] else 'finished'}: "
            f"{p['requeued']:,} retried, {p['skipped']:,} skipped."
        ),
    ),
}
