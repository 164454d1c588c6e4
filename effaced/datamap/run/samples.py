"""A few of a person's rows, masked, so that an erasure can be checked before it happens."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Select, select, type_coerce, types
from sqlalchemy.orm import Session

from effaced.datamap.compile.step import Step
from effaced.datamap.model.data_map import Action, Strategy
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.masks import HIDDEN, NOTHING, mask
from effaced.datamap.run.values import parameters_for_reading

MOST = 3
Row = dict[str, str]
"""Masked cells by column."""


def sample(
    session: Session, plan: ErasurePlan, subject_id: str, *, counted: Sequence[int] = (), most: int = MOST
) -> list[list[Row]]:
    """For each reported step, up to `most` rows with what is personal in them, masked. Changes nothing.

    `counted`, if given, is how many rows each step has: where there are none, nobody is asked for them.
    """
    values = parameters_for_reading(session, plan, subject_id)
    found = []
    for step, number in zip(plan.reported_steps, counted or [most] * len(plan.reported_steps), strict=True):
        columns = _personal(plan, step) if number else []
        rows = session.execute(_query(plan, step, columns, most), values) if columns else ()
        found.append([_masked(plan, step, columns, row) for row in rows])
    return found


def _personal(plan: ErasurePlan, step: Step) -> list[str]:
    if step.action is Action.DETACHED:
        return [column.name for column in step.written]
    rules = plan.data_map.tables[step.name].columns
    return [name for name, rule in rules.items() if rule.strategy is not Strategy.NOT_PERSONAL]


def _query(plan: ErasurePlan, step: Step, columns: Sequence[str], most: int) -> Select[*tuple[object, ...]]:
    table = plan.schema.table(step.name)
    # As the driver gives it: SQLite may hold texts in a column of dates.
    cells = [type_coerce(table.c[name], types.NullType()).label(None) for name in columns]
    return select(*cells).where(step.where).limit(most)


def _masked(plan: ErasurePlan, step: Step, columns: Sequence[str], row: Sequence[object]) -> Row:
    live = plan.schema.tables[step.name].columns
    return {
        # One of a few words can be guessed from its first letter.
        name: HIDDEN if live[name].enum_values and value is not None else mask(value)
        for name, value in zip(columns, row, strict=True)
        if mask(value) != NOTHING
    }
