"""What becomes of an entry after its call: a pure function of the entry, the result and the rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from effaced.audit.events import (
    AttestationAwaited,
    Event,
    ExpiryScheduled,
    ExternallyVerified,
    ExternalVerificationFailed,
    StepFailed,
    StepSucceeded,
    told,
)
from effaced.core.errors import ResolverError
from effaced.model import (
    AttemptOutcome,
    DeadLetterDomain,
    Evidence,
    FailureKind,
    OutboxOperation,
    OutboxStatus,
    StepOutcome,
    Verification,
    evidence_of,
)
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    AwaitsPerson,
    Erased,
    Rectified,
    Retained,
    Scheduled,
)
from effaced.retries.policy import RETRYABLE
from effaced.saga.answers import UNKNOWN_ANSWER, CallFailure, word
from effaced.saga.result import Decision, EntryUpdate, Result, Rules

# The code of a call that may have been made and must not be made again.
NOT_IDEMPOTENT = "not_idempotent"


def decide(result: Result, rules: Rules, now: datetime) -> Decision:
    """Succeeded, parked, to be tried again, or abandoned."""
    if result.failure is not None:
        return _after_failure(result, result.failure, rules, now)
    match result.answer:
        case AwaitsPerson(by=by):
            return _awaiting(result, by, rules, now)
        case Rectified() if result.entry.operation is OutboxOperation.RECTIFY:
            return _succeeded(result, StepOutcome.RECTIFIED, rules, now)
        case AlreadyAbsent() if result.entry.operation is OutboxOperation.RECTIFY:
            return _succeeded(result, StepOutcome.ALREADY_ABSENT, rules, now)
        case _ if result.entry.operation is OutboxOperation.RECTIFY:
            return _unknown(result)
        case Scheduled(until=until):
            return parked(result, until, rules, now)
        case Erased(retained=basis):
            return _succeeded(result, StepOutcome.ERASED, rules, now, basis)
        case AlreadyAbsent() if result.entry.times_parked:
            seen = result.verification is Verification.CONFIRMED
            return _succeeded(
                result, StepOutcome.VERIFIED_EXPIRY if seen else StepOutcome.EXPIRED, rules, now
            )
        case AlreadyAbsent():
            return _succeeded(result, StepOutcome.ALREADY_ABSENT, rules, now)
        case Retained(basis=basis):
            return _succeeded(result, StepOutcome.RETAINED, rules, now, basis)
        case _:
            return _unknown(result)


def _unknown(result: Result) -> Decision:
    return abandoned(result, ResolverError.__name__, UNKNOWN_ANSWER)


def _succeeded(
    result: Result, outcome: StepOutcome, rules: Rules, now: datetime, basis: str | None = None
) -> Decision:
    entry = result.entry
    evidence = evidence_of(outcome, result.verification)
    events = [_success(entry.operation, entry.resolver, outcome, entry.attempts, basis, evidence)]
    failures: tuple[DeadLetterDomain, ...] = ()
    if result.verification is Verification.CONFIRMED:
        events.append(ExternallyVerified(resolver=entry.resolver))
    elif result.verification is Verification.STILL_PRESENT:
        events.append(ExternalVerificationFailed(resolver=entry.resolver))
        failures = (DeadLetterDomain.VERIFICATION,)
    return Decision(
        result,
        EntryUpdate(
            OutboxStatus.SUCCEEDED,
            attempts=entry.attempts,
            outcome=outcome,
            retained_basis=basis,
            times_parked=entry.times_parked,
            verification=result.verification,
            verify_due_at=now + rules.policy.wait(1) if result.verification is Verification.DUE else None,
        ),
        AttemptOutcome.SUCCESS,
        events=tuple(events),
        failures=failures,
        code="still_present" if failures else "",
        pauses=result.refused,
    )


@lru_cache(maxsize=1024)
def _success(
    operation: OutboxOperation,
    resolver: str,
    outcome: StepOutcome,
    attempts: int,
    basis: str | None,
    evidence: Evidence | None,
) -> Event:
    # Thousands of entries end alike. An event is frozen, so those that say the same may be the same.
    return told(operation, StepSucceeded)(
        resolver=resolver, outcome=outcome, attempts=attempts, retained_basis=basis, evidence=evidence
    )


def parked(result: Result, until: datetime, rules: Rules, now: datetime) -> Decision:
    """To be looked at again when the system says the data will have gone."""
    # A horizon in the past would have us ask again at once, for ever: wait one step at least.
    entry = result.entry
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    horizon = max(until, now + rules.policy.wait(1))
    return Decision(
        result,
        EntryUpdate(OutboxStatus.SCHEDULED, gate=horizon, times_parked=entry.times_parked + 1),
        AttemptOutcome.SCHEDULED,
        events=(
            ExpiryScheduled(
                resolver=entry.resolver,
                until=horizon,
                slips=entry.times_parked,
                prior_attempts=entry.attempts,
            ),
        ),
    )


def _awaiting(result: Result, by: datetime, rules: Rules, now: datetime) -> Decision:
    """Parked for a person; when it comes back, nobody has attested it in time."""
    entry = result.entry
    if entry.times_parked:
        return abandoned(result, "AttestationOverdue", "attestation_overdue", DeadLetterDomain.ATTESTATION)
    by = max(by if by.tzinfo else by.replace(tzinfo=UTC), now + rules.policy.wait(1))
    return Decision(
        result,
        EntryUpdate(OutboxStatus.SCHEDULED, gate=by, times_parked=1),
        AttemptOutcome.SCHEDULED,
        events=(AttestationAwaited(operation=entry.operation, resolver=entry.resolver, by=by),),
    )


# A failed trial of these kinds says something about the system, not about the entry.
_TROUBLE_OF_THE_SYSTEM = (FailureKind.TRANSIENT, FailureKind.RATE_LIMITED)


def _after_failure(result: Result, failure: CallFailure, rules: Rules, now: datetime) -> Decision:
    entry, policy = result.entry, rules.policy
    if failure.kind is FailureKind.PERMANENT:
        return abandoned(result, failure.error, failure.code)
    if failure.kind is FailureKind.CREDENTIALS:
        return _refused(result, failure, rules, now)
    if failure.kind is FailureKind.BREAKER_OPEN:
        return _given_back(result, failure, failure.retry_at or now + policy.wait(1), rules, now)
    # Where calling twice does harm, a call that may have been made is not made again, trial or not.
    if result.trial and result.retry_at and not rules.once and failure.kind in _TROUBLE_OF_THE_SYSTEM:
        return _given_back(result, failure, result.retry_at, rules, now)
    if failure.status_code in RETRYABLE and failure.status_code not in policy.retry_status_codes:
        return abandoned(result, failure.error, f"http_{failure.status_code}")
    if rules.once:
        return abandoned(result, failure.error, NOT_IDEMPOTENT)
    if failure.kind is FailureKind.CANCELLED:
        return _given_back(result, failure, now, rules, now)
    if entry.attempts >= policy.max_attempts:
        return abandoned(result, failure.error, "attempts_exhausted")
    gate = now + max(policy.wait(max(entry.attempts, 1)), failure.retry_after or timedelta(0))
    if result.retry_at:
        gate = max(gate, result.retry_at)  # a trial that failed for an unknown reason
    if gate > entry.aging_since + policy.max_age:
        return abandoned(result, failure.error, "max_age")
    return failed(result, failure.error, gate)


def _refused(result: Result, failure: CallFailure, rules: Rules, now: datetime) -> Decision:
    """Credentials are refused to everybody alike: one rotated password must not abandon a backlog.

    The entry waits where it was, with its attempt, and the resolver is paused until a person resumes it.
    """
    entry = result.entry
    if now > entry.aging_since + rules.policy.max_age:
        return abandoned(result, failure.error, "max_age")
    return Decision(
        result,
        EntryUpdate(
            OutboxStatus.PENDING,
            attempts=max(entry.attempts - 1, 0),
            last_error=failure.error,
            times_parked=entry.times_parked,
        ),
        AttemptOutcome.FAILURE,
        pauses=True,
    )


def _given_back(
    result: Result, failure: CallFailure, retry_at: datetime, rules: Rules, now: datetime
) -> Decision:
    """Not the entry's fault: a breaker was open, it was a trial, or we cancelled. It keeps its attempt.

    A vendor that is down for days abandons nothing before its age does.
    """
    entry = result.entry
    if now > entry.aging_since + rules.policy.max_age:
        return abandoned(result, failure.error, "max_age")
    return Decision(
        result,
        EntryUpdate(
            OutboxStatus.PENDING,
            gate=max(retry_at, now + (failure.retry_after or timedelta(0))),
            attempts=max(entry.attempts - 1, 0),
            last_error=failure.error,
            times_parked=entry.times_parked,
        ),
        AttemptOutcome.CIRCUIT_OPEN if failure.kind is FailureKind.BREAKER_OPEN else _attempt(failure),
    )


def _attempt(failure: CallFailure | None) -> AttemptOutcome:
    return AttemptOutcome.TIMEOUT if failure and failure.timed_out else AttemptOutcome.FAILURE


def failed(result: Result, error: str, gate: datetime) -> Decision:
    """To be tried again. `error` is a class name."""
    entry = result.entry
    return Decision(
        result,
        EntryUpdate(
            OutboxStatus.FAILED,
            gate=gate,
            attempts=entry.attempts,
            last_error=word(error, 255),
            times_parked=entry.times_parked,
        ),
        _attempt(result.failure),
    )


def abandoned(
    result: Result, error: str, code: str, domain: DeadLetterDomain = DeadLetterDomain.EXTERNAL_CALL
) -> Decision:
    """Given up, loudly: an event and a dead letter. `error` is a class name."""
    entry, name = result.entry, word(error, 255)
    return Decision(
        result,
        EntryUpdate(
            OutboxStatus.ABANDONED, attempts=entry.attempts, last_error=name, times_parked=entry.times_parked
        ),
        _attempt(result.failure),
        code=code,
        events=(
            told(entry.operation, StepFailed)(
                resolver=entry.resolver, error=name, code=code, attempts=entry.attempts
            ),
        ),
        failures=(domain,),
    )
