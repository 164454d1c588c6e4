"""Which steps of a plan can be done in batches beforehand."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select, true

from effaced.datamap.compile.batches import early_steps
from effaced.datamap.compile.step import Step
from effaced.datamap.model.data_map import Action


def step(name: str, action: Action = Action.DELETED, *, reported: bool = True) -> Step:
    count = select(func.count())
    return Step(name, action, (), count, count, None, true(), true(), reported=reported)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([step("lines"), step("orders"), step("people")], ["lines", "orders"]),
        ([step("lines"), step("people"), step("orders")], ["lines"]),
        ([step("lines"), step("homes"), step("orders")], ["lines"]),
        ([step("lines"), step("a", reported=False), step("orders")], ["lines"]),
        ([step("notes", Action.RETAINED), step("orders"), step("people")], ["orders"]),
    ],
)
def test_batches_end_before_the_first_step_that_others_depend_on(
    steps: list[Step], expected: list[str]
) -> None:
    assert [each.name for each in early_steps(steps, {"people", "homes"})] == expected
