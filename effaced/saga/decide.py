"""What happens to an entry after its call: a pure function of the entry, the result and the rules."""

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
    event_for,
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
from effaced.saga.answers import UNKNOWN_ANSWER, CallFailure, as_code
from effaced.saga.result import Decision, EntryUpdate, Result, Rules

# The code of a call that may have been made and must not be made again.
NOT_IDEMPOTENT = "not_idempotent"


def decide(result: Result, rules: Rules, now: datetime) -> Decision:
    """Succeed, park, retry or abandon the entry."""
    if result.failure is not None:
        return _after_failure(result, result.failure, rules, now)
    match result.answer:
        case AwaitsPerson(by=by):
            return _await_person(result, by, rules, now)
        case Rectified() if result.entry.operation is OutboxOperation.RECTIFY:
            return _succeed(result, StepOutcome.RECTIFIED, rules, now)
        case AlreadyAbsent() if result.entry.operation is OutboxOperation.RECTIFY:
            return _succeed(result, StepOutcome.ALREADY_ABSENT, rules, now)
        case _ if result.entry.operation is OutboxOperation.RECTIFY:
            return _reject_answer(result)
        case Scheduled(until=until):
            return park(result, until, rules, now)
        case Erased(retained=basis):
            return _succeed(result, StepOutcome.ERASED, rules, now, basis)
        case AlreadyAbsent() if result.entry.times_parked:
            seen = result.verification is Verification.CONFIRMED
            return _succeed(result, StepOutcome.VERIFIED_EXPIRY if seen else StepOutcome.EXPIRED, rules, now)
        case AlreadyAbsent():
            return _succeed(result, StepOutcome.ALREADY_ABSENT, rules, now)
        case Retained(basis=basis):
            return _succeed(result, StepOutcome.RETAINED, rules, now, basis)
        case _:
            return _reject_answer(result)


def _reject_answer(result: Result) -> Decision:
    return abandon(result, ResolverError.__name__, UNKNOWN_ANSWER)


def _succeed(
    result: Result, outcome: StepOutcome, rules: Rules, now: datetime, basis: str | None = None
) -> Decision:
    entry = result.entry
    evidence = evidence_of(outcome, result.verification)
    events = [_success_event(entry.operation, entry.resolver, outcome, entry.attempts, basis, evidence)]
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
def _success_event(
    operation: OutboxOperation,
    resolver: str,
    outcome: StepOutcome,
    attempts: int,
    basis: str | None,
    evidence: Evidence | None,
) -> Event:
    # Thousands of entries end alike. An event is frozen, so those that say the same may be the same.
    return event_for(operation, StepSucceeded)(
        resolver=resolver, outcome=outcome, attempts=attempts, retained_basis=basis, evidence=evidence
    )


def park(result: Result, until: datetime, rules: Rules, now: datetime) -> Decision:
    """Park the entry until the system says the data will be gone."""
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


def _await_person(result: Result, by: datetime, rules: Rules, now: datetime) -> Decision:
    """Park the entry for a person. When it comes back, nobody has attested it in time."""
    entry = result.entry
    if entry.times_parked:
        return abandon(result, "AttestationOverdue", "attestation_overdue", DeadLetterDomain.ATTESTATION)
    by = max(by if by.tzinfo else by.replace(tzinfo=UTC), now + rules.policy.wait(1))
    return Decision(
        result,
        EntryUpdate(OutboxStatus.SCHEDULED, gate=by, times_parked=1),
        AttemptOutcome.SCHEDULED,
        events=(AttestationAwaited(operation=entry.operation, resolver=entry.resolver, by=by),),
    )


def _after_failure(result: Result, failure: CallFailure, rules: Rules, now: datetime) -> Decision:
    match failure.kind:
        case FailureKind.PERMANENT:
            return abandon(result, failure.error, failure.code)
        case FailureKind.CREDENTIALS:
            return _wait_for_credentials(result, failure, rules, now)
        case FailureKind.BREAKER_OPEN:
            retry_at = failure.retry_at or now + rules.policy.wait(1)
            return _return_attempt(result, failure, retry_at, rules, now)
        case FailureKind.TRANSIENT | FailureKind.RATE_LIMITED if result.trial and result.retry_at:
            # It says something about the system, not about the entry. But where calling twice does harm, a
            # call that may have been made is not made again, trial or not.
            if not rules.must_not_repeat:
                return _return_attempt(result, failure, result.retry_at, rules, now)
    if code := _reason_not_to_repeat(failure, rules):
        return abandon(result, failure.error, code)
    if failure.kind is FailureKind.CANCELLED:
        return _return_attempt(result, failure, now, rules, now)
    return _retry_or_abandon(result, failure, rules, now)


