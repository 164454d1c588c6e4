"""Four kinds of evidence, and one rule that tells them apart."""

from __future__ import annotations

from itertools import product

import pytest

from effaced.model import Evidence, StepOutcome, Verification, evidence_of

REPORTED = [
    StepOutcome.ERASED,
    StepOutcome.ALREADY_ABSENT,
    StepOutcome.EXPIRED,
    StepOutcome.VERIFIED_EXPIRY,
    StepOutcome.RETAINED,
    StepOutcome.RECTIFIED,
]


@pytest.mark.parametrize("outcome", REPORTED)
@pytest.mark.parametrize(
    ("verification", "evidence"),
    [
        (Verification.CONFIRMED, Evidence.CONFIRMED),
        (None, Evidence.VENDOR_WORD),
        (Verification.ATTESTED, Evidence.ATTESTED),
        (Verification.UNVERIFIABLE, Evidence.NOT_VERIFIABLE),
        (Verification.DUE, None),
        (Verification.STILL_PRESENT, None),
    ],
)
def test_what_a_vendor_reported_rests_on_what_the_read_back_said(
    outcome: StepOutcome, verification: Verification | None, evidence: Evidence | None
) -> None:
    assert evidence_of(outcome, verification) is evidence


def test_nothing_but_our_own_read_back_counts_as_confirmed() -> None:
    confirmed = {
        verification
        for outcome, verification in product([None, *StepOutcome], [None, *Verification])
        if evidence_of(outcome, verification) is Evidence.CONFIRMED
    }
    assert confirmed == {Verification.CONFIRMED}


def test_what_was_done_by_hand_is_attested() -> None:
    assert evidence_of(StepOutcome.ATTESTED, None) is Evidence.ATTESTED


@pytest.mark.parametrize("outcome", [None, StepOutcome.SUPERSEDED])
def test_what_is_not_done_or_not_needed_rests_on_nothing(outcome: StepOutcome | None) -> None:
    assert evidence_of(outcome, None) is None
