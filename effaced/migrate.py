"""Bringing the database to the current shape: Alembic, one tree for PostgreSQL and SQLite."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.script.revision import ResolutionError
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, delete, insert, inspect, select

from effaced.core.db import Base, Database
from effaced.core.db.roles import revoke_extra_rights
from effaced.core.db.schema_level import VERSION_TABLE, SchemaLevel, code_level
from effaced.core.errors import SchemaMismatch
from effaced.core.paths import MIGRATIONS

_PACKAGE = Path(__file__).parent


def upgrade(database: str | Engine, revision: str = "head") -> None:
    """Apply what is missing. Several processes may call this at once; one does the work.

    An application's own engine is used as it is: its address need not say where it connects to.
    """
    with _refusing_a_newer_database(revision), _engine_of(database) as engine:
        command.upgrade(_config(engine), revision)


def downgrade(url: str, revision: str) -> None:
    with _refusing_a_newer_database(revision), _engine_of(url) as engine:
        command.downgrade(_config(engine), revision)


@contextmanager
def _refusing_a_newer_database(wanted: str) -> Iterator[None]:
    """Say in a sentence that the database is at a revision which this code does not know."""
    try:
        yield
    except CommandError as error:
        unknown = error.__cause__.argument if isinstance(error.__cause__, ResolutionError) else wanted
        if unknown == wanted:  # the caller's mistake, not the database's state
            raise
        raise SchemaMismatch(
            f"The database is at revision {unknown}, which this version of effaced does not know; its newest"
            f" is {code_level():04}. A newer version has migrated it: upgrade effaced here."
            " Nothing was changed."
        ) from None


def finish(connection: Connection) -> None:
    """What follows every migration, in its transaction: levels recorded, append-only tables protected."""
    _record_levels(connection)
    revoke_extra_rights(connection, load_tables().metadata)


def _record_levels(connection: Connection) -> None:
    """Write down which code each applied migration tolerates: `OLDEST_CODE` in its file."""
    if not inspect(connection).has_table(SchemaLevel.__tablename__):
        return  # downgraded to before there were levels
    revision = MigrationContext.configure(
        connection, opts={"version_table": VERSION_TABLE}
    ).get_current_revision()
    scripts = ScriptDirectory(str(MIGRATIONS)).iterate_revisions(revision, "base")
    wanted = {each.revision: each.module.OLDEST_CODE for each in scripts}
    levels = Base.metadata.tables[SchemaLevel.__tablename__]
    if wanted == {row.revision: row.oldest_code for row in connection.execute(select(levels))}:
        return  # nothing to write, which a role that only runs could not
    connection.execute(delete(levels))
    connection.execute(
        insert(levels), [{"revision": each, "oldest_code": oldest} for each, oldest in wanted.items()]
    )


def load_tables() -> type[Base]:
    """Import every room's tables, so that Base.metadata is whole."""
    for tables in sorted(_PACKAGE.glob("*/tables.py")):
        importlib.import_module(f"effaced.{tables.parent.name}.tables")
    return Base


@contextmanager
def _engine_of(database: str | Engine) -> Iterator[Engine]:
    if isinstance(database, Engine):
        if database.dialect.name == "sqlite":
            # Readers and a writer would wait for each other otherwise. The file remembers it.
            with closing(database.raw_connection()) as connection, closing(connection.cursor()) as cursor:
                cursor.execute("PRAGMA journal_mode = WAL")
        yield database
        return
    own = Database(database)
    try:
        yield own.engine
    finally:
        own.dispose()


def _config(engine: Engine) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = engine
    return config
