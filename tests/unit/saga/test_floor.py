"""Sharing a process, or having it alone after a crash."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from effaced.saga.floor import Floor


@dataclass(eq=False)
class Run:
    is_lost: bool = False


ONE, OTHER, THIRD = Run(), Run(), Run()


@pytest.fixture
def floor() -> Floor:
    return Floor()


def test_runs_share_it(floor: Floor) -> None:
    assert floor.share(ONE)
    assert floor.share(OTHER)


def test_nobody_has_it_alone_beside_another(floor: Floor) -> None:
    floor.share(OTHER)
    assert not floor.take(ONE)
    floor.leave(OTHER)
    assert floor.take(ONE)
    assert not floor.share(OTHER)


def test_while_somebody_waits_to_be_alone_nobody_makes_another_call(floor: Floor) -> None:
    floor.share(OTHER)
    floor.take(ONE)
    assert not floor.share(OTHER)
    assert not floor.share(THIRD)


def test_two_that_wait_come_one_after_the_other(floor: Floor) -> None:
    floor.share(ONE)
    floor.share(OTHER)
    assert not floor.take(ONE)  # which no longer shares it
    assert floor.take(OTHER)
    assert not floor.take(ONE)
    floor.leave(OTHER)
    assert floor.take(ONE)


def test_one_that_gives_up_waiting_holds_nobody_up(floor: Floor) -> None:
    floor.share(OTHER)
    floor.take(ONE)
    floor.leave(ONE)
    assert floor.share(THIRD)


def test_a_run_whose_loop_was_closed_holds_nobody_up(floor: Floor) -> None:
    lost, waiting = Run(), Run()
    floor.share(lost)
    floor.take(waiting)
    lost.is_lost = waiting.is_lost = True
    assert floor.share(OTHER)
    floor.leave(OTHER)
    assert floor.take(ONE)
