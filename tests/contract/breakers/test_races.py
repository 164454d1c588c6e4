"""Eight hands at the same instant, as threads and as processes: no store lets one too many through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from breaker_cast import API, CRM, STORES, Where
from breaker_race import Processes, Saw, race_threads

Race = Callable[..., list[list[Saw]]]
ROUNDS = [pytest.param(3, id="3-tries"), pytest.param(200, id="200-tries", marks=pytest.mark.drill)]
HANDS = 8
# Embedded: SQLite, opened by an app of its own that begins transactions as it likes.
WAYS = [f"{how}-{kind}" for how in ("threads", "processes") for kind in (*STORES, "embedded")]
# A memory is one process's own.
WAYS.remove("processes-memory")
pytestmark = pytest.mark.parametrize("where", WAYS, indirect=True)


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    made = Processes()
    yield made
    made.close()


@pytest.fixture
def race(request: pytest.FixtureRequest, where: Where) -> Race:
    how = request.node.callspec.params["where"].partition("-")[0]
    run = race_threads if how == "threads" else request.getfixturevalue("processes").race
    return lambda *about, **settings: run(where, *about, hands=HANDS, **settings)


def moves(seen: list[Saw]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(move) for saw in seen for move in saw["moves"])


@pytest.mark.parametrize("rounds", ROUNDS)
def test_half_open_admits_exactly_its_trial_calls_and_one_caller_sees_the_move(
    race: Race, rounds: int
) -> None:
    """On every one of the tries, also where each hand asks for more than one call."""
    for trial_calls, most in ((1, 1), (3, 2)):
        for seen in race("trial", rounds, trial_calls=trial_calls, most=most):
            assert len(seen) == HANDS
            assert sum(saw["granted"] for saw in seen) == trial_calls
            assert moves(seen) == {(API, "open", "half_open"): 1, (CRM, "open", "half_open"): 1}


def test_host_and_resolver_slots_are_taken_together_or_not_at_all(race: Race, where: Where) -> None:
    """One host with one trial, two resolvers that want it: who does not get it has changed nothing."""
    (*_, last) = race("either", 2)
    winners = [saw["resolver"] for saw in last if saw["granted"]]
    assert len(winners) == 1
    if where.kind == "memory":
        return
    with where.opened() as repository:
        slots = {row.service_name: row.half_open_request_count for row in repository.load_all()}
    loser = {"crm": "mail", "mail": "crm"}[winners[0]]
    assert slots == {API: 1, f"resolver:{winners[0]}": 1, f"resolver:{loser}": 0}


def test_exactly_one_caller_closes(race: Race) -> None:
    for seen in race("succeed", 3, threshold=3):
        assert [saw["did"] for saw in seen].count(True) == 1


def test_exactly_one_caller_opens(race: Race) -> None:
    for seen in race("fail", 3, threshold=5):
        assert [saw["did"] for saw in seen].count(True) == 1


def test_exactly_one_flush_opens_a_host_and_a_resolver(race: Race) -> None:
    for seen in race("fail_flush", 3, threshold=5):
        assert moves(seen) == {(API, "closed", "open"): 1, (CRM, "closed", "open"): 1}


def test_a_breaker_is_made_once(race: Race, where: Where) -> None:
    for seen in race("create", 2):
        assert [saw["name"] for saw in seen] == [CRM] * HANDS
    if where.kind != "memory":
        with where.opened() as repository:
            assert [row.service_name for row in repository.load_all()] == [CRM]
