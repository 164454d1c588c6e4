"""What becomes of an entry after its call: a pure function of the entry, the result and the rules."""

from __future__ import annotations

import re
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
from effaced.breakers.model import BreakerOpenError
from effaced.errors import ResolverError
from effaced.model import (
    AttemptOutcome,
    DeadLetterDomain,
    Evidence,
    OutboxOperation,
    OutboxStatus,
    StepOutcome,
    Verification,
    evidence_of,
)
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    AwaitsPerson,
    CredentialsRefused,
    Erased,
    Rectified,
    Retained,
    Scheduled,
)
from effaced.retries.policy import RETRYABLE
from effaced.saga.result import Decision, Result, Rules

# The code of a call that may have been made and must not be made again.
NOT_IDEMPOTENT = "not_idempotent"


def decide(result: Result, rules: Rules, now: datetime) -> Decision:
    """Succeeded, parked, to be tried again, or abandoned. Never raises, whatever a resolver answered."""
    try:
        return _decide(result, rules, now)
    except (
        Exception
    ) as error:  # an answer that can't be written down is the resolver's fault, not the flush's
        return abandoned(result, class_name(error), "bad_answer")


def _decide(result: Result, rules: Rules, now: datetime) -> Decision:
    if result.error is not None:
        return _after_error(result, result.error, rules, now)
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
            return _succeeded(result, StepOutcome.ERASED, rules, now, None if basis is None else _word(basis))
        case AlreadyAbsent() if result.entry.times_parked:
            seen = result.verification is Verification.CONFIRMED
            return _succeeded(
                result, StepOutcome.VERIFIED_EXPIRY if seen else StepOutcome.EXPIRED, rules, now
            )
        case AlreadyAbsent():
            return _succeeded(result, StepOutcome.ALREADY_ABSENT, rules, now)
        case Retained(basis=basis):
            return _succeeded(result, StepOutcome.RETAINED, rules, now, _word(basis))
        case _:
            return _unknown(result)


def _unknown(result: Result) -> Decision:
    return abandoned(result, ResolverError.__name__, "unknown_answer")


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
        OutboxStatus.SUCCEEDED,
        AttemptOutcome.SUCCESS,
        attempts=entry.attempts,
        outcome=outcome,
        retained_basis=basis,
        times_parked=entry.times_parked,
        verification=result.verification,
        verify_due_at=now + rules.policy.wait(1) if result.verification is Verification.DUE else None,
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
        OutboxStatus.SCHEDULED,
        AttemptOutcome.SCHEDULED,
        gate=horizon,
        attempts=0,
        times_parked=entry.times_parked + 1,
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
        OutboxStatus.SCHEDULED,
        AttemptOutcome.SCHEDULED,
        gate=by,
        attempts=0,
        times_parked=1,
        events=(AttestationAwaited(operation=entry.operation, resolver=entry.resolver, by=by),),
    )


def _after_error(result: Result, error: BaseException, rules: Rules, now: datetime) -> Decision:
    entry = result.entry
    if isinstance(error, ResolverError):
        return abandoned(result, class_name(error), _word(error.code))
    if isinstance(error, CredentialsRefused):
        return _refused(result, error, rules, now)
    if isinstance(error, BreakerOpenError):
        return _given_back(result, AttemptOutcome.CIRCUIT_OPEN, error.retry_at, rules, now)
    # Where calling twice does harm, a call that may have been made is not made again, trial or not.
    if result.trial and result.retry_at is not None and not rules.once:
        outcome = AttemptOutcome.TIMEOUT if result.timed_out else AttemptOutcome.FAILURE
        return _given_back(result, outcome, result.retry_at, rules, now)
    policy = rules.policy
    if result.status_code in RETRYABLE and result.status_code not in policy.retry_status_codes:
        return abandoned(result, class_name(error), f"http_{result.status_code}")
    if rules.once:
        return abandoned(result, class_name(error), NOT_IDEMPOTENT)
    if entry.attempts >= policy.max_attempts:
        return abandoned(result, class_name(error), "attempts_exhausted")
    gate = now + max(policy.wait(max(entry.attempts, 1)), result.retry_after or timedelta(0))
    if gate > entry.aging_since + policy.max_age:
        return abandoned(result, class_name(error), "max_age")
    return failed(result, class_name(error), gate)


def _refused(result: Result, error: BaseException, rules: Rules, now: datetime) -> Decision:
    """Credentials are refused to everybody alike: one rotated password must not abandon a backlog.

    The entry waits where it was, with its attempt, and the resolver is paused until a person resumes it.
    """
    entry = result.entry
    if now > entry.aging_since + rules.policy.max_age:
        return abandoned(result, class_name(error), "max_age")
    return Decision(
        result,
        OutboxStatus.PENDING,
        AttemptOutcome.FAILURE,
        attempts=max(entry.attempts - 1, 0),
        last_error=class_name(error),
        times_parked=entry.times_parked,
        pauses=True,
    )


def _given_back(
    result: Result, outcome: AttemptOutcome, retry_at: datetime, rules: Rules, now: datetime
) -> Decision:
    """A breaker stood in the way, or the entry served as its trial: it waits, with its attempt.

    Until when, the breaker says; a vendor that is down for days abandons nothing before its age does.
    """
    entry, name = result.entry, class_name(result.error) if result.error else ""
    if now > entry.aging_since + rules.policy.max_age:
        return abandoned(result, name, "max_age")
    return Decision(
        result,
        OutboxStatus.PENDING,
        outcome,
        gate=max(retry_at, now + (result.retry_after or timedelta(0))),
        attempts=max(entry.attempts - 1, 0),
        last_error=name,
        times_parked=entry.times_parked,
    )


def failed(result: Result, error: str, gate: datetime) -> Decision:
    """To be tried again. `error` is a class name."""
    entry = result.entry
    return Decision(
        result,
        OutboxStatus.FAILED,
        AttemptOutcome.TIMEOUT if result.timed_out else AttemptOutcome.FAILURE,
        gate=gate,
        attempts=entry.attempts,
        last_error=_word(error, 255),
        times_parked=entry.times_parked,
    )


def abandoned(
    result: Result, error: str, code: str, domain: DeadLetterDomain = DeadLetterDomain.EXTERNAL_CALL
) -> Decision:
    """Given up, loudly: an event and a dead letter. `error` is a class name."""
    entry, name = result.entry, _word(error, 255)
    return Decision(
        result,
        OutboxStatus.ABANDONED,
        AttemptOutcome.TIMEOUT if result.timed_out else AttemptOutcome.FAILURE,
        attempts=entry.attempts,
        last_error=name,
        code=code,
        times_parked=entry.times_parked,
        events=(
            told(entry.operation, StepFailed)(
                resolver=entry.resolver, error=name, code=code, attempts=entry.attempts
            ),
        ),
        failures=(domain,),
    )


def class_name(error: BaseException) -> str:
    """All that is kept of an error: messages quote what people typed."""
    return _word(type(error).__name__, 255)


def _word(text: str, longest: int = 64) -> str:
    """A machine word as the trail takes it; third parties may have put anything there."""
    return re.sub(r"[^A-Za-z0-9_.:\-]", "_", str(text))[:longest] or "unnamed"
