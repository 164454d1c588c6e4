"""Does this process's code fit the database's schema? Asked while it runs, not only when it starts.

Migrations are numbered. The code's level is the number of the newest migration it came with. Each migration
records in the database which code it tolerates (`OLDEST_CODE` in its file): expand-only migrations tolerate
older code, so that a fleet can be upgraded one process at a time; code that is older than that stops.
"""

from __future__ import annotations

from functools import cache

from sqlalchemy import Connection, Integer, String, event, func, inspect, select, text
from sqlalchemy.orm import Mapped, Session, SessionTransaction, mapped_column, sessionmaker

from effaced.core import clock
from effaced.core.db.columns import OWNER_WRITES, Base
from effaced.core.db.engine import Database
from effaced.core.errors import SchemaMismatch
from effaced.core.paths import MIGRATIONS

VERSION_TABLE = "effaced_alembic_version"
# How long a running process may be unaware of a migration.
_CHECK_EVERY_S = 2.0


class SchemaLevel(Base):
    """One applied migration, and the oldest code that works on the schema it made."""

    __tablename__ = "effaced_schema_levels"
    __table_args__ = {"info": OWNER_WRITES}  # noqa: RUF012

    revision: Mapped[str] = mapped_column(String(32), primary_key=True)
    oldest_code: Mapped[int] = mapped_column(Integer)


@cache
def code_level() -> int:
    """The number of the newest migration that this code came with."""
    return max(int(path.name[:4]) for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))


def require_fitting_schema(connection: Connection) -> None:
    """Refuse to work on a schema that this code is too old or too new for."""
    code = code_level()
    found = _read(connection)
    if found is None:
        raise SchemaMismatch("The database has no effaced tables yet. Run `effaced migrate`.")
    database, oldest_code = found
    if database < code:
        raise SchemaMismatch(
            f"The database is at revision {database:04}, this version of effaced needs {code:04}."
            " Run `effaced migrate`."
        )
    if oldest_code > code:
        raise SchemaMismatch(
            f"The database was migrated to revision {database:04}, which needs effaced at level"
            f" {oldest_code:04} or newer. This process is at level {code:04} and has stopped working:"
            " upgrade effaced here and restart it."
        )


class SchemaGuard:
    """Checks at most every `every` seconds, in the transaction that is about to do something."""

    def __init__(self, every: float = _CHECK_EVERY_S) -> None:
        self._every = every
        self._check_at = float("-inf")

    @property
    def is_due(self) -> bool:
        return clock.monotonic() >= self._check_at

    def require(self, connection: Connection) -> None:
        """Refuse unless the schema fits. A refusal is not remembered: the next call checks again."""
        if self.is_due:
            require_fitting_schema(connection)
            self._check_at = clock.monotonic() + self._every

    def watch(self, *makers: sessionmaker[Session]) -> None:
        """Check when a transaction of their sessions begins."""
        for sessions in makers:
            event.listen(sessions, "after_begin", self._check)

    def _check(self, _session: Session, _transaction: SessionTransaction, connection: Connection) -> None:
        self.require(connection)


def open_database(url: str) -> Database:
    """The database of a process that works on effaced's tables: no transaction starts on an incompatible
    schema."""
    database = Database(url)
    SchemaGuard().watch(database.sessions, database.readers)
    return database


def _read(connection: Connection) -> tuple[int, int] | None:
    """The database's level and the oldest code it tolerates; nothing if it has no tables of effaced's.

    Never runs a statement that fails: on PostgreSQL that would spoil the caller's transaction.
    """
    if inspect(connection).has_table(SchemaLevel.__tablename__):
        newest, oldest = connection.execute(
            select(func.max(SchemaLevel.revision), func.max(SchemaLevel.oldest_code))
        ).one()
        if newest is not None:
            return int(newest), oldest
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    revision = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608
    return None if revision is None else (int(revision), 0)
