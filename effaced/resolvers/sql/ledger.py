"""The calls that were carried out in another database, kept there: what was done, and that it was done once.

A row is written in the transaction of what it tells of. It holds an entry's id, counts and codes; nothing
in it says who it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Column, Integer, MetaData, Select, String, Table, delete, inspect, select, text, update
from sqlalchemy.dialects.postgresql import insert as insert_or_leave
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.core.db import UtcDateTime, error_code, is_postgres
from effaced.model import OutboxOperation, StepOutcome
from effaced.resolvers.protocols import AlreadyAbsent, Erased, Rectified, Retained

NAME = "effaced_sql_calls"
Answered = Erased | AlreadyAbsent | Retained | Rectified
_calls = Table(
    NAME,
    MetaData(),
    Column("entry_id", String(36), primary_key=True),
    Column("operation", String(16), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("outcome", String(32)),
    Column("basis", String(64)),
    Column("rows", Integer),
)
# Two who make the table at once: one of them is told so, in one of these words.
# The table, a row of the catalogue, or the type that goes with the table: which one depends on the moment.
_MADE_MEANWHILE = {"sqlstate_42P07", "sqlstate_23505", "sqlstate_42710"}


@dataclass(frozen=True, slots=True)
class Done:
    """What a call came to, and in how many rows it changed something."""

    answer: Answered
    rows: int = 0


def exists(session: Session) -> bool:
    return inspect(session.connection()).has_table(NAME)


def make(session: Session) -> None:
    """Make the table if it is not there."""
    if exists(session):
        return
    try:
        with session.begin_nested():
            _calls.create(session.connection())
    except DBAPIError as error:
        if error_code(error) not in _MADE_MEANWHILE:
            raise


def may_be_made(session: Session) -> bool:
    """Whether the table is there or we are allowed to make it; SQLite has no such rules."""
    if exists(session) or not is_postgres(session):
        return True
    return bool(session.scalar(text("SELECT has_schema_privilege(current_schema(), 'CREATE')")))


def begin(session: Session, key: UUID, operation: OutboxOperation) -> Done | None:
    """Take the key for this transaction; or what was done under it before.

    Whoever comes while another transaction has it waits until that one has ended.
    """
    row = {"entry_id": str(key), "operation": operation, "at": clock.now()}
    taking = insert_or_leave(_calls).values(row).on_conflict_do_nothing().returning(_calls.c.entry_id)
    if session.connection().execute(taking).one_or_none() is not None:
        return None
    outcome, basis, rows = session.execute(_row(key)).one()
    return Done(_answer(outcome, basis), rows)


def end(session: Session, key: UUID, done: Done) -> None:
    """Write down what was done, before the commit."""
    outcome, basis = _words(done.answer)
    session.execute(
        update(_calls)
        .where(_calls.c.entry_id == str(key))
        .values(outcome=outcome, basis=basis, rows=done.rows)
    )


def has(session: Session, key: UUID) -> bool:
    return exists(session) and session.execute(_row(key)).one_or_none() is not None


def forget(session: Session, key: UUID) -> None:
    """What was done under the key has not lasted: the next call under it does it again."""
    session.execute(delete(_calls).where(_calls.c.entry_id == str(key)))


def _row(key: UUID) -> Select[str, str | None, int]:
    return select(_calls.c.outcome, _calls.c.basis, _calls.c.rows).where(_calls.c.entry_id == str(key))


def _words(answer: Answered) -> tuple[StepOutcome, str | None]:
    match answer:
        case Erased(retained=basis):
            return StepOutcome.ERASED, basis
        case Retained(basis=basis):
            return StepOutcome.RETAINED, basis
        case Rectified():
            return StepOutcome.RECTIFIED, None
        case AlreadyAbsent():
            return StepOutcome.ALREADY_ABSENT, None


def _answer(outcome: str, basis: str | None) -> Answered:
    match StepOutcome(outcome):
        case StepOutcome.ERASED:
            return Erased(retained=basis)
        case StepOutcome.RETAINED:
            return Retained(basis or "")
        case StepOutcome.RECTIFIED:
            return Rectified()
        case _:
            return AlreadyAbsent()
