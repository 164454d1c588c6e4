"""P8: what breakers did within a window, against moves and tries that are written down here."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from attempts_cast import Try, write
from breaker_cast import API, CRM, NOON, seconds

from effaced.breakers import transitions
from effaced.breakers.model import BreakerEvent, BreakerState, Transition
from effaced.breakers.telemetry import BreakerSummary, Called, summary
from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.core.errors import Refused
from effaced.model import AttemptOutcome

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
E = BreakerEvent
HOUR = 3_600
CALLED = [Called("crm", "API.example"), Called("mail", "api.example")]
START = NOON - timedelta(hours=1)


@pytest.fixture(autouse=True)
def now() -> Iterator[ManualClock]:
    with clock.pretend(NOON) as pretended:
        yield pretended


def move(
    at: datetime,
    old: BreakerState,
    new: BreakerState,
    reason: BreakerEvent,
    name: str = CRM,
    wait: float | None = None,
) -> Transition:
    retry_at = at + seconds(wait) if wait is not None else None
    return Transition(name, old, new, reason.value, at, wait, retry_at)


def keep(db: Database, *made: Transition) -> None:
    with db.begin() as session:
        transitions.write(session, made)


def summed(db: Database, window_s: float = HOUR) -> dict[str, BreakerSummary]:
    with db.read() as session:
        return {each.breaker: each for each in summary(session, CALLED, window_s)}


def test_opens_per_hour_and_reasons_are_counted_by_breaker(db: Database) -> None:
    at = NOON - seconds(600)
    keep(
        db,
        move(at, CLOSED, OPEN, E.CONSECUTIVE_FAILURES, wait=60),
        move(at + seconds(60), OPEN, HALF_OPEN, E.TRIAL_STARTED),
        move(at + seconds(61), HALF_OPEN, OPEN, E.TRIAL_FAILED, wait=120),
        move(at + seconds(181), OPEN, HALF_OPEN, E.TRIAL_STARTED),
        move(at + seconds(182), HALF_OPEN, CLOSED, E.TRIALS_SUCCEEDED),
        move(at + seconds(200), CLOSED, OPEN, E.FORCED_OPEN, wait=10),
        move(START - seconds(1), CLOSED, OPEN, E.ROLLING_FAILURES, "resolver:mail", wait=1),
    )
    found = summed(db)
    assert (found[CRM].opens, found[CRM].opens_per_hour) == (3, 3.0)
    assert found[CRM].reasons == {"consecutive_failures": 1, "trial_failed": 1, "forced_open": 1}
    assert (found["resolver:mail"].opens, found["resolver:mail"].reasons) == (0, {})
    assert summed(db, 1_800)[CRM].opens_per_hour == 6.0


def test_a_retry_after_hold_counts_like_an_opening(db: Database) -> None:
    keep(db, Transition(CRM, CLOSED, CLOSED, "retry_after", NOON - seconds(600), None, NOON - seconds(480)))
    found = summed(db)[CRM]
    assert (found.opens, found.reasons, found.held_back_s) == (1, {"retry_after": 1}, 120)


def test_success_after_open_is_the_share_of_trials_that_closed_it(db: Database) -> None:
    assert summed(db)[CRM].success_after_open is None
    ends = [E.TRIAL_FAILED, E.TRIALS_SUCCEEDED, E.TRIAL_FAILED, E.TRIAL_FAILED]
    keep(
        db,
        *(
            move(NOON - seconds(99 - n), HALF_OPEN, OPEN if each is E.TRIAL_FAILED else CLOSED, each, wait=1)
            for n, each in enumerate(ends)
        ),
    )
    found = summed(db)[CRM]
    assert (found.trials_ended, found.trials_succeeded, found.success_after_open) == (4, 1, 0.25)


def test_time_saved_is_the_usual_pace_times_the_time_held_back_times_a_failed_call(db: Database) -> None:
    """Open for a fifth of the hour; 80 calls in the rest, so 20 were not made; a failed one takes 3 s."""
    keep(
        db,
        move(NOON - seconds(1_000), CLOSED, OPEN, E.CONSECUTIVE_FAILURES, wait=720),
        move(NOON - seconds(280), OPEN, HALF_OPEN, E.TRIAL_STARTED),
    )
    good = [Try(START + seconds(n), latency_ms=50) for n in range(78)]
    bad = [Try(START + seconds(n), outcome=AttemptOutcome.TIMEOUT, latency_ms=3_000) for n in range(2)]
    trial = Try(NOON - seconds(280), trial=True)
    denied = Try(NOON - seconds(900), outcome=AttemptOutcome.CIRCUIT_OPEN, latency_ms=0)
    write(db, [*good, *bad, trial, denied])
    found = summed(db)[CRM]
    assert (found.held_back_s, found.calls) == (720, 81)
    assert (found.calls_not_made_estimate, found.time_saved_ms_estimate) == (20, 60_000)


def test_time_in_which_nobody_wanted_to_call_is_not_held_back(db: Database) -> None:
    keep(db, move(NOON - seconds(1_000), CLOSED, OPEN, E.CONSECUTIVE_FAILURES, wait=60))
    assert summed(db)[CRM].held_back_s == 60


def test_a_breaker_that_was_open_before_the_window_holds_back_within_it(db: Database) -> None:
    keep(db, move(START - seconds(100), CLOSED, OPEN, E.FORCED_OPEN, wait=400))
    found = summed(db)[CRM]
    assert (found.held_back_s, found.opens) == (300, 0)


def test_a_host_has_the_calls_of_all_its_resolvers(db: Database) -> None:
    write(db, [Try(NOON - seconds(5)), Try(NOON - seconds(4), resolver="mail")])
    found = summed(db)
    assert [found[name].calls for name in (CRM, "resolver:mail", API)] == [1, 1, 2]


def test_a_breaker_that_nothing_calls_any_more_is_told_of_if_it_moved(db: Database) -> None:
    keep(db, move(NOON - seconds(5), CLOSED, OPEN, E.CONSECUTIVE_FAILURES, "resolver:gone", wait=1))
    assert summed(db)["resolver:gone"].opens == 1


@pytest.mark.parametrize("window_s", [0, 59, 86_401, float("nan"), float("inf"), -1])
def test_a_window_that_can_not_be_is_refused_by_name(db: Database, window_s: float) -> None:
    with pytest.raises(Refused) as told:
        summed(db, window_s)
    assert [each.where for each in told.value.problems] == ["window_s"]


def test_moves_are_paged_the_latest_first_however_late_they_were_written_down(db: Database) -> None:
    times = [5, 1, 4, 2, 3]
    keep(db, *(move(NOON - seconds(n), CLOSED, CLOSED, E.RESET) for n in times))
    keep(db, move(NOON, CLOSED, CLOSED, E.RESET, API))
    read, after = [], None
    with db.read() as session:
        while True:
            page = transitions.page(session, [CRM], after=after, limit=2)
            read += [(NOON - each.at).total_seconds() for each in page.items]
            if (after := page.next) is None:
                break
    assert read == [1, 2, 3, 4, 5]
