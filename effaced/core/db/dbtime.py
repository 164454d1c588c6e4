"""The time that machines compare with each other: the database's, not their own.

Gates, leases and pauses are written by one machine and read by another. If each used its own clock, one that
is five minutes ahead would take every live lease for an expired one. So on PostgreSQL the server's clock
counts. SQLite is used by one machine, whose clock will do. While tests pretend a time, that time counts.

What claims compare and what settles write, PostgreSQL fills in itself: see `moment`. Other code asks `now`,
which costs a round trip once in a while.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Engine, Interval, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from effaced.core import clock
from effaced.core.db.columns import UtcDateTime
from effaced.core.db.engine import is_postgres
from effaced.core.db.pipeline import driver_connection

_KEPT_SECONDS = 10.0
_JUMP_SECONDS = 0.5


class _Reading(NamedTuple):
    """What the database's clock said, and what the steady clock and the wall clock of this machine did."""

    at: datetime
    steady: float
    wall: datetime

    def is_good(self) -> bool:
        """Whether time can be counted on from here: not if the machine slept, or somebody set its clock."""
        passed = clock.monotonic() - self.steady
        jumped = abs((clock.now() - self.wall).total_seconds() - passed) > _JUMP_SECONDS
        return passed < _KEPT_SECONDS and not jumped

    def now(self) -> datetime:
        return self.at + timedelta(seconds=clock.monotonic() - self.steady)


_readings: WeakKeyDictionary[Engine, _Reading] = WeakKeyDictionary()


def now(session: Session) -> datetime:
    """The current moment by the database's clock, never ahead of it. Between two looks at that clock the
    steady clock of this machine counts."""
    if not _uses_database_clock(session):
        return clock.now()
    engine = session.get_bind().engine
    known = _known(engine)
    if known is None:
        reading = _readings[engine] = _read(session)
        known = reading.now()
    return known


def now_for(sessions: sessionmaker[Session]) -> datetime:
    """The same for code that has no session open. It is often asked, and seldom opens one."""
    bind = sessions.kw.get("bind")
    known = _known(bind) if isinstance(bind, Engine) and not clock.is_pretended() else None
    if known is not None:
        return known
    # Committed: a rollback has psycopg forget the connection's prepared statements.
    with sessions.begin() as session:
        return now(session)


def _known(engine: Engine) -> datetime | None:
    reading = _readings.get(engine)
    return reading.now() if reading is not None and reading.is_good() else None


def _read(session: Session) -> _Reading:
    # Past SQLAlchemy, which would find no rows while statements travel together.
    with driver_connection(session.connection()).cursor() as cursor:
        row = cursor.execute("SELECT statement_timestamp()").fetchone()
    assert row is not None
    return _Reading(row[0].astimezone(UTC), clock.monotonic(), clock.now())


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
    """A moment that a statement compares or writes. `from_now` gives its value under the same name."""
    return _Moment(bindparam(name, type_=UtcDateTime()), bindparam(f"{name}_wait", type_=Interval()))


NOW = moment("now")


def from_now(session: Session, **waits: timedelta | None) -> dict[str, Any]:
    """The values of NOW and of the other moments of a statement: so long after now, or never."""
    waits["now"] = timedelta(0)
    if _uses_database_clock(session):
        return dict.fromkeys(waits) | {f"{name}_wait": wait for name, wait in waits.items()}
    at = clock.now()
    given = {name: None if wait is None else at + wait for name, wait in waits.items()}
    return given | dict.fromkeys(f"{name}_wait" for name in waits)


def _uses_database_clock(session: Session) -> bool:
    return is_postgres(session) and not clock.is_pretended()
