"""The rules that need no database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from effaced.deadletters.rules import (
    ACTIVE,
    DECISIONS,
    OPEN,
    SETTLED,
    SLA,
    UNRESOLVED,
    Failure,
    after_failed_replay,
    late_at,
    marks_after_failed_replay,
    marks_after_force,
    marks_after_reopening,
    recommend,
    sla_from_hours,
)
from effaced.model import DeadLetterDomain, DeadLetterStatus, OutboxOperation

D, S = DeadLetterDomain, DeadLetterStatus
AT = datetime(2026, 3, 2, 9, tzinfo=UTC)


def failure(domain: D = D.EXTERNAL_CALL, code: str = "http_400", **more: Any) -> Failure:
    return Failure(domain, None, None, "ResolverError", code, **more)


@pytest.mark.parametrize(
    ("given", "marks", "action"),
    [
        (failure(), {}, "fix_and_requeue"),
        (failure(code="attempts_exhausted"), {}, "requeue_when_vendor_is_back"),
        (failure(code="max_age"), {}, "requeue_when_vendor_is_back"),
        (failure(D.LOCAL_EXECUTION), {}, "fix_and_requeue"),
        (failure(D.LOCAL_EXECUTION, "subject_changed"), {"failed_replays": 2}, "confirm_or_cancel"),
        (failure(D.VERIFICATION), {"same_error": 1}, "check_with_vendor"),
        (failure(D.MESSAGE), {}, "requeue_when_it_answers"),
        (failure(D.MESSAGE), {"same_error": 1}, "find_the_cause"),
        (failure(), {"failed_replays": 1, "same_error": 1}, "find_the_cause"),
        (failure(), {"failed_replays": 1, "same_error": 0}, "fix_and_requeue"),
        (failure(), {"failed_replays": 2, "same_error": 2}, "escalate"),
        (failure(D.ATTESTATION), {"failed_replays": 2}, "do_by_hand_and_attest"),
        (failure(operation=OutboxOperation.RECTIFY), {"failed_replays": 2}, "reissue"),
        (failure(D.ATTESTATION, operation=OutboxOperation.RECTIFY), {}, "reissue"),
        (failure(D.LOCAL_EXECUTION, operation=OutboxOperation.RECTIFY), {}, "fix_and_requeue"),
    ],
)
def test_recommends_by_the_first_rule_that_applies(
    given: Failure, marks: dict[str, int], action: str
) -> None:
    assert recommend(given, marks) == action


@pytest.mark.parametrize(("count", "to"), [(0, S.PENDING), (1, S.PENDING), (2, S.REQUIRES_REVIEW)])
def test_a_failed_replay_requires_review_once_the_retries_are_used_up(count: int, to: S) -> None:
    assert after_failed_replay(count, 2) is to


def test_marks_add_up_and_leave_the_given_ones_alone() -> None:
    marks = {"failed_replays": 1, "same_error": 3}
    assert marks_after_failed_replay(marks, same_error=True) == {"failed_replays": 2, "same_error": 4}
    assert marks_after_failed_replay(marks, same_error=False) == {"failed_replays": 2, "same_error": 0}
    assert marks_after_reopening(None) == {"reopened": 1}
    forced = marks_after_force(marks_after_force(marks, 2), 1)
    assert forced == marks | {"previous_total_retries": 3, "force_redrive_count": 2}
    assert marks == {"failed_replays": 1, "same_error": 3}


def test_nobody_decides_about_a_replay_or_an_archived_dead_letter() -> None:
    decided_from = {each for sources in DECISIONS.values() for each in sources}
    assert decided_from == {*UNRESOLVED, S.REJECTED}
    assert set(DECISIONS).isdisjoint({S.REPLAYING, S.ARCHIVED, S.REQUIRES_REVIEW})


def test_every_status_is_active_or_settled_and_open_ones_are_active() -> None:
    assert {*ACTIVE, *SETTLED} == set(S)
    assert set(ACTIVE).isdisjoint(SETTLED)
    assert set(OPEN) < set(UNRESOLVED) < set(ACTIVE)


def test_configured_hours_replace_the_defaults_of_their_domains_only() -> None:
    sla = sla_from_hours({D.MESSAGE: 0.5})
    assert sla == {**SLA, D.MESSAGE: timedelta(minutes=30)}
    assert late_at(D.MESSAGE, AT, sla) == AT + timedelta(minutes=30)
    assert late_at(D.MESSAGE, AT, {}) == AT + timedelta(hours=24)
