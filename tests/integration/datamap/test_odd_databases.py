"""Things that databases allow and hardly anybody has in mind: they are handled, or refused beforehand."""

from __future__ import annotations

import re

import pytest

from effaced.core.errors import Conflict
from effaced.datamap.check.data_map import check_map
from effaced.datamap.check.notes import find_notes
from effaced.datamap.model.data_map import Action
from effaced.datamap.run.erase import dry_run, erase, erase_and_verify
from effaced.datamap.run.rectify import rectify
from effaced.datamap.schema.read import read_schema
from effaced.model import Correction

ONLY_SQLITE = pytest.mark.parametrize("company_database", ["sqlite"], indirect=True)
ONLY_POSTGRES = pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)


def problems(company, yaml):
    return [each.message for each in check_map(company.session.connection(), company.map(yaml))]


@ONLY_SQLITE
class TestConstraintsThatActByThemselves:
    MAP = """
        version: 1
        subject: {table: people, key: id}
        rectify: {email: people.email}
        tables:
          people: {columns: {id: not_personal, email: {anonymise: random_unique}}}
        """

    @pytest.mark.parametrize("clause", ["REPLACE", "IGNORE"])
    def test_neither_delete_somebody_else_nor_keep_a_correction_quiet(self, company, clause):
        company.run(
            f"CREATE TABLE people (id integer PRIMARY KEY, email text UNIQUE ON CONFLICT {clause})",
            "INSERT INTO people VALUES (1, 'alice@example.org'), (2, 'bob@example.org')",
        )
        before = company.rows("SELECT * FROM people")
        with pytest.raises(Conflict, match="a constraint"):
            rectify(company.session, company.plan(self.MAP), "1", [Correction("email", "bob@example.org")])
        assert company.rows("SELECT * FROM people") == before


class TestRowsOfOneTableThatPointAtEachOther:
    MAP = """
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete}}
          comments:
            link: {to: people, on: {author: id}}
            mentions: {to: comments, on: {answers: id}, columns: {answers: delete}}
            columns: {id: delete, author: delete, answers: delete}
        """

    @pytest.mark.parametrize("action", ["CASCADE", "RESTRICT", "SET NULL", "NO ACTION"])
    def test_are_all_counted_whatever_the_foreign_key_does(self, company, action):
        company.run(
            "CREATE TABLE people (id integer PRIMARY KEY)",
            "CREATE TABLE comments (id integer PRIMARY KEY, author integer,"
            f" answers integer REFERENCES comments ON DELETE {action})",
            "INSERT INTO people VALUES (1), (2)",
            "INSERT INTO comments VALUES (1, 1, NULL), (2, 1, 1), (3, 2, 1), (4, 1, 2)",
        )
        plan = company.plan(self.MAP)
        foreseen = dry_run(company.session, plan, "1")
        assert foreseen == erase(company.session, plan, "1")
        assert [(each.action, each.rows) for each in foreseen if each.table == "comments"] == [
            (Action.DETACHED, 1),
            (Action.DELETED, 3),
        ]
        assert company.rows("SELECT * FROM comments") == [(3, 2, None)]


@ONLY_SQLITE
class TestPrimaryKeysOfSqlite:
    """Rows of addresses are looked up first, and told by their keys afterwards."""

    MAP = """
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: not_personal, home: delete, name: {anonymise: null}}}
          addresses: {link: {from: people, on: {id: home}}, columns: {id: delete, part: delete}}
        """

    def home(self, company, kind, key, part="'a'"):
        company.run(
            f"CREATE TABLE addresses (id {kind} UNIQUE, part text, PRIMARY KEY (id, part))",
            f"CREATE TABLE people (id integer PRIMARY KEY, home {kind} REFERENCES addresses (id), name text)",
            f"INSERT INTO addresses VALUES ({key}, {part})",
            f"INSERT INTO people VALUES (1, {key}, 'Alice')",
        )

    @pytest.mark.parametrize(("key", "part"), [("'x'", "NULL"), ("x'00ff'", "'a'")])
    def test_that_can_not_be_told_stop_the_erasure_before_it_begins(self, company, key, part):
        self.home(company, "text", key, part)
        before = company.rows("SELECT * FROM people")
        with pytest.raises(
            Conflict, match=r"A row of table 'addresses' .* has NULL or bytes in its primary key"
        ):
            erase(company.session, company.plan(self.MAP), "1")
        assert company.rows("SELECT * FROM people") == before

    @pytest.mark.parametrize("key", ["0.1", "'abc'", "12345678901234567890", "-7", "''"])
    def test_are_told_whatever_a_column_of_numbers_holds(self, company, key):
        self.home(company, "numeric", key)
        erased = erase_and_verify(company.session, company.plan(self.MAP), "1")
        assert erased.left == {}
        assert company.rows("SELECT * FROM addresses") == []


