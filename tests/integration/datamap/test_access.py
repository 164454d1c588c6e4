"""What PostgreSQL hides from a role, forbids it or does otherwise is told before anything is changed."""

from __future__ import annotations

import pytest

from effaced.datamap.check.data_map import check_map
from effaced.datamap.run.erase import erase

pytestmark = pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)

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


@pytest.fixture
def company(company):
    company.run(
        "CREATE TABLE addresses (id integer PRIMARY KEY)",
        "CREATE TABLE people (id integer PRIMARY KEY, name text, home integer REFERENCES addresses)",
        "CREATE TABLE notes (id integer, person integer, body text)",
        "CREATE TABLE branches (id integer, address integer REFERENCES addresses)",
        "INSERT INTO people VALUES (1, 'Alice', NULL)",
        "INSERT INTO notes VALUES (1, 1, 'seen'), (2, 1, 'hidden')",
        "CREATE ROLE clerk",
    )
    return company


def problems(company, yaml=MAP):
    return [each.message for each in check_map(company.session.connection(), company.map(yaml))]


def as_clerk(company, *grants):
    company.run(*grants, "SET LOCAL ROLE clerk")
    found = problems(company)
    company.run("RESET ROLE")
    return found


ALL = "GRANT SELECT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk"


class TestRowLevelSecurity:
    @pytest.fixture
    def company(self, company):
        company.run(ALL, "ALTER TABLE notes ENABLE ROW LEVEL SECURITY")
        return company

    @pytest.mark.parametrize(
        "policies",
        [
            [],
            ["CREATE POLICY one ON notes USING (id = 1)"],
            ["CREATE POLICY reading ON notes FOR SELECT USING (true)"],
            ["CREATE POLICY others ON notes TO pg_monitor USING (true)"],
            [
                "CREATE POLICY everything ON notes USING (true)",
                "CREATE POLICY less ON notes AS RESTRICTIVE USING (id = 1)",
            ],
        ],
    )
    def test_that_may_hide_rows_is_refused(self, company, policies):
        assert [each for each in as_clerk(company, *policies) if each.startswith("notes: row-level security")]

    @pytest.mark.parametrize(
        "policies",
        [
            ["CREATE POLICY everything ON notes TO clerk USING (true)"],
            [
                f"CREATE POLICY p_{each} ON notes FOR {each} USING (true)"
                for each in ("SELECT", "UPDATE", "DELETE")
            ],
            ["ALTER ROLE clerk BYPASSRLS"],
        ],
    )
    def test_that_hides_nothing_is_not(self, company, policies):
        assert as_clerk(company, *policies) == []

    def test_does_not_hold_for_the_owner(self, company):
        assert problems(company) == []
        company.run("ALTER TABLE notes FORCE ROW LEVEL SECURITY")
        assert problems(company) == []  # a superuser sees everything


class TestARole:
    def test_that_may_do_everything_is_fine(self, company):
        assert as_clerk(company, ALL) == []

    @pytest.mark.parametrize(
        ("taken", "said"),
        [
            (
                "DELETE ON notes",
                "notes: the role that effaced connects as may not delete its rows; GRANT DELETE",
            ),
            (
                "UPDATE ON people",
                "people: the role that effaced connects as may not change home, name; GRANT UPDATE",
            ),
            (
                "UPDATE ON addresses",
                "addresses: the role that effaced connects as may not lock its rows; GRANT UPDATE on one of"
                " its columns",
            ),
            (
                "SELECT ON branches",
                "branches: the role that effaced connects as may not read address; GRANT SELECT",
            ),
            (
                "SELECT ON notes",
                "notes: the role that effaced connects as may not read body, person; GRANT SELECT",
            ),
        ],
    )
    def test_without_a_right_that_the_map_needs_is_refused(self, company, taken, said):
        assert as_clerk(company, ALL, f"REVOKE {taken} FROM clerk") == [said]

    def test_needs_no_more_than_the_columns_in_question(self, company):
        taken = "REVOKE UPDATE ON people FROM clerk", "GRANT UPDATE (home, name) ON people TO clerk"
        taken += "REVOKE SELECT ON notes FROM clerk", "GRANT SELECT (person, body) ON notes TO clerk"
        assert as_clerk(company, ALL, *taken) == []
        company.run("SET LOCAL ROLE clerk")
        erase(company.session, company.plan(MAP), "1")
        company.run("RESET ROLE")
        assert company.rows("SELECT * FROM notes") == []


