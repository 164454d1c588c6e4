"""Alembic's way in. effaced/migrate.py calls it; `alembic` on the command line works too."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Engine, text

from effaced.core.config import load_settings
from effaced.core.db import Database
from effaced.core.db.schema_level import VERSION_TABLE
from effaced.core.db.transactions import require_transaction
from effaced.migrate import finish, load_tables

LOCK = 0x65666661636564  # "effaced"


def ours(name: str | None, type_: str, parent_names: object) -> bool:
    """Only effaced's own tables: the company's live beside them and are none of our business."""
    return type_ != "table" or (name or "").startswith("effaced_")


def include(obj: object, name: str | None, type_: str, reflected: bool, compare_to: object) -> bool:
    return ours(name, type_, None)


def run() -> None:
    engine: Engine | None = context.config.attributes.get("engine")
    if engine is not None:
        _migrate(engine)
        return
    database = Database(load_settings().database_url)
    try:
        _migrate(database.engine)
    finally:
        database.dispose()


def _migrate(engine: Engine) -> None:
    """All of it in one transaction, so that a pool gets the connection back as it gave it."""
    postgres = engine.dialect.name == "postgresql"
    # What another deployment did while this one waited has to be seen, whatever the engine says.
    options = {"isolation_level": "READ COMMITTED"} if postgres else {}
    with engine.connect().execution_options(**options) as connection, connection.begin():
        if postgres:
            # Two deployments at once: the second waits here, then finds nothing left to do.
            connection.execute(text("SET LOCAL lock_timeout = '60s'"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
        require_transaction(connection)
        context.configure(
            connection=connection,
            target_metadata=load_tables().metadata,
            version_table=VERSION_TABLE,
            include_name=ours,
            include_object=include,
            render_as_batch=not postgres,
            transactional_ddl=True,
        )
        with context.begin_transaction():
            context.run_migrations()
            finish(connection)


run()
