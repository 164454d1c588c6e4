"""The step "external systems" of a request's page: one state, and a text that says why."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from effaced.console.request.steps import calls_step
from effaced.console.words import Station
from effaced.model import OutboxStatus

DONE, LATER, GONE = OutboxStatus.SUCCEEDED, OutboxStatus.SCHEDULED, OutboxStatus.ABANDONED


def request(**values: Any) -> Any:
    return SimpleNamespace(**{"duplicate_of": None, "executed_at": "noon", "closed_at": None} | values)


def step(*states: object, letters: int = 0, **values: Any) -> tuple[str, str]:
    calls: Any = [SimpleNamespace(state=state) for state in states]
    found = calls_step(request(**values), calls, [SimpleNamespace(entry_id=n) for n in range(1, letters + 1)])  # type: ignore[misc]
    return found.state, found.text


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"duplicate_of": "x"}, ("none", "called by the request that it is a duplicate of")),
        ({"executed_at": None}, ("todo", "after your database")),
        ({"executed_at": None, "closed_at": "noon"}, ("none", "no calls were made")),
        ({}, ("none", "no external system knows the person")),
    ],
)
def test_without_calls(values: dict[str, Any], expected: tuple[str, str]) -> None:
    assert step(**values) == expected


@pytest.mark.parametrize(
    ("states", "letters", "expected"),
    [
        ((DONE, Station.SUPERSEDED), 0, ("done", "2 of 2 done")),
        ((DONE, GONE), 1, ("blocked", "1 of 2 done, 1 abandoned")),
        ((DONE, GONE), 0, ("doing", "1 of 2 done")),
        ((DONE, Station.PERSON, LATER), 0, ("waiting", "1 of 3 done, waiting for a person")),
        ((DONE, Station.PAUSED), 0, ("waiting", "1 of 2 done, paused")),
        ((DONE, LATER), 0, ("waiting", "1 of 2 done, the rest waits for a vendor")),
        ((DONE, OutboxStatus.PENDING), 0, ("doing", "1 of 2 done")),
        ((GONE, Station.PERSON), 1, ("blocked", "0 of 2 done, 1 abandoned")),
    ],
)
def test_the_worst_state_of_the_calls_decides(
    states: tuple[object, ...], letters: int, expected: tuple[str, str]
) -> None:
    assert step(*states, letters=letters) == expected
