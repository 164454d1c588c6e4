"""What becomes of an entry after its call: every answer and every kind of failure, without a database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from effaced.audit.events import (
    AttestationAwaited,
    ExpiryScheduled,
    ExternallyVerified,
    ExternalVerificationFailed,
    RectificationStepFailed,
    RectificationStepSucceeded,
    StepFailed,
    StepSucceeded,
)
from effaced.breakers.admitted import Admission
from effaced.breakers.model import BreakerRole
from effaced.model import (
    AttemptOutcome,
    DeadLetterDomain,
    Evidence,
    FailureKind,
    OutboxOperation,
    OutboxStatus,
    StepOutcome,
    SubjectKey,
    Verification,
    new_id,
)
from effaced.outbox.entry import Entry
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    Answer,
    AwaitsPerson,
    Erased,
    Rectified,
    Retained,
    Scheduled,
)
from effaced.retries.policy import RetryPolicy
from effaced.saga.answers import CallFailure
from effaced.saga.decide import decide, retry_later
from effaced.saga.result import Decision, ReadBack, Result, Rules

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))
# Waits of 30 s, 60 s, 120 s, ... up to an hour; eight attempts; 25 days.
RULES = Rules()
ONCE = Rules(idempotent=False)
TRIAL = Admission(1, BreakerRole.ERASE, trial=True)


def entry(**changes: Any) -> Entry:
    made = Entry(
        entry_id=new_id(),
        request_id=new_id(),
        operation=OutboxOperation.ERASE,
        resolver="crm",
        subject=SubjectKey("k1", "0" * 64),
        ref_kind="crm",
        ref_sealed=b"sealed",
        status=OutboxStatus.IN_FLIGHT,
        attempts=1,
        token=1,
        crashes=0,
        gate=NOON + MINUTE,
        enqueued_at=NOON - HOUR,
        aging_since=NOON - HOUR,
        last_attempt_at=None,
        last_error=None,
        times_parked=0,
    )
    return made._replace(**changes)


def failure(kind: FailureKind, **more: Any) -> CallFailure:
    return CallFailure(kind, "TimeoutError", **more)


def after(failed: CallFailure, rules: Rules = RULES, of: Entry | None = None, **more: Any) -> Decision:
    return decide(Result(of or entry(), failure=failed, **more), rules, NOON)


class TestAnswers:
    @pytest.mark.parametrize(
        ("answer", "outcome", "basis"),
        [
            (Erased(), StepOutcome.ERASED, None),
            (Erased(retained="tax_law"), StepOutcome.ERASED, "tax_law"),
            (AlreadyAbsent(), StepOutcome.ALREADY_ABSENT, None),
            (Retained("tax_law"), StepOutcome.RETAINED, "tax_law"),
        ],
    )
    def test_an_erasure_succeeds_with_the_answers_outcome(
        self, answer: Answer, outcome: StepOutcome, basis: str | None
    ) -> None:
        made = decide(Result(entry(attempts=3), answer), RULES, NOON)
        assert (made.status, made.update.outcome, made.update.retained_basis) == (
            OutboxStatus.SUCCEEDED,
            outcome,
            basis,
        )
        assert made.attempt is AttemptOutcome.SUCCESS
        (event,) = made.events
        assert event == StepSucceeded(
            resolver="crm", outcome=outcome, attempts=3, retained_basis=basis, evidence=Evidence.VENDOR_WORD
        )

    @pytest.mark.parametrize(
        ("seen", "outcome"),
        [(None, StepOutcome.EXPIRED), (Verification.CONFIRMED, StepOutcome.VERIFIED_EXPIRY)],
    )
    def test_a_parked_entry_that_is_absent_has_expired(
        self, seen: Verification | None, outcome: StepOutcome
    ) -> None:
        read_back = ReadBack(NOON, seen) if seen else None
        made = decide(Result(entry(times_parked=1), AlreadyAbsent(), read_back=read_back), RULES, NOON)
        assert (made.status, made.update.outcome) == (OutboxStatus.SUCCEEDED, outcome)
        assert made.update.times_parked == 1

    def test_a_confirmed_read_back_is_an_event_of_its_own(self) -> None:
        made = decide(
            Result(entry(), Erased(), read_back=ReadBack(NOON, Verification.CONFIRMED)), RULES, NOON
        )
        assert [type(each) for each in made.events] == [StepSucceeded, ExternallyVerified]
        assert (made.update.verification, made.failures) == (Verification.CONFIRMED, ())

    def test_a_read_back_that_still_finds_the_person_opens_a_dead_letter(self) -> None:
        seen = ReadBack(NOON, Verification.STILL_PRESENT)
        made = decide(Result(entry(), Erased(), read_back=seen), RULES, NOON)
        assert made.status is OutboxStatus.SUCCEEDED
        assert [type(each) for each in made.events] == [StepSucceeded, ExternalVerificationFailed]
        assert (made.failures, made.code) == ((DeadLetterDomain.VERIFICATION,), "still_present")

    def test_a_read_back_that_could_not_be_made_is_due_after_one_wait(self) -> None:
        refused = ReadBack(NOON, failure=failure(FailureKind.CREDENTIALS))
        made = decide(Result(entry(), Erased(), read_back=refused), RULES, NOON)
        assert made.status is OutboxStatus.SUCCEEDED
        assert (made.update.verification, made.update.verify_due_at) == (
            Verification.DUE,
            NOON + 30 * SECOND,
        )
        assert made.pauses

    def test_scheduled_parks_the_entry_until_the_horizon(self) -> None:
        made = decide(Result(entry(attempts=2, times_parked=1), Scheduled(NOON + DAY)), RULES, NOON)
        assert (made.status, made.update.gate) == (OutboxStatus.SCHEDULED, NOON + DAY)
        assert (made.update.attempts, made.update.times_parked) == (0, 2)
        assert made.events == (ExpiryScheduled(resolver="crm", until=NOON + DAY, slips=1, prior_attempts=2),)

    @pytest.mark.parametrize("until", [NOON - DAY, NOON.replace(tzinfo=None) - DAY])
    def test_a_horizon_in_the_past_waits_one_step(self, until: datetime) -> None:
        made = decide(Result(entry(), Scheduled(until)), RULES, NOON)
        assert made.update.gate == NOON + 30 * SECOND

    def test_awaits_person_parks_the_entry_until_the_deadline(self) -> None:
        made = decide(Result(entry(), AwaitsPerson(NOON + DAY)), RULES, NOON)
        assert (made.status, made.update.gate, made.update.times_parked) == (
            OutboxStatus.SCHEDULED,
            NOON + DAY,
            1,
        )
        assert made.events == (
            AttestationAwaited(operation=OutboxOperation.ERASE, resolver="crm", by=NOON + DAY),
        )

    def test_an_attestation_that_did_not_come_in_time_is_a_dead_letter(self) -> None:
        made = decide(Result(entry(times_parked=1), AwaitsPerson(NOON + DAY)), RULES, NOON)
        assert (made.status, made.code) == (OutboxStatus.ABANDONED, "attestation_overdue")
        assert made.failures == (DeadLetterDomain.ATTESTATION,)

    def test_no_answer_is_abandoned(self) -> None:
        made = decide(Result(entry()), RULES, NOON)
        assert (made.status, made.code) == (OutboxStatus.ABANDONED, "unknown_answer")


class TestCorrections:
    CORRECTION = entry(operation=OutboxOperation.RECTIFY)

    @pytest.mark.parametrize(
        ("answer", "outcome"),
        [(Rectified(), StepOutcome.RECTIFIED), (AlreadyAbsent(), StepOutcome.ALREADY_ABSENT)],
    )
    def test_succeed_with_an_event_type_of_their_own(
        self, answer: Answer | Rectified, outcome: StepOutcome
    ) -> None:
        made = decide(Result(self.CORRECTION, answer), RULES, NOON)
        assert (made.status, made.update.outcome) == (OutboxStatus.SUCCEEDED, outcome)
        assert [type(each) for each in made.events] == [RectificationStepSucceeded]

    @pytest.mark.parametrize("answer", [Erased(), Retained("tax_law"), Scheduled(NOON + DAY)])
    def test_take_no_answer_of_an_erasure(self, answer: Answer) -> None:
        made = decide(Result(self.CORRECTION, answer), RULES, NOON)
        assert (made.status, made.code) == (OutboxStatus.ABANDONED, "unknown_answer")
        assert [type(each) for each in made.events] == [RectificationStepFailed]


class TestFailures:
    def test_a_permanent_one_is_abandoned_with_its_code(self) -> None:
        made = after(failure(FailureKind.PERMANENT, code="http_400"))
        assert (made.status, made.code, made.update.last_error) == (
            OutboxStatus.ABANDONED,
            "http_400",
            "TimeoutError",
        )
        assert made.events == (StepFailed(resolver="crm", error="TimeoutError", code="http_400", attempts=1),)
        assert made.failures == (DeadLetterDomain.EXTERNAL_CALL,)

    @pytest.mark.parametrize(
        ("attempts", "wait"), [(1, 30 * SECOND), (2, MINUTE), (3, 2 * MINUTE), (7, 32 * MINUTE)]
    )
    def test_a_transient_one_is_retried_after_a_wait_that_doubles(
        self, attempts: int, wait: timedelta
    ) -> None:
        made = after(failure(FailureKind.TRANSIENT), of=entry(attempts=attempts))
        assert (made.status, made.update.gate, made.update.attempts) == (
            OutboxStatus.FAILED,
            NOON + wait,
            attempts,
        )
        assert (made.events, made.failures) == ((), ())

    @pytest.mark.parametrize("kind", [FailureKind.TRANSIENT, FailureKind.RATE_LIMITED, FailureKind.UNKNOWN])
    def test_the_last_attempt_is_abandoned(self, kind: FailureKind) -> None:
        made = after(failure(kind), of=entry(attempts=8))
        assert (made.status, made.code) == (OutboxStatus.ABANDONED, "attempts_exhausted")

    def test_retry_after_wins_over_a_shorter_wait(self) -> None:
        made = after(failure(FailureKind.RATE_LIMITED, status_code=429, retry_after=HOUR))
        assert made.update.gate == NOON + HOUR

    def test_retry_after_does_not_shorten_the_wait(self) -> None:
        made = after(failure(FailureKind.RATE_LIMITED, status_code=429, retry_after=SECOND))
        assert made.update.gate == NOON + 30 * SECOND

    def test_an_attempt_beyond_the_maximum_age_is_not_waited_for(self) -> None:
        old = entry(aging_since=NOON - 25 * DAY + 29 * SECOND)
        made = after(failure(FailureKind.TRANSIENT), of=old)
        assert (made.status, made.code) == (OutboxStatus.ABANDONED, "max_age")

    def test_an_attempt_just_within_the_maximum_age_is(self) -> None:
        old = entry(aging_since=NOON - 25 * DAY + 30 * SECOND)
        assert after(failure(FailureKind.TRANSIENT), of=old).status is OutboxStatus.FAILED

    def test_a_status_that_the_policy_does_not_retry_is_abandoned(self) -> None:
        rules = Rules(RetryPolicy(retry_status_codes=(429,)))
        made = after(failure(FailureKind.TRANSIENT, status_code=503), rules)
        assert (made.status, made.code) == (OutboxStatus.ABANDONED, "http_503")

    def test_a_timeout_is_an_attempt_of_its_own_kind(self) -> None:
        assert after(failure(FailureKind.TRANSIENT, timed_out=True)).attempt is AttemptOutcome.TIMEOUT
        assert after(failure(FailureKind.TRANSIENT)).attempt is AttemptOutcome.FAILURE


class TestReturnedAttempts:
    """The entry is not at fault, so it keeps its attempt."""

    def test_refused_credentials_pause_the_resolver(self) -> None:
        made = after(failure(FailureKind.CREDENTIALS), of=entry(attempts=8))
        assert (made.status, made.update.gate, made.update.attempts) == (OutboxStatus.PENDING, None, 7)
        assert made.pauses

    def test_an_open_breaker_waits_until_it_admits_calls(self) -> None:
        made = after(failure(FailureKind.BREAKER_OPEN, retry_at=NOON + HOUR))
        assert (made.status, made.update.gate, made.update.attempts) == (
            OutboxStatus.PENDING,
            NOON + HOUR,
            0,
        )
        assert made.attempt is AttemptOutcome.CIRCUIT_OPEN

    def test_an_open_breaker_without_a_moment_waits_one_step(self) -> None:
        assert after(failure(FailureKind.BREAKER_OPEN)).update.gate == NOON + 30 * SECOND

    @pytest.mark.parametrize("kind", [FailureKind.TRANSIENT, FailureKind.RATE_LIMITED])
    def test_a_failed_trial_waits_for_the_next_one(self, kind: FailureKind) -> None:
        made = after(failure(kind), of=entry(attempts=8), admission=TRIAL, retry_at=NOON + HOUR)
        assert (made.status, made.update.gate, made.update.attempts) == (
            OutboxStatus.PENDING,
            NOON + HOUR,
            7,
        )

    def test_a_trial_that_failed_for_an_unknown_reason_is_the_entrys_own(self) -> None:
        made = after(failure(FailureKind.UNKNOWN), admission=TRIAL, retry_at=NOON + HOUR)
        assert (made.status, made.update.gate, made.update.attempts) == (
            OutboxStatus.FAILED,
            NOON + HOUR,
            1,
        )

    def test_our_own_cancellation_is_called_again_at_once(self) -> None:
        made = after(failure(FailureKind.CANCELLED))
        assert (made.status, made.update.gate, made.update.attempts) == (OutboxStatus.PENDING, NOON, 0)

    def test_the_attempts_never_fall_below_zero(self) -> None:
        made = after(failure(FailureKind.CANCELLED), of=entry(attempts=0))
        assert made.update.attempts == 0

    @pytest.mark.parametrize(
        "kind", [FailureKind.CREDENTIALS, FailureKind.BREAKER_OPEN, FailureKind.CANCELLED]
    )
    def test_nothing_waits_beyond_the_maximum_age(self, kind: FailureKind) -> None:
        made = after(failure(kind), of=entry(aging_since=NOON - 25 * DAY - SECOND))
        assert (made.status, made.code) == (OutboxStatus.ABANDONED, "max_age")


class TestCallsThatMustNotBeRepeated:
    @pytest.mark.parametrize(
        "kind",
        [FailureKind.TRANSIENT, FailureKind.RATE_LIMITED, FailureKind.UNKNOWN, FailureKind.CANCELLED],
    )
    def test_are_abandoned_when_they_may_have_been_made(self, kind: FailureKind) -> None:
        made = after(failure(kind), ONCE)
        assert (made.status, made.code) == (OutboxStatus.ABANDONED, "not_idempotent")

    def test_are_abandoned_after_a_failed_trial_too(self) -> None:
        made = after(failure(FailureKind.TRANSIENT), ONCE, admission=TRIAL, retry_at=NOON + HOUR)
        assert (made.status, made.code) == (OutboxStatus.ABANDONED, "not_idempotent")

    @pytest.mark.parametrize("kind", [FailureKind.CREDENTIALS, FailureKind.BREAKER_OPEN])
    def test_wait_where_they_were_certainly_not_made(self, kind: FailureKind) -> None:
        assert after(failure(kind), ONCE).status is OutboxStatus.PENDING

    def test_are_repeated_where_the_operator_says_so(self) -> None:
        allowed = Rules(RetryPolicy(retry_non_idempotent=True), idempotent=False)
        assert after(failure(FailureKind.TRANSIENT), allowed).status is OutboxStatus.FAILED


def test_an_error_is_written_down_as_a_class_name() -> None:
    made = retry_later(Result(entry()), "no such person: anna@people.example", NOON + HOUR)
    assert made.update.last_error == "no_such_person:_anna_people.example"
