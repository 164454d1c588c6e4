"""Bringing the database to the current shape: Alembic, one tree for PostgreSQL and SQLite."""

from __future__ import annotations

import importlib
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from effaced.db import Base, Database
from effaced.errors import Unavailable
from effaced.paths import MIGRATIONS

VERSION_TABLE = "effaced_alembic_version"
_PACKAGE = Path(__file__).parent


def upgrade(url: str, revision: str = "head") -> None:
    """Apply what is missing. Several processes may call this at once; one does the work."""
    command.upgrade(_config(url), revision)


def downgrade(url: str, revision: str) -> None:
    command.downgrade(_config(url), revision)


def require_current(connection: Connection) -> None:
    """Refuse to work on a database of another shape than this version of effaced knows."""
    found = MigrationContext.configure(
        connection, opts={"version_table": VERSION_TABLE}
    ).get_current_revision()
    wanted = ScriptDirectory(str(MIGRATIONS)).get_current_head()
    if found != wanted:
        state = "has no effaced tables yet" if found is None else f"is at revision {found}, not {wanted}"
        raise Unavailable(f"The database {state}. Run `effaced migrate`.")


def load_tables() -> type[Base]:
    """Import every room's tables, so that Base.metadata is whole."""
    for tables in sorted(_PACKAGE.glob("*/tables.py")):
        importlib.import_module(f"effaced.{tables.parent.name}.tables")
    return Base


def _config(url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["database"] = Database(url)
    return config