class TestUniqueness:
    MAP = """
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete}}
          parcels: {link: {to: people, on: {person: id}}, columns: {number: delete, person: delete}}
          scans: {link: {to: parcels, on: {parcel: number}}, columns: {parcel: delete}}
        """
    SAID = (
        "scans.link: parcels(number) is not unique, so a row of scans could belong to several people; link to"
        " a key, or make it unique"
    )

    @ONLY_POSTGRES
    def test_by_an_index_that_is_not_valid_is_none(self, company):
        company.run(
            "CREATE TABLE people (id integer PRIMARY KEY)",
            "CREATE TABLE parcels (number integer, person integer) PARTITION BY HASH (number)",
            "CREATE TABLE parcels_0 PARTITION OF parcels FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
            "CREATE UNIQUE INDEX ON ONLY parcels (number)",
            "CREATE TABLE scans (parcel integer)",
        )
        assert problems(company, self.MAP) == [self.SAID]
        company.run("CREATE UNIQUE INDEX ON parcels (number)")
        assert problems(company, self.MAP) == []

    @ONLY_SQLITE
    def test_by_an_index_that_compares_otherwise_than_the_column_is_none(self, company):
        company.run(
            "CREATE TABLE people (id integer PRIMARY KEY)",
            "CREATE TABLE parcels (number text COLLATE NOCASE, person integer)",
            "CREATE UNIQUE INDEX one ON parcels (number COLLATE BINARY)",
            "CREATE TABLE scans (parcel text COLLATE NOCASE)",
        )
        assert problems(company, self.MAP) == [self.SAID]
        company.run("CREATE UNIQUE INDEX two ON parcels (number)")
        assert problems(company, self.MAP) == []

    @ONLY_POSTGRES
    def test_by_an_exclusion_is_seen(self, company):
        company.run(
            "CREATE TABLE people (id integer PRIMARY KEY, email text, EXCLUDE USING btree (email WITH =))"
        )
        yaml = """
            version: 1
            subject: {table: people, key: id}
            tables: {people: {columns: {id: not_personal, email: {anonymise: SURROGATE}}}}
            """
        assert problems(company, yaml.replace("SURROGATE", "fixed_text")) == [
            "people.email: the column is UNIQUE, and fixed_text can repeat; use random_unique"
        ]
        assert problems(company, yaml.replace("SURROGATE", "random_unique")) == []
        assert problems(company, yaml.replace("SURROGATE", "null")) == []

    @ONLY_POSTGRES
    def test_in_which_null_counts_as_a_value_is_not_kept_by_one_that_may_be_null(self, company):
        company.run(
            "CREATE TABLE people (id integer PRIMARY KEY, name text, nick text,"
            " UNIQUE NULLS NOT DISTINCT (name, nick))"
        )
        yaml = """
            version: 1
            subject: {table: people, key: id}
            tables:
              people:
                columns: {id: not_personal, name: {anonymise: fixed_text}, nick: {anonymise: random_unique}}
            """
        assert problems(company, yaml) == [
            "people.name: the column is UNIQUE together with nick, and fixed_text can repeat; use"
            " random_unique",
            "people.nick: the column is UNIQUE together with name, and random_unique can repeat",
        ]
        company.run("ALTER TABLE people ALTER nick SET NOT NULL")
        assert problems(company, yaml) == []


@ONLY_POSTGRES
@pytest.mark.parametrize(
    "rule", ["anonymise: random_unique", "anonymise: random_email", "anonymise: random_uuid", "scrub: [id]"]
)
def test_texts_are_searched_letter_by_letter_whatever_their_column_takes_for_the_same(company, rule):
    """By its SQL: not every server has the collations (ICU's) under which PostgreSQL refuses a pattern."""
    company.run("CREATE TABLE people (id text PRIMARY KEY, it text)")
    plan = company.plan(
        "version: 1\nsubject: {table: people, key: id}\ntables:\n"
        f"  people: {{columns: {{id: {{retain: law}}, it: {{{rule}}}}}}}\n"
    )
    searched = re.findall(r"(.{12}) !?~ ", str(plan.count_affected.compile(company.session.connection())))
    assert set(searched) == {'COLLATE "C")'}


