"""Correct one person's values in the company's own database. The caller commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Update, func, or_, select
from sqlalchemy.orm import Session

from effaced.datamap.compile.corrections import Change, changes_for
from effaced.datamap.compile.step import safe_update
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.erase import send_by_plan
from effaced.model import Correction


@dataclass(frozen=True, slots=True)
class ColumnEffect:
    """In how many rows of a table these columns have, or would have, a new value."""

    table: str
    columns: tuple[str, ...]
    rows: int


def check_corrections(plan: ErasurePlan, corrections: Sequence[Correction]) -> list[Change]:
    """What would be written. Refuses names and values that the map or the columns don't allow."""
    return changes_for(plan.schema, plan.data_map, corrections)


def preview_corrections(
    session: Session, plan: ErasurePlan, subject_id: str, corrections: Sequence[Correction]
) -> list[ColumnEffect]:
    """What `rectify` would change now; changes nothing."""
    values = plan.key.require(subject_id)
    found = []
    for name, changes in _by_table(plan, check_corrections(plan, corrections)):
        table = plan.schema.table(name)
        count = (
            select(func.count()).select_from(table).where(plan.rows_of_person(name), _differs(plan, changes))
        )
        columns = tuple(change.column for change in changes)
        found.append(ColumnEffect(name, columns, session.execute(count, values).scalar_one()))
    return found


def rectify(
    session: Session, plan: ErasurePlan, subject_id: str, corrections: Sequence[Correction]
) -> list[ColumnEffect]:
    """Write the corrected values into the person's rows: one statement per table.

    Doing it again changes nothing. Conflict if the database stands against it, or if the schema is not the
    one that the plan was made for: the caller must roll back.
    """
    values = plan.key.require(subject_id)
    changes = _by_table(plan, check_corrections(plan, corrections))
    done = send_by_plan(
        session,
        plan,
        "correct",
        lambda batch: [batch.run(_statement(plan, name, each), values, name) for name, each in changes],
    )
    return [
        ColumnEffect(name, tuple(change.column for change in each), later.count)
        for (name, each), later in zip(changes, done, strict=True)
    ]


def _statement(plan: ErasurePlan, name: str, changes: list[Change]) -> Update:
    table = plan.schema.table(name)
    written = {table.c[change.column]: change.value for change in changes}
    return safe_update(table).where(plan.rows_of_person(name), _differs(plan, changes)).values(written)


def _differs(plan: ErasurePlan, changes: list[Change]) -> Any:
    table = plan.schema.table(changes[0].table)
    return or_(*(table.c[change.column].is_distinct_from(change.value) for change in changes))


def _by_table(plan: ErasurePlan, changes: Sequence[Change]) -> list[tuple[str, list[Change]]]:
    # Children first: rows that are found through a value are found before that value changes.
    order = [step.name for step in plan.steps]
    tables = sorted({change.table for change in changes}, key=order.index)
    return [(name, [change for change in changes if change.table == name]) for name in tables]
