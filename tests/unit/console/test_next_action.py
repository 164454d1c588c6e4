"""A request's next action: one sentence that says what has to happen, and who does it."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from effaced.audit.events import RequestSuperseded
from effaced.console.call.page import CallView
from effaced.console.request.next_action import next_action
from effaced.console.request.timeline import Moment, Timeline
from effaced.console.words import Station
from effaced.model import (
    DeadLetterDomain,
    OutboxOperation,
    OutboxStatus,
    RequestKind,
    RequestStatus,
    StepOutcome,
    Verification,
    new_id,
)
from effaced.outbox.read import EntryLine
from effaced.requests.tables import Request

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
R, S, D = RequestStatus, OutboxStatus, DeadLetterDomain
QUIET = Timeline((), shortened=False)


def request(status: RequestStatus = R.RUNNING, **values: Any) -> Request:
    return Request(**{"status": status, "kind": RequestKind.ERASURE, "approvals_needed": 0} | values)


def call(resolver: str, state: Any = S.PENDING, verification: Verification | None = None) -> CallView:
    status = state if isinstance(state, OutboxStatus) else S.PENDING
    done = status is S.SUCCEEDED
    entry = EntryLine(
        entry_id=new_id(),
        request_id=new_id(),
        operation=OutboxOperation.ERASE,
        resolver=resolver,
        status=status,
        outcome=StepOutcome.ERASED if done else None,
        attempts=1,
        gate=None,
        last_attempt_at=None,
        last_error=None,
        times_parked=0,
        ended_at=NOON if done else None,
        retained_basis=None,
        verification=verification,
        verified_at=None,
        verify_due_at=NOON if verification is Verification.DUE else None,
    )
    return CallView(entry, state, max_attempts=8, by_hand=False, instructions=None)


def letter(domain: DeadLetterDomain = D.EXTERNAL_CALL, action: str = "fix_and_requeue") -> Any:
    return SimpleNamespace(domain=domain, recommended_action=action)


def said(of: Request, *calls: CallView, **more: Any) -> str:
    given = {"letters": (), "given": 0, "original": None, "story": QUIET} | more
    return next_action(of, calls, **given)


@pytest.mark.parametrize(
    ("needed", "given", "sentence"),
    [
        (1, 0, "An officer has to approve."),
        (2, 1, "An officer has to approve."),
        (2, 0, "2 officers have to approve."),
    ],
)
def test_as_many_officers_as_are_missing_have_to_approve(needed: int, given: int, sentence: str) -> None:
    assert said(request(R.REVIEW, approvals_needed=needed), given=given) == sentence


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (None, "Nothing for you: your database is changed next."),
        ({"visits": [1, 9]}, "Nothing for you: very many rows are changed in batches, then the rest."),
    ],
)
def test_an_approved_request_waits_for_nobody(counts: Any, sentence: str) -> None:
    assert said(request(R.APPROVED, batch_counts=counts)) == sentence


@pytest.mark.parametrize(
    ("closed_at", "sentence"),
    [
        (NOON, "Nothing: it was completed together with R-1."),
        (
            None,
            "Nothing for you here: it is completed when R-1 is, and reviewed if R-1 is cancelled.",
        ),
    ],
)
def test_a_duplicate_goes_with_its_original_whatever_its_own_status(
    closed_at: datetime | None, sentence: str
) -> None:
    of = request(R.REVIEW, approvals_needed=2, closed_at=closed_at)
    assert said(of, original="R-1", letters=(letter(),)) == sentence


CAUSE = "retry once the cause is fixed"


@pytest.mark.parametrize(
    ("letters", "way_out"),
    [
        ([letter(action="reissue")], "send the correction again, or correct it by hand and attest"),
        (
            [letter(D.LOCAL_EXECUTION, "confirm_or_cancel")],
            "confirm that the row is still the person's, or cancel the request",
        ),
        ([letter(D.ATTESTATION)], "do it by hand and attest, or retry for a new date"),
        ([letter(D.VERIFICATION)], "verify again, or check that the data is gone and attest"),
        ([letter()], CAUSE),
        ([letter(D.ATTESTATION), letter(D.VERIFICATION)], CAUSE),
        ([letter(action="reissue"), letter()], CAUSE),
    ],
)
def test_failed_steps_need_a_decision_and_the_way_out_suits_all_of_them(
    letters: list[Any], way_out: str
) -> None:
    failed = "A failed step needs" if len(letters) == 1 else "2 failed steps need"
    done = call("crm", S.SUCCEEDED)
    assert said(request(), done, letters=tuple(letters)) == f"{failed} a decision: {way_out}."


@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        ([S.PENDING, S.SUCCEEDED], "Nothing for you: the external systems are being called."),
        ([S.SCHEDULED, S.PENDING], "Nothing for you: the external systems are being called."),
        ([S.SCHEDULED, S.SUCCEEDED], "Nothing for you: a will delete the data at a later date."),
        ([S.SCHEDULED, Station.SUPERSEDED], "Nothing for you: a will delete the data at a later date."),
        ([Station.PAUSED, S.PENDING], "a is paused: an officer has to resume it."),
        ([Station.PAUSED, Station.PERSON], "An officer has to do b by hand and attest it below."),
        ([Station.PERSON, Station.PERSON], "An officer has to do a, b by hand and attest it below."),
    ],
)
def test_what_a_person_has_to_do_comes_before_what_needs_nobody(states: list[Any], sentence: str) -> None:
    assert said(request(), *map(call, "ab", states)) == sentence


def test_a_system_with_several_calls_is_named_once() -> None:
    found = said(request(), call("crm", Station.PAUSED), call("crm", Station.PAUSED))
    assert found == "crm is paused: an officer has to resume it."


@pytest.mark.parametrize(
    ("verifications", "sentence"),
    [
        (
            [Verification.DUE, Verification.CONFIRMED],
            "Nothing for you yet: a will be read back again.",
        ),
        (
            [Verification.DUE, Verification.STILL_PRESENT],
            "An officer has to verify b again, or attest that the data is gone there.",
        ),
    ],
)
def test_after_the_last_call_the_read_backs_are_what_is_next(
    verifications: list[Verification], sentence: str
) -> None:
    calls = [call(name, S.SUCCEEDED, each) for name, each in zip("ab", verifications, strict=True)]
    assert said(request(), *calls) == sentence


@pytest.mark.parametrize(
    ("kind", "calls", "sentence"),
    [
        (RequestKind.ERASURE, [], "Nothing: no external system had to be called."),
        (
            RequestKind.ERASURE,
            [call("crm", S.SUCCEEDED, Verification.CONFIRMED), call("mail", S.SUCCEEDED)],
            "Nothing: every external call has succeeded (1 confirmed, 1 on the vendor's word).",
        ),
        (
            RequestKind.RECTIFICATION,
            [call("crm", S.SUCCEEDED)],
            "Nothing: every external call has succeeded.",
        ),
    ],
)
def test_a_completed_request_says_what_it_rests_on(
    kind: RequestKind, calls: list[CallView], sentence: str
) -> None:
    assert said(request(R.COMPLETED, kind=kind), *calls) == sentence


@pytest.mark.parametrize(
    ("moments", "sentence"),
    [
        ((), "Nothing: the request was cancelled."),
        (
            (Moment(NOON, "Closed.", "quiet", "cross", type=RequestSuperseded.type),),
            "Nothing: the person was erased, so nothing is left to correct.",
        ),
    ],
)
def test_a_cancelled_correction_says_if_the_person_was_erased(
    moments: tuple[Moment, ...], sentence: str
) -> None:
    of = request(R.CANCELLED, kind=RequestKind.RECTIFICATION)
    assert said(of, story=Timeline(moments, shortened=False)) == sentence


@pytest.mark.parametrize("status", list(RequestStatus))
def test_every_status_has_a_next_action(status: RequestStatus) -> None:
    assert said(request(status, approvals_needed=1), call("crm")).endswith(".")
