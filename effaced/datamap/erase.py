"""Erase one person in the company's own database, or count what that would do. The caller commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import CursorResult, Delete, Update, select
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.orm import Session

from effaced.datamap.model import Action, Retained
from effaced.datamap.plan import ErasurePlan, Step
from effaced.errors import Conflict


@dataclass(frozen=True, slots=True)
class TableEffect:
    """What happened in one table: how many rows were deleted or anonymised, or stay as they are.

    `retained` names the columns that stay in the rows, and why. There are counts here and no values.
    """

    table: str
    rows: int
    action: Action
    retained: tuple[Retained, ...] = ()

    @property
    def changed(self) -> int:
        return 0 if self.action is Action.RETAINED else self.rows


def dry_run(session: Session, plan: ErasurePlan, subject_id: str) -> list[TableEffect]:
    """What `erase` would do now, in its order. One SELECT; changes nothing.

    NotFound if the id cannot be a key at all; a person who is gone already has zero rows everywhere.
    """
    values = plan.key.require(subject_id)
    counts = session.execute(select(*(step.affected.scalar_subquery() for step in plan.steps)), values).one()
    return [_effect(step, rows) for step, rows in zip(plan.steps, counts, strict=True)]


def erase(session: Session, plan: ErasurePlan, subject_id: str) -> list[TableEffect]:
    """Carry out the plan for one person: one statement per table, in the caller's transaction.

    Doing it again changes nothing. Conflict if a rule of the database that the map can't know stands
    against it (a check, a trigger, another person's row that points here): the caller must roll back.
    """
    values = plan.key.require(subject_id)
    return [_effect(step, _carry_out(session, step, values)) for step in plan.steps]


def count_reachable(session: Session, plan: ErasurePlan, subject_id: str) -> dict[str, int]:
    """Read back: per table the rows that `erase` should have changed and did not. Empty when all is well."""
    return {effect.table: effect.changed for effect in dry_run(session, plan, subject_id) if effect.changed}


def _carry_out(session: Session, step: Step, values: dict[str, object]) -> int:
    if step.change is None:
        return session.execute(step.affected, values).scalar_one()
    return carry_out(session, step.change, values, "erase", step.name)


def carry_out(
    session: Session, change: Delete | Update, values: dict[str, Any], verb: str, table: str
) -> int:
    """Run one statement; how many rows it changed. Conflict, with table and rule, if the database refuses."""
    try:
        return cast(CursorResult[Any], session.execute(change, values)).rowcount
    except (OperationalError, InterfaceError):
        # Locks and lost connections: another try may go through.
        raise
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
        # The database's own message quotes the row, so only the name of its rule is passed on.
        rule = getattr(getattr(error.orig, "diag", None), "constraint_name", None)
        what = "a constraint" if isinstance(error, IntegrityError) else "a trigger or another rule"
        named = f" ({rule})" if rule else ""
    raise Conflict(f"The database refuses to {verb} in table '{table}': {what}{named} forbids it.")


def _effect(step: Step, rows: int) -> TableEffect:
    return TableEffect(step.name, rows, step.action, step.retained)
