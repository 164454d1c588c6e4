"""Erase one person in the company's own database, or count what that would change. The caller commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Select, func, select
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.orm import Session

from effaced.core.db import error_code
from effaced.core.db.pipeline import PendingResult, Pipeline
from effaced.core.errors import Conflict
from effaced.datamap.compile.step import Step
from effaced.datamap.model.data_map import Action, Retained
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.values import parameters_for_erasure, parameters_for_reading


@dataclass(frozen=True, slots=True)
class TableEffect:
    """What happened in one table: how many rows were deleted or anonymised, or stay as they are.

    `retained` names the columns that stay in the rows, and why; `scrubbed` in how many rows something was
    found in a text. There are counts here and no values.
    """

    table: str
    rows: int
    action: Action
    retained: tuple[Retained, ...] = ()
    scrubbed: Mapping[str, int] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The table, with a note if its rows are somebody else's."""
        return f"{self.table} ({self.action})" if self.action is Action.DETACHED else self.table

    @property
    def changed(self) -> int:
        return 0 if self.action is Action.RETAINED else self.rows


class DatabaseRefusal(Conflict):
    """A rule of the database forbids it. `code` is the database's error code."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def dry_run(session: Session, plan: ErasurePlan, subject_id: str) -> list[TableEffect]:
    """What `erase` would do now, in its order. One SELECT, two more for texts to scrub; changes nothing.

    NotFound if the id cannot be a key at all; a person who is gone already has zero rows everywhere.
    """
    values = parameters_for_reading(session, plan, subject_id)
    counts = session.execute(plan.count_affected, values).one()
    found = session.execute(plan.count_scrubbed, values).one() if plan.count_scrubbed is not None else ()
    return _effects(plan, counts, found)


def count_kept_rows(session: Session, plan: ErasurePlan, subject_id: str) -> list[int]:
    """For each reported step, how many of the person's rows retain something. One SELECT.

    A dry run counts the rows that change, and of rows that are kept often only a few do.
    """
    counts = [
        select(func.count()).select_from(plan.schema.table(step.name)).where(step.owned).scalar_subquery()
        for step in plan.reported_steps
        if step.retained
    ]
    found = iter(session.execute(select(*counts), plan.key.require(subject_id)).one() if counts else ())
    return [next(found) if step.retained else 0 for step in plan.reported_steps]


def erase(session: Session, plan: ErasurePlan, subject_id: str) -> list[TableEffect]:
    """Execute the plan for one person: one statement per table, in the caller's transaction.

    Doing it again changes nothing. Conflict if a rule of the database that the map can't know stands
    against it (a check, a trigger, another person's row that points here), or if the schema is not the one
    that the plan was made for: the caller must roll back.
    """
    return erase_and_verify(session, plan, subject_id).effects


@dataclass(frozen=True, slots=True)
class Erased:
    """What was done, the rows by table that should have changed and did not, and the results of queries."""

    effects: list[TableEffect]
    left: dict[str, int]
    answers: list[tuple[Any, ...]]


def erase_and_verify(
    session: Session, plan: ErasurePlan, subject_id: str, asking: Iterable[Select[*tuple[Any, ...]]] = ()
) -> Erased:
    """`erase`, and a check of what is left. `asking` are queries of one row to run after it."""
    values = parameters_for_erasure(session, plan, subject_id)

    def send(batch: Pipeline) -> _Sent:
        # Where rows had to be looked up beforehand, `parameters_for_erasure` has locked these already.
        for name, lock in plan.locks.items() if not plan.captures else ():
            batch.run(lock, values, name)
        return _Sent(
            # Before the first change, while the texts still hold what is counted.
            found=batch.run(plan.count_scrubbed, values) if plan.count_scrubbed is not None else None,
            done=[(step, batch.run(step.statement, values, step.name)) for step in plan.steps],
            left=batch.run(plan.count_remaining, values),
            answers=[batch.run(each, values) for each in asking],
        )

    sent = send_by_plan(session, plan, "erase", send)
    left = zip(plan.reported_steps, sent.left.rows[0], strict=True)
    return Erased(
        _effects(plan, sent.changed(), sent.found.rows[0] if sent.found else ()),
        {step.name: rows for step, rows in left if rows and step.action is not Action.RETAINED},
        [each.rows[0] for each in sent.answers],
    )


@dataclass(frozen=True, slots=True)
class _Sent:
    """The pending results of an erasure's statements."""

    found: PendingResult | None
    done: list[tuple[Step, PendingResult]]
    left: PendingResult
    answers: list[PendingResult]

    def changed(self) -> list[int]:
        """How many rows each reported step has changed, or, where it changes none, keeps."""
        return [
            result.rows[0][0] if step.change is None else result.count
            for step, result in self.done
            if step.reported
        ]


T = TypeVar("T")


def send_by_plan(session: Session, plan: ErasurePlan, verb: str, send: Callable[[Pipeline], T]) -> T:
    """Send statements in one batch, then require the schema that the plan was made for.

    DatabaseRefusal if a rule of the database forbids one of them.
    """
    refused: Conflict | None = None
    try:
        with (batch := Pipeline(session)):
            sent = send(batch)
            # Last: from here on every table of the plan is locked against a change of its columns.
            schema = plan.fingerprint.ask(batch) if plan.fingerprint else None
    except DBAPIError as error:
        refused = refusal(verb, batch.failed, error)
        if refused is None:
            raise
    # Not raised above, where it would carry the database's error, which quotes rows, as its context.
    if refused is not None:
        raise refused
    if plan.fingerprint and schema:
        plan.fingerprint.require(schema)
    return sent


def count_reachable(session: Session, plan: ErasurePlan, subject_id: str) -> dict[str, int]:
    """Read back: by table, the rows that `erase` should have changed and did not. Empty if all is well."""
    return {effect.table: effect.changed for effect in dry_run(session, plan, subject_id) if effect.changed}


def refusal(verb: str, table: str, error: DBAPIError) -> DatabaseRefusal | None:
    """A database error as a Conflict that names the table and the rule, and quotes no row.

    None for locks and lost connections: another attempt may go through.
    """
    if isinstance(error, OperationalError | InterfaceError) or error.connection_invalidated:
        return None
    rule = getattr(getattr(error.orig, "diag", None), "constraint_name", None)
    what = "a constraint" if isinstance(error, IntegrityError) else "a trigger or another rule"
    named = f" ({rule})" if rule else ""
    message = f"The database refuses to {verb} in table '{table}': {what}{named} forbids it."
    return DatabaseRefusal(message, error_code(error))


def _effects(plan: ErasurePlan, counts: Iterable[int], found: Iterable[int]) -> list[TableEffect]:
    rest = iter(found)
    return [
        TableEffect(step.name, rows, step.action, step.retained, {name: next(rest) for name in step.scrubbed})
        for step, rows in zip(plan.reported_steps, counts, strict=True)
    ]
