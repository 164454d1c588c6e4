"""Erase one person in the company's own database, or count what that would do. The caller commits."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.orm import Session

from effaced.datamap.model import Action, Retained
from effaced.datamap.plan import ErasurePlan, Step
from effaced.errors import Conflict
from effaced.together import Together


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
    counts = session.execute(plan.counts, values).one()
    return [_effect(step, rows) for step, rows in zip(plan.steps, counts, strict=True)]


def erase(session: Session, plan: ErasurePlan, subject_id: str) -> list[TableEffect]:
    """Carry out the plan for one person: one statement per table, in the caller's transaction.

    Doing it again changes nothing. Conflict if a rule of the database that the map can't know stands
    against it (a check, a trigger, another person's row that points here): the caller must roll back.
    """
    return erase_and_look(session, plan, subject_id)[0]


def erase_and_look(
    session: Session, plan: ErasurePlan, subject_id: str
) -> tuple[list[TableEffect], dict[str, int]]:
    """The same, and what is left: per table the rows that should have changed and did not."""
    values = plan.key.require(subject_id)
    refused: Conflict | None = None
    try:
        with (batch := Together(session)):
            done = [
                batch.run(step.affected if step.change is None else step.change, values, step.name)
                for step in plan.steps
            ]
            counted = batch.run(plan.counts, values)
    except DBAPIError as error:
        refused = refusal("erase", batch.failed, error)
        if refused is None:
            raise
    if refused is not None:
        raise refused
    effects = [
        _effect(step, each.rows[0][0] if step.change is None else each.count)
        for step, each in zip(plan.steps, done, strict=True)
    ]
    left = [_effect(step, rows) for step, rows in zip(plan.steps, counted.rows[0], strict=True)]
    return effects, {effect.table: effect.changed for effect in left if effect.changed}


def count_reachable(session: Session, plan: ErasurePlan, subject_id: str) -> dict[str, int]:
    """Read back: per table the rows that `erase` should have changed and did not. Empty when all is well."""
    return {effect.table: effect.changed for effect in dry_run(session, plan, subject_id) if effect.changed}


def refusal(verb: str, table: str, error: DBAPIError) -> Conflict | None:
    """The database's word against it as a Conflict that names table and rule and quotes no row.

    None for locks and lost connections: another try may go through.
    """
    if isinstance(error, OperationalError | InterfaceError) or error.connection_invalidated:
        return None
    rule = getattr(getattr(error.orig, "diag", None), "constraint_name", None)
    what = "a constraint" if isinstance(error, IntegrityError) else "a trigger or another rule"
    named = f" ({rule})" if rule else ""
    return Conflict(f"The database refuses to {verb} in table '{table}': {what}{named} forbids it.")


def _effect(step: Step, rows: int) -> TableEffect:
    return TableEffect(step.name, rows, step.action, step.retained)
