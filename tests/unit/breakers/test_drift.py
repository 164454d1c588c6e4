"""L1 to L3: which of two places is right, and what is remembered of it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from breaker_cast import NOON

from effaced.breakers.layered.drift import (
    DriftReconciler,
    DriftReconciliationRecord,
    DriftReconciliationResult,
    get_drift_reconciler,
)

L1, L2, NONE = (
    DriftReconciliationResult.L1_WON,
    DriftReconciliationResult.L2_WON,
    DriftReconciliationResult.NO_DRIFT,
)
LATER = NOON + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("l1", "l2", "winner", "result"),
    [
        ("open", "closed", "open", L1),
        ("open", "half_open", "open", L1),
        ("half_open", "closed", "half_open", L1),
        ("closed", "half_open", "half_open", L2),
        ("HALF_OPEN", "Open", "open", L2),
        ("Closed", "OPEN", "open", L2),
    ],
)
def test_the_more_restrictive_state_wins_whatever_its_case_and_age(
    l1: str, l2: str, winner: str, result: DriftReconciliationResult
) -> None:
    older_wins = (
        {"l1_updated_at": NOON, "l2_updated_at": LATER}
        if result is L1
        else {
            "l1_updated_at": LATER,
            "l2_updated_at": NOON,
        }
    )
    assert DriftReconciler().reconcile("crm", l1, l2, **older_wins) == (winner, result)


@pytest.mark.parametrize(
    ("l1_at", "l2_at", "result"),
    [
        (LATER, NOON, L1),
        (NOON, LATER, L2),
        (NOON, NOON, NONE),
        (NOON, None, L1),
        (None, NOON, L2),
        (None, None, NONE),
    ],
)
def test_of_equal_states_the_newer_wins(
    l1_at: object, l2_at: object, result: DriftReconciliationResult
) -> None:
    assert DriftReconciler().reconcile("crm", "open", "open", l1_at, l2_at) == ("open", result)  # type: ignore[arg-type]


def test_a_missing_shared_row_is_written_from_l1() -> None:
    assert DriftReconciler().reconcile("crm", "closed", "") == ("closed", L1)


class TestJitter:
    def test_lies_between_its_bounds_all_over(self) -> None:
        found = [DriftReconciler(2, 4).get_jitter() for _ in range(500)]
        assert all(2 <= each <= 4 for each in found)
        assert min(found) < 2.2
        assert max(found) > 3.8

    def test_is_slept_returned_and_recorded(self) -> None:
        slept: list[float] = []
        reconciler = DriftReconciler(0.5, 0.7, sleep=slept.append)
        pause = reconciler.schedule_reconciliation_sync("crm", lambda: reconcile(reconciler))
        (record,) = reconciler.get_history()
        assert slept == [pause]
        assert record.jitter_seconds == pause

    def test_the_same_without_holding_up_the_loop(self) -> None:
        reconciler = DriftReconciler(0, 0.001)
        pause = asyncio.run(reconciler.schedule_reconciliation_async("crm", lambda: reconcile(reconciler)))
        assert [record.jitter_seconds for record in reconciler.get_history()] == [pause]

    def test_none_is_slept_where_the_longest_is_nothing(self) -> None:
        def sleep(_: float) -> None:
            raise AssertionError

        reconciler = DriftReconciler(0, 0, sleep=sleep)
        assert reconciler.schedule_reconciliation_sync("crm", lambda: None) == 0

    def test_bounds_in_the_wrong_order_are_refused(self) -> None:
        with pytest.raises(ValueError, match="min_jitter_seconds"):
            DriftReconciler(2, 1)


def reconcile(reconciler: DriftReconciler) -> None:
    reconciler.reconcile("crm", "open", "closed")


class TestHistory:
    def test_the_hook_hears_of_each_and_may_raise(self) -> None:
        heard: list[DriftReconciliationRecord] = []

        def hook(record: DriftReconciliationRecord) -> None:
            heard.append(record)
            raise RuntimeError

        reconciler = DriftReconciler(on_reconciled=hook)
        reconcile(reconciler)
        reconcile(reconciler)
        assert heard == reconciler.get_history()

    def test_is_bounded(self) -> None:
        reconciler = DriftReconciler(max_history=3)
        for number in range(5):
            reconciler.reconcile(str(number), "open", "closed")
        assert [record.service_name for record in reconciler.get_history()] == ["2", "3", "4"]

    def test_is_counted_by_result_and_winner_and_cleared(self) -> None:
        reconciler = DriftReconciler()
        reconciler.reconcile("a", "open", "closed")
        reconciler.reconcile("b", "closed", "open")
        reconciler.reconcile("c", "closed", "closed")
        stats = reconciler.get_stats()
        assert (
            stats["total"],
            stats["by_result"],
            stats["by_winner"],
        ) == (3, {"l1_won": 1, "l2_won": 1, "no_drift": 1}, {"l1": 1, "l2": 1, "both": 1})
        reconciler.clear_history()
        assert reconciler.get_stats()["total"] == 0


def test_there_is_one_per_process_until_it_is_reset() -> None:
    first = get_drift_reconciler()
    assert first is get_drift_reconciler()
    DriftReconciler.reset_instance()
    assert first is not get_drift_reconciler()
