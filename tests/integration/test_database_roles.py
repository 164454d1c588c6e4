"""`effaced database roles`, and what start-up says of a role that may not do its work."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from roles_cast import Cast, cast
from sqlalchemy import make_url

from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.core.db.roles import ALL_RIGHTS, run_rights
from effaced.core.errors import ConfigurationError
from effaced.migrate import load_tables
from effaced.runtime import Runtime

MAP = """
version: 1
subject: {table: people, key: id}
rectify: {name: people.name}
tables:
  people: {columns: {id: not_personal, name: {anonymise: null}, home: delete}}
  notes: {link: {to: people, on: {person: id}}, columns: {id: not_personal, person: delete, body: delete}}
  addresses: {link: {from: people, on: {id: home}}, columns: {id: delete}}
not_personal: [branches]
"""
COMPANY = (
    "CREATE TABLE addresses (id integer PRIMARY KEY)",
    "CREATE TABLE people (id integer PRIMARY KEY, name text, home integer REFERENCES addresses)",
    "CREATE TABLE notes (id integer, person integer, body text)",
    "CREATE TABLE branches (id integer, address integer REFERENCES addresses)",
)


@pytest.fixture
def roles(fresh_postgres_url: str, tmp_path: Path) -> Iterator[Cast]:
    with cast(fresh_postgres_url, tmp_path) as made:
        yield made


@pytest.fixture
def company_map(roles: Cast, tmp_path: Path) -> Path:
    roles.execute(*COMPANY)
    path = tmp_path / "datamap.yaml"
    path.write_text(MAP)
    return path


def runtime(roles: Cast, kind: str, datamap: Path) -> Runtime:
    (resolvers := datamap.with_name("resolvers.yaml")).write_text("version: 1\nresolvers: {}\n")
    url = roles.url(kind)
    return Runtime(Settings(database_url=url, keys=new_key(), datamap=datamap, resolvers=resolvers))  # type: ignore[arg-type]


def refused(roles: Cast, kind: str, datamap: Path) -> str:
    """What start-up says, or nothing if it starts."""
    started = runtime(roles, kind, datamap)
    try:
        started.require_ready()
    except ConfigurationError as error:
        return str(error)
    finally:
        started.db.dispose()
    return ""


def run_command(roles: Cast, url: str) -> subprocess.CompletedProcess[str]:
    """`effaced database roles`, whatever comes of it."""
    named = [each for kind in ("owner", "run", "read") for each in (f"--{kind}", roles.name(kind))]
    return roles.effaced("database", "roles", *named, url=url)


def granted(roles: Cast, kind: str, table: str) -> set[str]:
    with psycopg.connect(roles.admin_url) as connection:
        query = (
            "SELECT privilege_type FROM information_schema.role_table_grants"
            " WHERE grantee = %s AND table_name = %s"
        )
        return {right for (right,) in connection.execute(query, (roles.name(kind), table))}


def test_every_table_of_the_trail_says_what_the_run_role_may_do_with_it() -> None:
    trail = {t.name: t.info for t in load_tables().metadata.sorted_tables if "_audit_" in t.name}
    assert trail
    assert [name for name, info in trail.items() if "run_rights" not in info] == []


class TestTheRunRole:
    def test_starts_after_roles_migration_and_roles_again(self, roles: Cast, company_map: Path) -> None:
        roles.make_roles()
        roles.migrate()
        roles.make_roles(company_map)
        assert refused(roles, "run", company_map) == ""

    def test_has_the_same_rights_whether_tables_were_made_before_or_after(self, roles: Cast) -> None:
        roles.make_roles()
        roles.migrate()
        by_default = {name: granted(roles, "run", name) for name in run_rights(load_tables().metadata)}
        roles.make_roles()
        explicitly = {name: granted(roles, "run", name) for name in by_default}
        assert by_default == explicitly
        assert by_default == {n: set(rights) for n, rights in run_rights(load_tables().metadata).items()}

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE effaced_audit_events SET actor = 'x'",
            "DELETE FROM effaced_audit_events",
            "TRUNCATE effaced_audit_events",
            "DROP TABLE effaced_audit_events",
            "ALTER TABLE effaced_audit_events DISABLE TRIGGER ALL",
            "CREATE OR REPLACE FUNCTION effaced_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN RETURN old; END'",
            "UPDATE effaced_schema_levels SET oldest_code = 0",
            "TRUNCATE effaced_requests",
        ],
    )
    def test_cannot_change_the_trail_or_what_protects_it(self, roles: Cast, statement: str) -> None:
        roles.make_roles()
        roles.migrate()
        with (
            psycopg.connect(roles.url("run")) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute(statement.encode())

    def test_has_no_more_rights_on_the_companys_tables_than_the_map_needs(
        self, roles: Cast, company_map: Path
    ) -> None:
        roles.make_roles(company_map)
        rights = {name: granted(roles, "run", name) for name in ("people", "notes", "addresses", "branches")}
        assert rights == {
            "people": {"SELECT"},
            "notes": {"SELECT", "DELETE"},
            "addresses": {"SELECT", "DELETE"},
            "branches": set(),
        }
        with psycopg.connect(roles.url("run")) as connection:
            connection.execute("SELECT address FROM branches")
            connection.execute("UPDATE people SET name = NULL, home = NULL")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("UPDATE people SET id = 1")

    def test_may_run_migrate_when_there_is_nothing_to_do(self, roles: Cast) -> None:
        roles.make_roles()
        roles.migrate()
        done = roles.effaced("migrate", url=roles.url("run"))
        assert (done.returncode, done.stdout) == (0, "The database is up to date.\n")


class TestStartUp:
    @pytest.fixture(autouse=True)
    def ready(self, roles: Cast, company_map: Path) -> None:
        roles.make_roles()
        roles.migrate()
        roles.make_roles(company_map)

    @pytest.mark.parametrize(
        ("taken", "named"),
        [
            ("DELETE ON effaced_attempts", "GRANT DELETE ON TABLE effaced_attempts"),
            ("SELECT ON effaced_schema_levels", "GRANT SELECT ON TABLE effaced_schema_levels"),
            ("INSERT, SELECT ON effaced_outbox", "GRANT INSERT, SELECT ON TABLE effaced_outbox"),
            ("USAGE ON SEQUENCE effaced_attempts_id_seq", "GRANT USAGE ON SEQUENCE effaced_attempts_id_seq"),
            ("DELETE ON notes", "notes: the role that effaced connects as may not delete its rows"),
        ],
    )
    def test_names_the_missing_grant(self, roles: Cast, company_map: Path, taken: str, named: str) -> None:
        roles.execute(f"REVOKE {taken} FROM {roles.name('run')}")
        assert named in refused(roles, "run", company_map)

    def test_is_mended_by_the_grants_that_it_names(self, roles: Cast, company_map: Path) -> None:
        run = roles.name("run")
        roles.execute(
            f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {run}",
            f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM {run}",
        )
        said = refused(roles, "run", company_map)
        roles.execute(*(line for line in said.splitlines() if line.lstrip().startswith("GRANT")))
        roles.make_roles(company_map)
        assert refused(roles, "run", company_map) == ""

    def test_names_a_schema_that_the_role_cannot_use(self, roles: Cast, company_map: Path) -> None:
        roles.execute(
            "REVOKE USAGE ON SCHEMA public FROM PUBLIC",
            f"REVOKE USAGE ON SCHEMA public FROM {roles.name('run')}",
        )
        assert "GRANT USAGE ON SCHEMA public TO" in refused(roles, "run", company_map)

    def test_refuses_the_documented_role_of_earlier_versions(self, roles: Cast, company_map: Path) -> None:
        """It had no DELETE on effaced's tables: retentions ended in an error and nothing was forgotten."""
        roles.execute(f"REVOKE DELETE ON ALL TABLES IN SCHEMA public FROM {roles.name('run')}")
        said = refused(roles, "run", company_map)
        assert "GRANT DELETE ON TABLE effaced_retention_endings" in said
        assert "effaced_audit_events" not in said