@ONLY_POSTGRES
class TestPartitions:
    MAP = """
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: {retain: law}}}
          visits:
            link: {to: people, on: {person: id}}
            columns: {person: not_personal, day: not_personal, country: RULE, note: {anonymise: null}}
        """

    @pytest.fixture
    def company(self, company):
        company.run(
            "CREATE TABLE people (id integer PRIMARY KEY)",
            "CREATE TABLE visits (person integer, day date, country text, note text)"
            " PARTITION BY LIST (country)",
            "CREATE TABLE visits_de PARTITION OF visits FOR VALUES IN ('de', NULL) PARTITION BY RANGE (day)",
            "CREATE TABLE visits_de_1 PARTITION OF visits_de FOR VALUES"
            " FROM ('2020-01-01') TO ('2021-01-01')",
            "CREATE TABLE visits_gone PARTITION OF visits FOR VALUES IN ('gone')",
            "INSERT INTO people VALUES (1)",
            "INSERT INTO visits VALUES (1, '2020-05-05', 'de', 'Alice')",
        )
        return company

    def test_none_of_which_takes_the_surrogate_refuse_it(self, company):
        yaml = self.MAP.replace("RULE", "{anonymise: fixed_text}").replace("day: not_personal", "day: delete")
        assert problems(company, yaml) == [
            "visits.day: delete together with country (fixed_text) does not satisfy the CHECK of its"
            " partitions"
        ]
        company.run("CREATE TABLE visits_rest PARTITION OF visits DEFAULT")
        assert problems(company, yaml) == []

    def test_with_a_place_for_everything_need_not_be_asked(self, company):
        yaml = self.MAP.replace("RULE", "not_personal").replace(
            "day: not_personal", "day: {anonymise: truncated_date}"
        )
        plan, connection = company.plan(yaml), company.session.connection()
        told = "visits.day: whether truncated_date satisfies the CHECK of its partitions depends on what else"
        assert any(
            each.message.startswith(told) for each in find_notes(connection, plan.schema, plan.data_map)
        )
        company.run(
            "CREATE TABLE visits_rest PARTITION OF visits DEFAULT",
            "CREATE TABLE visits_de_rest PARTITION OF visits_de DEFAULT",
        )
        assert company.plan(yaml).schema.tables["visits"].checks == ()

    def test_one_of_which_takes_it_do_not(self, company):
        plan = company.plan(self.MAP.replace("RULE", "{anonymise: fixed_text, text: gone}"))
        erase(company.session, plan, "1")
        assert company.rows("SELECT tableoid::regclass::text, country FROM visits") == [
            ("visits_gone", "gone")
        ]

    @pytest.mark.parametrize(
        ("statement", "rule", "said"),
        [
            (
                "ALTER TABLE visits_gone ADD CONSTRAINT small CHECK (country <> 'gone')",
                "{anonymise: fixed_text, text: gone}",
                "visits.country: fixed_text does not satisfy the CHECK small",
            ),
            (
                "ALTER TABLE visits_de_1 ALTER country SET NOT NULL",
                "{anonymise: null}",
                "visits.country: anonymise: null makes it NULL because the row stays, but the column is NOT"
                " NULL",
            ),
            (
                "CREATE UNIQUE INDEX ON visits_gone (lower(country))",
                "{anonymise: fixed_text, text: gone}",
                "visits.country: the column is UNIQUE, and fixed_text can repeat; use random_unique",
            ),
        ],
    )
    def test_are_asked_for_what_only_one_of_them_wants(self, company, statement, rule, said):
        company.run(statement)
        assert said in problems(company, self.MAP.replace("RULE", rule))

    def test_are_not_asked_where_the_row_will_not_be(self, company):
        company.run("ALTER TABLE visits_de ADD CONSTRAINT small CHECK (country = 'de')")
        plan = company.plan(self.MAP.replace("RULE", "{anonymise: fixed_text, text: gone}"))
        erase(company.session, plan, "1")
        assert company.rows("SELECT country FROM visits") == [("gone",)]


