"""A notice takes ids, words and counts, and nothing else; and each is told in plain words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from effaced.model import NOTICES, OutboxOperation, RequestKind, StepOutcome, new_id
from effaced.notify import notices, words
from effaced.notify.notices import Notice
from effaced.notify.target import TEST, Outgoing
from effaced.notify.write import payload_of

STEP = {"entry_id": new_id(), "resolver": "crm", "operation": OutboxOperation.ERASE, "attempts": 2}
MOMENT = datetime(2026, 3, 3, 9, 30, tzinfo=UTC)
LETTER = {"dead_letter_id": new_id(), "error": "Rejected", "resolver": "crm", "attempts": 1}
CAST: list[tuple[Notice, str]] = [
    (notices.EntryAbandoned(**LETTER), "The call to crm was given up after 1 try (Rejected)."),
    (
        notices.VerificationFailed(**LETTER | {"error": "StillPresent"}),
        "crm reported the data as erased, but when asked again it still had them.",
    ),
    (
        notices.VerificationFailed(**LETTER | {"error": "ReadBackNotPossible"}),
        "crm reported the data as erased, but it could not be asked whether that is so",
    ),
    (
        notices.ExecutionFailed(dead_letter_id=new_id(), error="IntegrityError", attempts=1),
        "The company's own database could not be changed (IntegrityError). Nothing was changed,",
    ),
    (
        notices.AttestationOverdue(**LETTER),
        "What has to be done by hand at crm was not confirmed in time (Rejected).",
    ),
    (
        notices.ResolverPaused(resolver="crm", code="credentials_refused"),
        "No more calls are made to crm (credentials_refused).",
    ),
    (notices.ResolverPaused(resolver="*", code="by_hand"), "No more calls are made to any system (by_hand)."),
    (
        notices.AbsenceSpiked(resolver="crm", absent=1_900, answers=2_000),
        "Of the last 2,000 people crm said of 1,900 that they were not there, which",
    ),
    (
        notices.BreakerOpened(breaker="resolver:crm", reason="consecutive_failures"),
        "Calls to crm are held back (consecutive_failures). Nothing is sent to it for now.",
    ),
    (
        notices.BreakerClosed(breaker="host:api.example", reason="trials_succeeded"),
        "api.example is called again (trials_succeeded). What has waited follows.",
    ),
    (
        notices.RequestCompleted(operation=OutboxOperation.ERASE),
        "Every call that the request needed has succeeded, and nothing is left to verify.",
    ),
    (
        notices.RequestReceived(kind=RequestKind.ERASURE, due_at=MOMENT),
        "A request (erasure) was received. It is due on 2026-03-03T09:30:00.000Z.",
    ),
    (
        notices.RequestApproved(kind=RequestKind.ERASURE),
        "Nothing stands in the way of executing a request any more.",
    ),
    (notices.RequestExecuted(kind=RequestKind.ERASURE), "The company's own database was changed."),
    (notices.RequestCancelled(kind=RequestKind.ERASURE), "A request was closed without being executed."),
    (
        notices.RequestVerified(kind=RequestKind.ERASURE, calls=3),
        "A read-back has confirmed each of the request's calls (3).",
    ),
    (notices.StepSucceeded(**STEP, outcome=StepOutcome.ERASED), "The call to crm succeeded (erased)."),
    (notices.StepScheduled(**STEP, until=MOMENT), "crm is called again on 2026-03-03T09:30:00.000Z."),
    (
        notices.StepFailed(**STEP, error="Timeout", next_attempt_at=MOMENT),
        "The call to crm failed after 2 tries (Timeout). It is made again on",
    ),
    (
        notices.StepAbandoned(**STEP, error="Rejected", code="http_422"),
        "The call to crm was given up after 2 tries (Rejected, http_422).",
    ),
]


def outgoing(notice: Notice) -> Outgoing:
    facts = payload_of(notice)
    return Outgoing(new_id(), notice.type, datetime(2026, 3, 2, tzinfo=UTC), facts, None, "ER-7")


@pytest.mark.parametrize(("notice", "sentence"), CAST, ids=lambda value: getattr(value, "type", ""))
def test_is_told_in_plain_words(notice: Notice, sentence: str) -> None:
    message = outgoing(notice)
    assert sentence in " ".join(words.text(message, None).split())
    assert words.subject(message).startswith("effaced: ")
    assert words.subject(message).endswith("(ER-7)")


def test_every_type_has_an_example_here() -> None:
    assert {notice.type for notice, _ in CAST} == set(NOTICES)


def test_a_test_message_says_that_it_is_one() -> None:
    message = Outgoing(new_id(), TEST, datetime(2026, 3, 2, tzinfo=UTC), {})
    assert words.subject(message) == "effaced: a test message"


@pytest.mark.parametrize("annotation", [str, dict, object, list[str], str | None, bytes, float])
def test_a_notice_with_room_for_anything_cannot_be_declared(annotation: object) -> None:
    with pytest.raises(TypeError, match="can't hold"):
        type("Loose", (Notice,), {"__annotations__": {"detail": annotation}, "__module__": __name__})


@pytest.mark.parametrize("text", ["anna@people.example", "could not find Anna", "", "x" * 256])
def test_an_error_is_a_class_name_and_no_message(text: str) -> None:
    with pytest.raises(ValidationError):
        notices.EntryAbandoned(**LETTER | {"error": text})


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(ValidationError):
        notices.EntryAbandoned(**LETTER, email="anna@people.example")