def test_a_column_that_a_retention_is_counted_from_must_be_readable_though_it_is_not_personal(company):
    company.run(
        "CREATE TABLE bills (person integer REFERENCES people, day date)",
        ALL,
        "REVOKE SELECT ON bills FROM clerk",
        "GRANT SELECT (person) ON bills TO clerk",
        "SET LOCAL ROLE clerk",
    )
    bills = """
      bills:
        link: {to: people, on: {person: id}}
        columns: {person: {retain: {basis: tax law, until: day + 10 years}}, day: not_personal}
    not_personal: ["""
    found = problems(company, MAP.replace("\n    not_personal: [", bills))
    company.run("RESET ROLE")
    assert found == ["bills: the role that effaced connects as may not read day; GRANT SELECT"]


def test_a_rule_that_does_something_else_is_refused(company):
    company.run("CREATE RULE keep AS ON DELETE TO notes DO INSTEAD NOTHING")
    assert problems(company) == [
        "notes: the rule keep changes what a DELETE or UPDATE does here; drop it, or make it a trigger"
    ]


def test_a_rule_for_what_never_happens_is_no_matter(company):
    company.run("CREATE RULE keep AS ON DELETE TO branches DO INSTEAD NOTHING")
    company.run("CREATE RULE more AS ON INSERT TO notes DO ALSO NOTHING")
    assert problems(company) == []


def test_a_published_table_whose_rows_have_no_identity_is_refused(company):
    company.run("CREATE PUBLICATION everything FOR ALL TABLES")
    assert problems(company) == [
        "notes: the publication everything takes no change of rows without an identity; give the table a"
        " primary key or a REPLICA IDENTITY"
    ]
    company.run("ALTER TABLE notes REPLICA IDENTITY FULL")
    assert problems(company) == []


class TestTables:
    def test_behind_another_of_their_name_are_told(self, company):
        company.run("CREATE SCHEMA old", "CREATE TABLE old.people (id integer)")
        assert problems(company) == []
        company.run("SET LOCAL search_path = public, old")
        assert problems(company) == [
            "old.people: another table of this name comes before it on the search path, so that it can't be"
            " declared; take old off the search path and name it under schemas"
        ]

    def test_that_a_map_would_call_the_same_are_refused(self, company):
        company.run(
            "CREATE SCHEMA old",
            "CREATE TABLE old.things (id integer)",
            'CREATE TABLE "old.things" (id integer)',
        )
        yaml = MAP.replace("version: 1", "version: 1\n    schemas: [old]").replace(
            "[branches]", "[branches, old.things]"
        )
        assert problems(company, yaml) == [
            "old.things: there are two tables that a map would call so; rename the one with the dot"
        ]

    def test_of_a_schema_that_is_not_there_are_missed(self, company):
        yaml = MAP.replace("version: 1", "version: 1\n    schemas: [crm]")
        assert problems(company, yaml) == ["schemas: the database has no schema 'crm'"]

    def test_of_a_schema_with_capitals_are_known_by_its_name(self, company):
        company.run(
            'CREATE SCHEMA "Old"',
            'CREATE TABLE "Old".logs (id integer, person integer) PARTITION BY LIST (id)',
            'CREATE TABLE "Old".one PARTITION OF "Old".logs FOR VALUES IN (1)',
        )
        yaml = MAP.replace("version: 1", "version: 1\n    schemas: [Old]").replace(
            "not_personal: [", "not_personal: [Old.logs, "
        )
        assert problems(company, yaml) == []
