"""The time that machines compare with each other: the database's, not their own.

Gates, leases and pauses are written by one machine and read by another. If each used its own clock, one that
is five minutes ahead would take every live lease for an expired one. So on PostgreSQL the server's clock
counts. SQLite is used by one machine, whose clock will do. While tests pretend a time, that time counts.

A statement that is kept takes the moments it compares or writes from `from_now`, and PostgreSQL fills them in
itself. Python code asks `now`, which costs a round trip at most once a second.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Engine, Interval, bindparam, func, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from effaced import clock
from effaced.db import UtcDateTime, is_postgres

_ASK_AGAIN_AFTER = 1.0
_ASK = select(func.statement_timestamp())


class _Reading(NamedTuple):
    """What the database's clock said, and when that was on the steady clock of this process."""

    at: datetime
    read_at: float


_readings: WeakKeyDictionary[Engine, _Reading] = WeakKeyDictionary()


def now(session: Session) -> datetime:
    """The current moment by the database's clock; never ahead of it.

    Between two looks at that clock the steady clock of this process goes on counting, so it does not matter
    if somebody sets the machine's time.
    """
    if not _is_databases(session):
        return clock.now()
    engine = session.get_bind().engine
    reading = _readings.get(engine)
    if reading is None or clock.monotonic() - reading.read_at > _ASK_AGAIN_AFTER:
        at = session.connection().execute(_ASK).scalar_one()
        reading = _readings[engine] = _Reading(at, clock.monotonic())
    return reading.at + timedelta(seconds=clock.monotonic() - reading.read_at)


def now_for(sessions: sessionmaker[Session]) -> datetime:
    """The same for code that has no session open."""
    with sessions() as session:
        return now(session)


class _Moment(FunctionElement[datetime]):
    type = UtcDateTime()
    inherit_cache = True


@compiles(_Moment)
def _given(element: _Moment, compiler: SQLCompiler, **options: Any) -> str:
    at, _wait = element.clauses
    return compiler.process(at, **options)


@compiles(_Moment, "postgresql")
def _by_server(element: _Moment, compiler: SQLCompiler, **options: Any) -> str:
    at, wait = (compiler.process(each, **options) for each in element.clauses)
    return f"coalesce({at}, statement_timestamp() + {wait})"


def moment(name: str) -> ColumnElement[datetime]:
    """A moment in a statement that is kept. `from_now` gives its value under the same name."""
    return _Moment(bindparam(name, type_=UtcDateTime()), bindparam(f"{name}_wait", type_=Interval()))


NOW = moment("now")


def from_now(session: Session, **waits: timedelta) -> dict[str, Any]:
    """The values of NOW and of the other moments of a statement: so long after now."""
    waits["now"] = timedelta(0)
    if _is_databases(session):
        return dict.fromkeys(waits) | {f"{name}_wait": wait for name, wait in waits.items()}
    at = clock.now()
    given = {name: at + wait for name, wait in waits.items()}
    return given | (dict.fromkeys(f"{name}_wait" for name in waits) if is_postgres(session) else {})


def _is_databases(session: Session) -> bool:
    return is_postgres(session) and not clock.is_pretended()
