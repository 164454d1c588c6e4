"""Code and schema that do not fit: nothing is read or written, and the reason is said."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path

import forked
import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.orm import sessionmaker

from effaced import migrate
from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.core.db.schema_level import SchemaGuard, code_level, open_database, require_fitting_schema
from effaced.core.errors import SchemaMismatch
from effaced.core.paths import MIGRATIONS
from effaced.embed import Effaced
from effaced.resolvers.registry import ResolverRegistry

SCRIPTS = list(ScriptDirectory(str(MIGRATIONS)).walk_revisions())


def newer(database: Database, oldest_code: int) -> None:
    """As a later version's migration leaves the database."""
    with database.begin() as session:
        session.execute(
            text("INSERT INTO effaced_schema_levels (revision, oldest_code) VALUES ('9000', :oldest)"),
            {"oldest": oldest_code},
        )
        session.execute(text("UPDATE effaced_alembic_version SET version_num = '9000'"))


def check(database: Database) -> None:
    with database.engine.connect() as connection:
        require_fitting_schema(connection)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.revision)
def test_every_migration_declares_the_oldest_code_that_it_tolerates(script) -> None:
    tree = ast.parse(Path(script.path).read_text(encoding="utf-8"))
    declared = {
        target.id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in {"OLDEST_CODE", "revision"}
    }
    assert "OLDEST_CODE" in declared, "add OLDEST_CODE = N (CONTRIBUTING, Changing the database)"
    # A migration can't need code that is newer than itself.
    assert 1 <= declared["OLDEST_CODE"] <= int(declared["revision"])


def test_migrations_are_numbered_in_the_order_in_which_they_are_applied() -> None:
    numbers = [int(each.revision) for each in SCRIPTS]
    assert numbers == sorted(numbers, reverse=True)
    assert code_level() == numbers[0]


class TestASchema:
    def test_of_this_code_is_fine(self, db: Database) -> None:
        check(db)

    def test_that_is_newer_and_tolerates_this_code_is_fine(self, db: Database) -> None:
        newer(db, code_level())
        check(db)

    def test_that_is_newer_and_does_not_is_refused_with_both_levels(self, db: Database) -> None:
        newer(db, code_level() + 1)
        said = rf"revision 9000.* level {code_level() + 1:04} or newer.* at level {code_level():04}"
        with pytest.raises(SchemaMismatch, match=said):
            check(db)

    def test_that_is_older_is_refused_with_the_command_to_run(self, database_url: str) -> None:
        older = SCRIPTS[1].revision
        migrate.upgrade(database_url, older)
        database = Database(database_url)
        with pytest.raises(SchemaMismatch, match=rf"{older}.*effaced migrate"):
            check(database)
        database.dispose()

    def test_from_before_there_were_levels_is_refused_too(self, database_url: str) -> None:
        migrate.upgrade(database_url, "0010")
        database = Database(database_url)
        with pytest.raises(SchemaMismatch, match=r"revision 0010.*effaced migrate"):
            check(database)
        database.dispose()


def test_levels_follow_every_upgrade_and_downgrade(database_url: str) -> None:
    migrate.upgrade(database_url)
    migrate.downgrade(database_url, "0014")
    database = Database(database_url)
    with database.read() as session:
        found = set(session.scalars(text("SELECT revision FROM effaced_schema_levels")))
    database.dispose()
    assert found == {each.revision for each in SCRIPTS if int(each.revision) <= 14}


@pytest.mark.parametrize("oldest_code", [code_level(), 9000], ids=["tolerant", "intolerant"])
def test_migrating_with_code_older_than_the_database_is_refused_in_a_sentence(
    db: Database, migrated_url: str, tmp_path: Path, oldest_code: int
) -> None:
    newer(db, oldest_code)
    environ = {**os.environ, "EFFACED_DATABASE_URL": migrated_url, "EFFACED_KEYS": new_key()}
    done = forked.run("migrate", environ=environ, folder=tmp_path)
    assert done.returncode == 1
    (said,) = done.stderr.splitlines()
    assert said.startswith("The database is at revision 9000, which this version of effaced does not know")
    with db.read() as session:
        assert session.scalar(text("SELECT version_num FROM effaced_alembic_version")) == "9000"


class TestAProcessThatIsRunning:
    @pytest.mark.parametrize("begin", [Database.begin, Database.read], ids=["writing", "reading"])
    def test_begins_no_transaction_on_a_schema_that_is_too_new(
        self, db: Database, migrated_url: str, begin: Callable[..., object]
    ) -> None:
        running = Database(migrated_url)
        SchemaGuard(every=0).watch(running.sessions, running.readers)
        with begin(running) as session:  # type: ignore[attr-defined]
            session.execute(text("SELECT 1"))
        newer(db, 9000)
        with pytest.raises(SchemaMismatch), begin(running) as session:  # type: ignore[attr-defined]
            session.execute(text("SELECT 1"))
        assert running.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
        running.dispose()

    def test_goes_on_if_the_schema_tolerates_it(self, db: Database, migrated_url: str) -> None:
        newer(db, code_level())
        running = open_database(migrated_url)
        with running.begin() as session:
            session.execute(text("SELECT 1"))
        running.dispose()

    def test_looks_once_in_a_while_and_not_each_time(self, db: Database) -> None:
        guard = SchemaGuard(every=3600)
        with db.engine.connect() as connection:
            guard.require(connection)
            assert not guard.is_due

    def test_a_refusal_is_not_remembered(self, db: Database) -> None:
        guard = SchemaGuard(every=3600)
        newer(db, 9000)
        with db.engine.connect() as connection, pytest.raises(SchemaMismatch):
            guard.require(connection)
        assert guard.is_due


def test_the_check_leaves_a_transaction_usable(database_url: str) -> None:
    """In a database without any of the tables: a failed statement would end the caller's transaction."""
    database = Database(database_url)

    def refuse(connection: Connection) -> None:
        with pytest.raises(SchemaMismatch, match="no effaced tables yet"):
            require_fitting_schema(connection)

    with database.begin() as session:
        refuse(session.connection())
        assert session.scalar(text("SELECT 1")) == 1
    database.dispose()


class TestEmbedded:
    @pytest.fixture
    def embedded(self, db: Database, tmp_path: Path) -> Effaced:
        with db.begin() as session:
            session.execute(text("CREATE TABLE people (id integer PRIMARY KEY, name text)"))
            session.execute(text("INSERT INTO people VALUES (1, 'Ada')"))
        path = tmp_path / "map.yaml"
        path.write_text(
            "version: 1\nsubject: {table: people, key: id}\n"
            "tables: {people: {columns: {id: delete, name: delete}}}\n"
        )
        return Effaced(sessionmaker(db.engine), keys=new_key(), datamap=path, resolvers=ResolverRegistry(()))

    def test_an_erasure_raises_and_changes_nothing(self, db: Database, embedded: Effaced) -> None:
        newer(db, 9000)
        with pytest.raises(SchemaMismatch), db.begin() as session:
            embedded.erase(session, "1")
        with db.read() as session:
            assert session.scalar(text("SELECT name FROM people")) == "Ada"

    def test_the_runner_raises(self, db: Database, embedded: Effaced) -> None:
        import asyncio

        newer(db, 9000)
        with pytest.raises(SchemaMismatch):
            asyncio.run(embedded.runner().run_once())

    def test_the_applications_own_sessions_go_on(self, db: Database, embedded: Effaced) -> None:
        newer(db, 9000)
        with sessionmaker(db.engine)() as session:
            assert session.scalar(text("SELECT name FROM people")) == "Ada"