class TestTheCommand:
    def test_prints_sql_that_does_the_same(self, roles: Cast, company_map: Path) -> None:
        printed = roles.make_roles(company_map, "--print")
        assert not roles.exists("run")
        roles.execute(printed)
        assert granted(roles, "run", "notes") == {"SELECT", "DELETE"}

    def test_can_be_run_by_somebody_who_is_no_superuser(self, roles: Cast, company_map: Path) -> None:
        dba = roles.name("dba")
        roles.execute(
            f"CREATE ROLE {dba} LOGIN CREATEROLE PASSWORD '{roles.password}'",
            f"GRANT ALL ON SCHEMA public TO {dba} WITH GRANT OPTION",
            *(f"ALTER TABLE {name} OWNER TO {dba}" for name in ("people", "notes", "addresses", "branches")),
        )
        roles.make_roles(company_map, url=roles.url("dba"))
        roles.migrate()
        assert refused(roles, "run", company_map) == ""

    def test_refuses_where_its_grants_would_have_no_effect_and_names_who_can_help(self, roles: Cast) -> None:
        dba = roles.name("dba")
        roles.execute(
            f"CREATE ROLE {dba} LOGIN CREATEROLE PASSWORD '{roles.password}'",
            f"GRANT CREATE ON SCHEMA public TO {dba}",
        )
        done = run_command(roles, roles.url("dba"))
        admin = make_url(roles.admin_url).username
        sentence, missing = done.stderr.splitlines()[-2:]
        assert (done.returncode, done.stdout) == (1, "")
        assert f"{dba} may not give rights that the roles need" in sentence
        asked = f"GRANT CREATE ON SCHEMA public TO {dba} WITH GRANT OPTION;"
        assert missing.strip() == f"as {admin}: {asked}"
        assert not roles.exists("owner")
        roles.execute(asked)
        roles.make_roles(url=roles.url("dba"))
        roles.migrate()

    def test_refuses_where_it_can_not_let_the_roles_connect(self, roles: Cast) -> None:
        dba, name = roles.name("dba"), make_url(roles.admin_url).database
        roles.execute(
            f"CREATE ROLE {dba} LOGIN CREATEROLE PASSWORD '{roles.password}'",
            f"GRANT ALL ON SCHEMA public TO {dba} WITH GRANT OPTION",
            f'REVOKE CONNECT ON DATABASE "{name}" FROM PUBLIC',
            f'GRANT CONNECT ON DATABASE "{name}" TO {dba}',
        )
        done = run_command(roles, roles.url("dba"))
        assert done.returncode == 1
        assert "GRANT CONNECT ON DATABASE" in done.stderr

    def test_speaks_of_passwords_only_for_roles_that_it_has_made(self, roles: Cast) -> None:
        first, second = (run_command(roles, roles.admin_url) for _ in range(2))
        assert (first.returncode, second.returncode) == (0, 0)
        made = ", ".join(roles.name(kind) for kind in ("owner", "run", "read"))
        assert f"These have none yet: {made}." in first.stderr
        assert "Set passwords" in first.stderr
        assert "Set passwords" not in second.stderr

    def test_takes_over_tables_that_somebody_else_made(self, roles: Cast, company_map: Path) -> None:
        from effaced import migrate

        migrate.upgrade(roles.admin_url)
        roles.make_roles(company_map)
        assert refused(roles, "run", company_map) == ""
        migrate.downgrade(roles.url("owner"), "0001")

    def test_works_in_another_schema_than_public(self, roles: Cast, company_map: Path) -> None:
        with psycopg.connect(roles.admin_url) as connection:
            name = connection.execute("SELECT quote_ident(current_database())").fetchone()
        assert name is not None
        roles.execute("CREATE SCHEMA privacy", f"ALTER DATABASE {name[0]} SET search_path = privacy, public")
        roles.make_roles()
        roles.migrate()
        roles.make_roles(company_map)
        assert refused(roles, "run", company_map) == ""
        with psycopg.connect(roles.admin_url) as connection:
            found = connection.execute(
                "SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 'effaced%'"
            ).fetchone()
        assert found == (0,)

    def test_says_that_sqlite_has_no_roles(self, tmp_path: Path, roles: Cast) -> None:
        done = roles.effaced("database", "roles", url=f"sqlite:///{tmp_path / 'x.db'}")
        assert (done.returncode, "SQLite has no roles" in done.stderr) == (1, True)


def test_rights_that_a_table_does_not_name_are_all_four() -> None:
    assert run_rights(load_tables().metadata)["effaced_attempts"] == ALL_RIGHTS