def _reason_not_to_repeat(failure: CallFailure, rules: Rules) -> str | None:
    """Why such a call is not made again, as a code for the dead letter; None if it may be."""
    status = failure.status_code
    if status in RETRYABLE and status not in rules.policy.retry_status_codes:
        return f"http_{status}"
    return NOT_IDEMPOTENT if rules.must_not_repeat else None


def _retry_or_abandon(result: Result, failure: CallFailure, rules: Rules, now: datetime) -> Decision:
    """Another attempt, as long as there are any left and the entry is not too old by then."""
    entry, policy = result.entry, rules.policy
    if entry.attempts >= policy.max_attempts:
        return abandon(result, failure.error, "attempts_exhausted")
    gate = now + max(policy.wait(max(entry.attempts, 1)), failure.retry_after or timedelta(0))
    if result.retry_at:
        gate = max(gate, result.retry_at)  # a trial that failed for an unknown reason
    if gate > entry.aging_since + policy.max_age:
        return abandon(result, failure.error, "max_age")
    return retry_later(result, failure.error, gate)


def _wait_for_credentials(result: Result, failure: CallFailure, rules: Rules, now: datetime) -> Decision:
    """Return the attempt and pause the resolver: one rotated password must not abandon a backlog.

    Refused credentials are refused for every entry alike. A person resumes the resolver.
    """
    entry = result.entry
    if now > entry.aging_since + rules.policy.max_age:
        return abandon(result, failure.error, "max_age")
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


def _return_attempt(
    result: Result, failure: CallFailure, retry_at: datetime, rules: Rules, now: datetime
) -> Decision:
    """Retry without using up the attempt: a breaker was open, it was a trial, or we cancelled.

    A vendor that is down for days abandons nothing before its age does.
    """
    entry = result.entry
    if now > entry.aging_since + rules.policy.max_age:
        return abandon(result, failure.error, "max_age")
    return Decision(
        result,
        EntryUpdate(
            OutboxStatus.PENDING,
            gate=max(retry_at, now + (failure.retry_after or timedelta(0))),
            attempts=max(entry.attempts - 1, 0),
            last_error=failure.error,
            times_parked=entry.times_parked,
        ),
        AttemptOutcome.CIRCUIT_OPEN
        if failure.kind is FailureKind.BREAKER_OPEN
        else _attempt_outcome(failure),
    )


def _attempt_outcome(failure: CallFailure | None) -> AttemptOutcome:
    return AttemptOutcome.TIMEOUT if failure and failure.timed_out else AttemptOutcome.FAILURE


def retry_later(result: Result, error: str, gate: datetime) -> Decision:
    """Retry the call at that moment. `error` is a class name."""
    entry = result.entry
    return Decision(
        result,
        EntryUpdate(
            OutboxStatus.FAILED,
            gate=gate,
            attempts=entry.attempts,
            last_error=as_code(error, 255),
            times_parked=entry.times_parked,
        ),
        _attempt_outcome(result.failure),
    )


def abandon(
    result: Result, error: str, code: str, domain: DeadLetterDomain = DeadLetterDomain.EXTERNAL_CALL
) -> Decision:
    """Give the entry up, with an event and a dead letter. `error` is a class name."""
    entry, name = result.entry, as_code(error, 255)
    return Decision(
        result,
        EntryUpdate(
            OutboxStatus.ABANDONED, attempts=entry.attempts, last_error=name, times_parked=entry.times_parked
        ),
        _attempt_outcome(result.failure),
        code=code,
        events=(
            event_for(entry.operation, StepFailed)(
                resolver=entry.resolver, error=name, code=code, attempts=entry.attempts
            ),
        ),
        failures=(domain,),
    )
