"""Every type of event has a sentence, and every state a word."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum

import pytest

from effaced import model
from effaced.audit import events
from effaced.console.audit.sentences import GLOSSARY, describe_event
from effaced.console.words import BADGES, LABELS, badge, label
from effaced.datamap.model.data_map import Action
from effaced.model import (
    AttemptOutcome,
    CheckReason,
    DeadLetterDomain,
    DeadLetterStatus,
    Evidence,
    OutboxOperation,
    OutboxStatus,
    ReadBackProof,
    RequestKind,
    Role,
    StepOutcome,
    TargetChange,
    Verification,
    new_id,
)
from effaced.requests.read import Blocker

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
HASH = "0" * 64
CAST: list[tuple[events.Event, str]] = [
    (
        events.RequestReceived(kind=RequestKind.ERASURE, approvals_needed=2, due_at=NOON, datamap_hash=HASH),
        "Erasure request received, due by 2 Mar 2026. Needs 2 approvals.",
    ),
    (
        events.RequestReceived(
            kind=RequestKind.RECTIFICATION, approvals_needed=0, due_at=NOON, datamap_hash=HASH
        ),
        "Rectification request received, due by 2 Mar 2026. Needs no approval.",
    ),
    (events.RequestRepeated(), "The same person asked again in another request."),
    (
        events.RequestDuplicate(),
        "Duplicate: an erasure of this person is already open; this request is completed with it.",
    ),
    (events.DuplicateCompleted(), "Completed together with the request that it is a duplicate of."),
    (
        events.DuplicateReleased(),
        "No longer a duplicate: the earlier request does not cover it, so it needs a review.",
    ),
    (events.RequestCancelled(), "Cancelled before it was executed."),
    (events.SubjectConfirmed(), "Confirmed that the row under the person's key is still theirs."),
    (events.RequestApproved(approvals_given=1, approvals_needed=2), "Approved (1 of 2)."),
    (
        events.LocalErasureExecuted(
            datamap_hash=HASH,
            tables=(
                events.LocalTableErased(table="orders", action="deleted", rows=2),
                events.LocalTableErased(table="orders", action="detached", rows=1),
                events.LocalTableErased(table="invoices", action="retained", rows=9),
            ),
            retained=(),
            external_calls=1,
            without_reference=(),
        ),
        "Your database changed: 3 rows in 1 table. 1 external call queued.",
    ),
    (
        events.LocalErasureExecuted(
            datamap_hash=HASH,
            tables=(events.LocalTableErased(table="orders", action="deleted", rows=2),),
            retained=(
                events.CellRetained(table="invoices", column="address", basis="tax law", rows=2),
                events.CellRetained(table="invoices", column="name", basis="tax law", rows=2),
                events.CellRetained(table="tickets", column="name", basis="tax law", rows=0),
            ),
            external_calls=0,
            without_reference=(),
        ),
        "Your database changed: 2 rows in 1 table. Kept by law: 2 rows in invoices. 0 external calls queued.",
    ),
    (
        events.LocalErasureBegun(
            datamap_hash=HASH,
            tables=(events.LocalTableErased(table="visits", action="deleted", rows=5_000_000),),
        ),
        "Very many rows: 5,000,000 rows are changed in batches before the rest.",
    ),
    (
        events.LocalVerified(tables=4),
        "Your database was read back: nothing to be erased is left in 4 tables.",
    ),
    (
        events.LocalVerified(
            tables=8,
            kept=(
                events.LocalTableKept(table="invoices", rows=2),
                events.LocalTableKept(table="bookings"),
            ),
        ),
        "Your database was read back: nothing to be erased is left in 8 tables. "
        "Kept by law: 2 rows in invoices, bookings.",
    ),
    (
        events.LocalRectificationExecuted(
            datamap_hash=HASH,
            fields=("email", "name"),
            tables=(
                events.LocalColumnCorrected(table="customers", columns=("email", "name"), rows=1),
                events.LocalColumnCorrected(table="letters", columns=("email",), rows=2),
            ),
            external_calls=2,
            without_reference=(),
            not_concerned=("files",),
        ),
        "Your database corrected (email, name): 3 rows changed. 2 external calls queued.",
    ),
    (
        events.RequestSuperseded(by=new_id()),
        "Closed: the person was erased, so nothing is left to correct.",
    ),
    (
        events.LocalExecutionFailed(error="IntegrityError", attempts=1),
        "Changing your database failed (IntegrityError), after 1 attempt.",
    ),
    (
        events.RetentionEnded(table="invoices", action="deleted", rows=2, datamap_hash="0" * 64),
        "Retention ended: 2 rows of invoices deleted.",
    ),
    (
        events.RetentionEnded(table="invoices", action="closed", rows=0, datamap_hash="0" * 64),
        "The data map has no table invoices any more: retention of its rows is no longer tracked.",
    ),
    (
        events.RetentionFailed(error="Conflict"),
        "Data whose retention has ended could not be erased (Conflict).",
    ),
    (events.ExecutionRequeued(), "The change of your database will be retried."),
    (
        events.StepSucceeded(resolver="crm", outcome=StepOutcome.ERASED, attempts=1),
        "crm reported the data as erased.",
    ),
    (
        events.StepSucceeded(
            resolver="crm", outcome=StepOutcome.ERASED, attempts=1, evidence=Evidence.CONFIRMED
        ),
        "crm erased the data.",
    ),
    (
        events.StepSucceeded(
            resolver="crm", outcome=StepOutcome.RETAINED, attempts=1, retained_basis="tax_law"
        ),
        "crm keeps the data for a legal reason (tax_law).",
    ),
    (
        events.StepSucceeded(
            resolver="crm",
            outcome=StepOutcome.ERASED,
            attempts=1,
            evidence=Evidence.VENDOR_WORD,
        ),
        "crm reported the data as erased.",
    ),
    (
        events.StepSucceeded(
            resolver="crm", outcome=StepOutcome.EXPIRED, attempts=1, evidence=Evidence.VENDOR_WORD
        ),
        "crm reported the data as expired.",
    ),
    (
        events.StepSucceeded(
            resolver="crm", outcome=StepOutcome.VERIFIED_EXPIRY, attempts=1, evidence=Evidence.CONFIRMED
        ),
        "crm let the data expire, and the read-back confirmed it.",
    ),
    (  # as it was written before the evidence was kept with it
        events.StepSucceeded(resolver="crm", outcome=StepOutcome.VERIFIED_EXPIRY, attempts=1),
        "crm reported the data as expired.",
    ),
    (
        events.StepFailed(resolver="crm", error="TransientFailure", code="attempts_exhausted", attempts=8),
        "crm was abandoned after 8 attempts (TransientFailure, attempts_exhausted).",
    ),
    (
        events.RectificationStepSucceeded(resolver="crm", outcome=StepOutcome.RECTIFIED, attempts=1),
        "crm corrected the data.",
    ),
    (
        events.RectificationStepSucceeded(resolver="crm", outcome=StepOutcome.ALREADY_ABSENT, attempts=1),
        "crm reported that it had nothing to correct.",
    ),
    (
        events.RectificationStepFailed(
            resolver="crm", error="ResolverError", code="cannot_rectify", attempts=1
        ),
        "crm was abandoned after 1 attempt (ResolverError, cannot_rectify).",
    ),
    (
        events.RectificationStepFailed(
            resolver="crm", error="Superseded", code="superseded", attempts=0, superseded_by=new_id()
        ),
        "crm was not called: a later request supersedes the correction.",
    ),
    (
        events.StepAttested(operation=OutboxOperation.ERASE, resolver="archive", prior_status="scheduled"),
        "archive was erased by hand, as attested by an officer.",
    ),
    (
        events.StepAttested(
            operation=OutboxOperation.RECTIFY,
            resolver="crm",
            prior_status="abandoned",
            prior_error="ResolverError",
        ),
        "crm was corrected by hand, as attested by an officer. It had been abandoned (ResolverError).",
    ),
    (
        events.AttestationAwaited(operation=OutboxOperation.ERASE, resolver="archive", by=NOON),
        "archive waits for a person to erase the data there and to attest it by 2 Mar 2026, 12:00.",
    ),
    (
        events.ReferenceRevealed(resolver="archive"),
        "The reference to the person at archive was shown.",
    ),
    (
        events.ExpiryScheduled(resolver="mailing", until=NOON, slips=1, prior_attempts=1),
        "mailing will delete the data by 2 Mar 2026, 12:00. The date has moved 1 time.",
    ),
    (events.ExternallyVerified(resolver="crm"), "Verified: crm no longer holds the data."),
    (events.ExternalVerificationFailed(resolver="crm"), "Not verified: crm still holds the data."),
    (
        events.ReadBackGivenUp(resolver="crm"),
        "Not verifiable: crm could not be asked whether the data is gone. "
        "A person has to verify it again or attest.",
    ),
    (
        events.Requeued(resolver="crm", prior_attempts=8, prior_error="TransientFailure"),
        "crm will be retried with a full set of attempts.",
    ),
    (
        events.ReadBackRequested(resolver="crm"),
        "crm will be called to erase and then read back again.",
    ),
    (
        events.ResolverChecked(
            resolver="crm", proof=ReadBackProof.PROVEN, reason=CheckReason.CANARY_SEEN, canary_erased=False
        ),
        "The read-back of crm is proven: it saw a test person and did not see an invented one.",
    ),
    (
        events.AbsenceSpiked(resolver="crm", absent=1_900, answers=2_000, absent_before=0, answers_before=9),
        "crm suddenly found nobody: it reported 1,900 of 2,000 people as absent.",
    ),
    (
        events.ReadBackAttested(resolver="crm", prior=Verification.STILL_PRESENT),
        "Attested: crm no longer holds the data.",
    ),
    (
        events.MessageRequeued(message_id=new_id(), target="oncall"),
        "The message to oncall will be sent again.",
    ),
    (events.BulkRequeued(chosen=3, requeued=2), "Retried 2 of 3 selected failed steps."),
    (
        events.ErasureCompleted(operation=OutboxOperation.ERASE),
        "Every external call has succeeded.",
    ),
    (
        events.ErasureCompleted(operation=OutboxOperation.ERASE, unverified=1),
        "Every external call has succeeded. 1 step is not verified, so the request stays open.",
    ),
    (
        events.VerificationCompleted(operation=OutboxOperation.ERASE),
        "Completed: nothing is left to verify.",
    ),
    (
        events.RequestReopened(unverified=2),
        "Reopened: the request was shown as completed although 2 steps are not verified.",
    ),
    (
        events.RectificationCompleted(operation=OutboxOperation.RECTIFY),
        "Completed: every external call has succeeded.",
    ),
    (
        events.RectificationCompleted(operation=OutboxOperation.RECTIFY, superseded=1),
        "Completed: 1 call superseded by a later request, the others succeeded.",
    ),
    (
        events.ResolverPaused(resolver="crm", code="officer", until=NOON),
        "crm was paused. No more calls are made; waiting calls lose no attempts. Until 2 Mar 2026, 12:00.",
    ),
    (
        events.ResolverPaused(resolver="crm", code="credentials_refused"),
        "crm was paused automatically: it refused our credentials. No more calls are made; "
        "waiting calls lose no attempts.",
    ),
    (
        events.ResolverResumed(resolver="*"),
        "Everything was resumed.",
    ),
    (
        events.PolicyChanged(
            kind=model.PolicyKind.RETRY,
            scope=model.PolicyScope.RESOLVER,
            key="crm",
            version=2,
            fields=(
                events.PolicyField(field="jitter", was=("false",), now=("false",)),
                events.PolicyField(field="max_attempts", now=("12",)),
                events.PolicyField(field="retry_status_codes", was=("429", "503"), now=("429",)),
            ),
        ),
        "The retry policy for crm was changed: max_attempts as configured to 12, "
        "retry_status_codes 2 values to 429.",
    ),
    (
        events.PolicyUndone(
            kind=model.PolicyKind.RATE,
            scope=model.PolicyScope.GLOBAL,
            key="*",
            version=3,
            fields=(events.PolicyField(field="rate_per_second", was=("8.0",)),),
        ),
        "A change of the rate limit for everything was undone: rate_per_second 8.0 to as configured.",
    ),
    (
        events.BreakerForcedOpen(breaker="resolver:crm", previous="closed", until=NOON),
        "The breaker of crm was pinned open: no calls go out until 2 Mar 2026, 12:00.",
    ),
    (
        events.BreakerForcedClosed(breaker="host:api.example", previous="open", until=NOON),
        "The breaker of the host api.example was pinned closed: all calls go out until 2 Mar 2026, 12:00.",
    ),
    (
        events.BreakerUnpinned(breaker="resolver:crm", previous="open"),
        "The breaker of crm was unpinned.",
    ),
    (
        events.BreakerDeleted(breaker="host:api.example", previous="open"),
        "The breaker of the host api.example was deleted.",
    ),
    (
        events.BreakerReset(breaker="resolver:crm", previous="open"),
        "The breaker of crm was reset and is closed.",
    ),
    (
        events.DeadLetterOpened(
            dead_letter_id=new_id(), domain=DeadLetterDomain.VERIFICATION, error="StillPresent"
        ),
        "A step failed permanently: verification, StillPresent.",
    ),
    (
        events.DeadLetterDecided(
            dead_letter_id=new_id(), prior=DeadLetterStatus.PENDING, status=DeadLetterStatus.RESOLVED
        ),
        "A failed step was open and is now resolved.",
    ),
    (
        events.DeadLetterAssigned(dead_letter_id=new_id(), officer_id=new_id()),
        "A failed step was assigned to an officer.",
    ),
    (events.DeadLetterAssigned(dead_letter_id=new_id()), "A failed step was unassigned."),
    (events.DeadLetterNoted(dead_letter_id=new_id()), "A note was added to a failed step."),
    (events.DeadLettersArchived(count=2), "2 failed steps archived."),
    (
        events.DeadLetterPurged(dead_letter_id=new_id(), domain=DeadLetterDomain.MESSAGE, error="Timeout"),
        "An archived failed step was deleted: message, Timeout.",
    ),
    (events.DeadLettersPurged(count=1), "1 archived failed step deleted."),
    (
        events.RedriveStarted(redrive_id=new_id(), chosen=3, force=True),
        "A bulk retry of 3 failed steps was started, including those whose retries were used up.",
    ),
    (
        events.RedriveEnded(redrive_id=new_id(), requeued=2, skipped=1, cancelled=False),
        "The bulk retry was finished: 2 retried, 1 skipped.",
    ),
    (
        events.OfficerCreated(officer_id=new_id(), role=Role.AUDITOR),
        "An account was created with the role auditor.",
    ),
    (events.OfficerDeactivated(officer_id=new_id()), "An account was deactivated and its sessions ended."),
    (events.PasswordChanged(officer_id=new_id()), "A password was changed and its sessions ended."),
    (events.SignedIn(officer_id=new_id()), "Signed in."),
    (
        events.SignInRefused(officer_id=None, why="unknown_officer"),
        "A sign-in was refused: no officer has that address.",
    ),
    (
        events.ApiKeyCreated(api_key_id=new_id(), approvals_needed=0),
        "An API key was created; its requests need 0 approvals.",
    ),
    (
        events.ApiKeyCreated(api_key_id=new_id(), approvals_needed=1, officer_id=new_id()),
        "An API key was created; its requests need 1 approval. It decides in an officer's name.",
    ),
    (
        events.ApiKeyCreated(api_key_id=new_id(), approvals_needed=0, sandbox=True),
        "A sandbox API key was created; it executes nothing.",
    ),
    (
        events.RequestApproved(approvals_given=1, approvals_needed=1, api_key_id=new_id()),
        "Approved (1 of 1) over the API.",
    ),
    (
        events.SignInRefused(officer_id=None, why="locked", count=1_200, since=NOON),
        "1,200 sign-ins were refused since 2 Mar 2026, 12:00."
        " The reason for the last: the account was locked after wrong passwords.",
    ),
    (events.ApiKeyRevoked(api_key_id=new_id()), "An API key was revoked."),
    (
        events.MessageTargetChanged(
            target_id=new_id(), api_key_id=new_id(), change=TargetChange.SECRET_ROTATED
        ),
        "A message target of an API key was given a new secret.",
    ),
    (events.SubjectSearched(kind="email", found=1), "Looked a person up by email: 1 request found."),
    (events.NoteForgotten(note_id=new_id()), "A note was erased; the events that refer to it stay."),
    (
        events.AuditExported(format="csv", events_up_to=1234),
        "Exported the audit trail as csv, up to event 1,234.",
    ),
]


def moment(at: datetime) -> str:
    return f"{at.day} {at:%b %Y, %H:%M}"


@pytest.mark.parametrize(("event", "sentence"), CAST, ids=lambda value: getattr(value, "type", ""))
def test_an_event_is_told_in_plain_words(event: events.Event, sentence: str) -> None:
    _, told = describe_event(event.type, event.model_dump(mode="json", exclude_none=True), moment)
    assert told == sentence


def test_every_type_of_event_has_a_sentence_and_an_example_here() -> None:
    ours = {name for name, event in events.TYPES.items() if event.__module__.startswith("effaced.")}
    assert set(GLOSSARY) == ours
    assert {event.type for event, _ in CAST} == ours


@pytest.mark.parametrize("event_type", ["FROM_THE_FUTURE", "REQUEST_APPROVED"])
def test_an_event_this_version_does_not_understand_is_named_and_not_hidden(event_type: str) -> None:
    _, told = describe_event(event_type, {"unknown": 1}, moment)
    assert told == event_type.replace("_", " ").capitalize() + "."


# Not on any page: what a call is for is said in a sentence, why it failed by its class and code. Exports as
# jobs are the API's.
NOT_SHOWN = (
    StrEnum,
    OutboxOperation,
    model.CallRole,
    model.FailureKind,
    model.ExportFormat,
    model.ExportStatus,
)


def test_every_state_has_a_word() -> None:
    shown = [
        (words, member.value)
        for words in vars(model).values()
        if isinstance(words, type) and issubclass(words, StrEnum) and words not in NOT_SHOWN
        for member in words
    ]
    assert [key for key in shown if key not in LABELS] == []
    assert [member for member in Blocker if (Blocker, member.value) not in BADGES] == []
    assert [member for member in Action if (Action, member.value) not in BADGES] == []


def test_states_that_are_spelled_alike_keep_their_own_words() -> None:
    assert badge(OutboxStatus.PENDING).word == "Queued"
    assert badge(DeadLetterStatus.PENDING).word == "Open"
    assert label(OutboxStatus.SCHEDULED) == "Waiting at vendor"
    assert label(AttemptOutcome.SCHEDULED) == "was scheduled for a later date"