class TestNames:
    MAP = """
        version: 1
        subject: {table: people, key: id}
        rectify: {name: "people.full.na%me (x):y"}
        tables:
          people:
            columns: {id: not_personal, "full.na%me (x):y": {anonymise: fixed_text}}
          'o %(id)s :p "q':
            link: {to: people, on: {"c %s": id}, where: {":v": x}}
            columns: {"c %s": delete, ":v": delete}
        """

    def test_of_any_kind_are_written_and_corrected(self, company):
        company.run(
            'CREATE TABLE people (id integer PRIMARY KEY, "full.na%me (x)\\:y" text)',
            'CREATE TABLE "o %(id)s \\:p ""q" ("c %s" integer REFERENCES people, "\\:v" text)',
            "INSERT INTO people VALUES (1, 'Alice')",
            "INSERT INTO \"o %(id)s \\:p \"\"q\" VALUES (1, 'x'), (1, 'y')",
        )
        plan = company.plan(self.MAP)
        name = "people.full.na%me (x):y"
        assert [
            each.rows for each in rectify(company.session, plan, "1", [Correction("name", "Alicia")])
        ] == [1]
        assert [each.rows for each in rectify(company.session, plan, "1", [Correction(name, "Ali")])] == [1]
        erase(company.session, plan, "1")
        assert company.rows("SELECT * FROM people") == [(1, "erased")]
        assert company.rows('SELECT * FROM "o %(id)s \\:p ""q"') == [(1, "y")]

    def test_of_any_kind_stand_in_foreign_keys(self, company):
        company.run(
            'CREATE TABLE "a (b)" ("c, d" integer, "e)" integer, PRIMARY KEY ("c, d", "e)"))',
            'CREATE TABLE odd ("x, y" integer, ") REFERENCES p(" integer,'
            ' FOREIGN KEY ("x, y", ") REFERENCES p(") REFERENCES "a (b)" ON DELETE CASCADE)',
        )
        [key] = read_schema(company.session.connection()).foreign_keys
        assert (key.table, key.to, key.acts) == ("odd", "a (b)", True)
        assert key.on == (("x, y", "c, d"), (") REFERENCES p(", "e)"))


@ONLY_POSTGRES
@pytest.mark.parametrize(
    ("kind", "rule", "value", "becomes"),
    [
        ("date", "truncated_date", "300000-05-06", "300000-01-01"),
        ("date", "truncated_date, to: month", "0044-03-15 BC", "0044-03-01 BC"),
        ("date", "truncated_date", "infinity", "infinity"),
        ("timestamp", "truncated_date", "-infinity", "-infinity"),
        ("timestamptz", "truncated_date", "0044-03-15 BC", "0044-01-01 00:00:00+00 BC"),
        ("char(9)", "fixed_text, text: 'gone '", "Alice", "gone     "),
        ("numeric", "random_number", "NaN", None),
        ("numeric(3,1)", "fixed, value: 0", "1.5", "0.0"),
    ],
)
def test_values_at_the_edge_of_their_type_are_written_once(company, kind, rule, value, becomes):
    company.run(
        f"CREATE TABLE people (id integer PRIMARY KEY, it {kind})",
        f"INSERT INTO people VALUES (1, '{value}')",
    )
    plan = company.plan(
        "version: 1\nsubject: {table: people, key: id}\ntables:\n"
        f"  people: {{columns: {{id: not_personal, it: {{anonymise: {rule}}}}}}}\n"
    )
    erased = erase_and_verify(company.session, plan, "1")
    assert erased.left == {}
    [(first,)] = company.rows("SELECT CAST(to_json(it) AS text) FROM people")
    assert [each.changed for each in erase(company.session, plan, "1")] == [0]
    assert company.rows("SELECT CAST(to_json(it) AS text) FROM people") == [(first,)]
    if becomes is not None:
        assert company.rows(f"SELECT id FROM people WHERE it = '{becomes}'") == [(1,)]


@ONLY_POSTGRES
def test_blanks_at_the_end_of_a_char_key_are_nothing_in_a_varchar_that_points_at_it(company):
    """As in a join of the two; an id that is too long for the key is still nobody's."""
    company.run(
        "CREATE TABLE people (id char(5) PRIMARY KEY)",
        "CREATE TABLE notes (person varchar(9))",
        "INSERT INTO people VALUES ('a'), ('abcde')",
        "INSERT INTO notes VALUES ('a'), ('a '), ('a    '), ('abcde'), ('ab')",
    )
    plan = company.plan(
        "version: 1\nsubject: {table: people, key: id}\ntables:\n  people: {columns: {id: delete}}\n"
        "  notes: {link: {to: people, on: {person: id}}, columns: {person: delete}}\n"
    )
    assert [each.rows for each in erase(company.session, plan, "abcdef")] == [0, 0]
    assert [each.rows for each in erase(company.session, plan, "a")] == [3, 1]
    assert company.rows("SELECT person FROM notes ORDER BY 1") == [("ab",), ("abcde",)]
