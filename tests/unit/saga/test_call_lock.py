"""Sharing a process, or having it alone after a crash."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from effaced.saga.call_lock import CallLock


@dataclass(eq=False)
class Run:
    is_lost: bool = False


ONE, OTHER, THIRD = Run(), Run(), Run()


@pytest.fixture
def lock() -> CallLock:
    return CallLock()


def test_runs_share_it(lock: CallLock) -> None:
    assert lock.share(ONE)
    assert lock.share(OTHER)


def test_nobody_has_it_alone_beside_another(lock: CallLock) -> None:
    lock.share(OTHER)
    assert not lock.take(ONE)
    lock.release(OTHER)
    assert lock.take(ONE)
    assert not lock.share(OTHER)


def test_while_somebody_waits_to_be_alone_nobody_makes_another_call(lock: CallLock) -> None:
    lock.share(OTHER)
    lock.take(ONE)
    assert not lock.share(OTHER)
    assert not lock.share(THIRD)


def test_two_that_wait_come_one_after_the_other(lock: CallLock) -> None:
    lock.share(ONE)
    lock.share(OTHER)
    assert not lock.take(ONE)  # which no longer shares it
    assert lock.take(OTHER)
    assert not lock.take(ONE)
    lock.release(OTHER)
    assert lock.take(ONE)


def test_one_that_gives_up_waiting_holds_nobody_up(lock: CallLock) -> None:
    lock.share(OTHER)
    lock.take(ONE)
    lock.release(ONE)
    assert lock.share(THIRD)


def test_a_run_whose_loop_was_closed_holds_nobody_up(lock: CallLock) -> None:
    lost, waiting = Run(), Run()
    lock.share(lost)
    lock.take(waiting)
    lost.is_lost = waiting.is_lost = True
    assert lock.share(OTHER)
    lock.release(OTHER)
    assert lock.take(ONE)
