"""Comparing the map with the live database: every problem at once, with line, table and column."""

from __future__ import annotations

import pytest

from effaced.core.errors import ConfigurationError
from effaced.datamap.check.data_map import check_map
from effaced.datamap.plan.erasure import plan_erasure

ONLY_POSTGRES = pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)


def problems(company, yaml: str) -> list[str]:
    """The problems, with the file's folder left out."""
    found = check_map(company.session.connection(), company.map(yaml))
    return [str(problem).replace(f"{company.folder}/", "") for problem in found]


def messages(company, tables: str, more: str = "") -> list[str]:
    """The messages alone, for a map with these tables under a subject `people(id)`."""
    yaml = f"version: 1\nsubject: {{table: people, key: id}}\n{more}\ntables:\n{tables}"
    return [problem.message for problem in check_map(company.session.connection(), company.map(yaml))]


def test_a_map_that_fits_has_no_problems(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, mail varchar(60) UNIQUE)",
        "CREATE TABLE notes (person integer REFERENCES people, body text)",
        "CREATE TABLE products (id integer)",
        "CREATE TABLE effaced_requests (id integer)",
    )
    tables = """
  people: {columns: {id: not_personal, mail: {anonymise: random_unique}}}
  notes: {link: {to: people, on: {person: id}}, columns: {person: delete, body: delete}}
not_personal: [products]"""
    assert messages(company, tables) == []


def test_all_problems_are_told_at_once_each_with_line_table_and_column(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, name varchar(3) NOT NULL, mail varchar(10) UNIQUE,"
        " born date, extra text)",
        "CREATE TABLE notes (person integer, body text)",
        "CREATE TABLE visits (person integer REFERENCES people)",
        "CREATE TABLE logs (person varchar(9))",
    )
    assert problems(
        company,
        """\
        version: 1
        subject: {table: people, key: id}
        identifiers: {email: email}
        refs:
          files: {template: "{id}/{folder}"}
        tables:
          people:
            columns:
              id: not_personal
              name: {anonymise: fixed_text, text: erased}
              mail: {anonymise: random_unique}
              born: {anonymise: random_unique}
              shoe: delete
          notes:
            link: {to: people, on: {persn: id}}
            columns: {person: delete, body: delete}
          logs:
            link: {to: people, on: {person: id}}
            columns: {person: delete}
          orders:
            link: {to: people, on: {person: id}}
            columns: {person: delete}
        not_personal: [product]
        """,
    ) == [
        "datamap.yaml:3: identifiers.email: people has no column 'email'; did you mean 'mail'?",
        "datamap.yaml:5: refs.files: people has no column 'folder'",
        "datamap.yaml:6: visits: the table is not declared; put it under tables or not_personal;"
        " its foreign key visits(person) -> people(id) suggests a link",
        "datamap.yaml:7: people.extra: the column is not declared",
        "datamap.yaml:10: people.name: fixed_text has 6 characters; the column holds 3",
        "datamap.yaml:11: people.mail: random_unique needs 23 characters; the column holds 10",
        "datamap.yaml:12: people.born: random_unique needs a text column; this one is date",
        "datamap.yaml:13: people.shoe: the table has no such column",
        "datamap.yaml:15: notes.link: notes has no column 'persn'; did you mean 'person'?",
        "datamap.yaml:18: logs.link: logs.person is text but people.id is number, so they never match;"
        " with 'as: text' they are compared as texts",
        "datamap.yaml:20: orders: the database has no such table",
        "datamap.yaml:23: product: the database has no such table",
    ]


def test_a_plan_is_refused_with_the_same_problems(company):
    company.run("CREATE TABLE people (id integer PRIMARY KEY, name text)")
    data_map = company.map(
        "version: 1\nsubject: {table: people, key: id}\ntables:\n  people: {columns: {id: delete}}"
    )
    with pytest.raises(ConfigurationError, match="does not fit the database; one problem") as caught:
        plan_erasure(company.session.connection(), data_map)
    assert list(caught.value.problems) == check_map(company.session.connection(), data_map)


# --- columns -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "rule", "message"),
    [
        ("text NOT NULL", "delete", "delete makes it NULL because the row stays, but the column is NOT NULL"),
        (
            "text NOT NULL",
            "{anonymise: null}",
            "anonymise: null makes it NULL because the row stays, but the column is NOT NULL",
        ),
        ("integer", "{anonymise: fixed_text}", "fixed_text needs a text column; this one is number"),
        (
            "text UNIQUE",
            "{anonymise: fixed_text}",
            "the column is UNIQUE, and fixed_text can repeat; use random_unique",
        ),
        ("integer", "{anonymise: random_unique}", "random_unique needs a text column; this one is number"),
        (
            "varchar(22)",
            "{anonymise: random_unique}",
            "random_unique needs 23 characters; the column holds 22",
        ),
        ("text", "{anonymise: truncated_date}", "truncated_date needs a column of dates; this one is text"),
        (
            "date UNIQUE",
            "{anonymise: truncated_date}",
            "the column is UNIQUE, and truncated_date can repeat; use null",
        ),
        (
            "integer GENERATED ALWAYS AS (id + 1) STORED",
            "delete",
            "the database generates this column, so nothing can be written to it; derived says so",
        ),
    ],
)
def test_a_surrogate_that_the_column_cannot_hold(company, column, rule, message):
    company.run(f"CREATE TABLE people (id integer PRIMARY KEY, k integer, x {column})")
    tables = f"  people: {{columns: {{id: not_personal, k: {{retain: law}}, x: {rule}}}}}"
    assert messages(company, tables) == [f"people.x: {message}"]


@pytest.mark.parametrize(
    ("column", "rule"),
    [
        ("text", "{anonymise: fixed_text, text: ''}"),
        ("varchar(23) UNIQUE", "{anonymise: random_unique}"),
        ("text UNIQUE", "{anonymise: null}"),
        ("timestamp NOT NULL", "{anonymise: truncated_date}"),
        ("text NOT NULL UNIQUE", "{retain: law}"),
    ],
)
def test_a_surrogate_that_the_column_can_hold(company, column, rule):
    company.run(f"CREATE TABLE people (id integer PRIMARY KEY, k integer, x {column})")
    assert (
        messages(company, f"  people: {{columns: {{id: not_personal, k: {{retain: law}}, x: {rule}}}}}") == []
    )


def test_not_null_columns_may_be_deleted_where_the_row_goes(company):
    company.run("CREATE TABLE people (id integer PRIMARY KEY, name text NOT NULL)")
    assert messages(company, "  people: {columns: {id: delete, name: delete}}") == []


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (
            "a: {anonymise: fixed_text}, b: not_personal",
            ["people.a: the column is UNIQUE together with b, and fixed_text can repeat; use random_unique"],
        ),
        ("a: {anonymise: fixed_text}, b: {anonymise: random_unique}", []),
        ("a: {anonymise: fixed_text}, b: delete", []),
        ("a: not_personal, b: {anonymise: null}", []),
    ],
)
def test_a_unique_pair_of_columns_must_stay_a_unique_pair(company, rules, expected):
    company.run("CREATE TABLE people (id integer PRIMARY KEY, a text, b text, UNIQUE (a, b))")
    columns = f"{{id: {{retain: law}}, {rules}}}"
    assert messages(company, f"  people: {{columns: {columns}}}") == expected


def test_a_unique_index_with_a_condition_counts(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, a text)",
        "CREATE UNIQUE INDEX one_a ON people (a) WHERE id > 5",
    )
    [message] = messages(company, "  people: {columns: {id: not_personal, a: {anonymise: fixed_text}}}")
    assert "people.a: the column is UNIQUE" in message


@ONLY_POSTGRES
def test_postgres_peculiarities(company):
    company.run(
        "CREATE TYPE mood AS ENUM ('good', 'bad')",
        "CREATE DOMAIN always AS text NOT NULL",
        "CREATE TABLE people (id integer PRIMARY KEY, no integer GENERATED ALWAYS AS IDENTITY, mood mood,"
        " a always, mail text, same text UNIQUE NULLS NOT DISTINCT)",
        "CREATE UNIQUE INDEX one_mail ON people (lower(mail))",
    )
    tables = """
  people:
    columns:
      id: {retain: law}
      no: {anonymise: null}
      mood: {anonymise: fixed_text, text: unknown}
      a: delete
      mail: {anonymise: fixed_text}
      same: {anonymise: null}"""
    assert messages(company, tables) == [
        "people.no: the database generates this column, so nothing can be written to it",
        "people.mood: fixed_text must be one of the column's own words: good or bad",
        "people.a: delete makes it NULL because the row stays, but the column is NOT NULL",
        "people.mail: the column is UNIQUE, and fixed_text can repeat; use random_unique",
        "people.same: the column is UNIQUE, and null can repeat; use random_unique",
    ]


# --- the subject -------------------------------------------------------------------------------------


def test_the_key_must_name_one_person(company):
    company.run("CREATE TABLE people (id integer, name text)")
    assert messages(company, "  people: {columns: {id: delete, name: delete}}") == [
        "subject.key: people(id) must be unique, or it may name several people"
    ]


def test_the_key_must_be_something_that_a_text_can_stand_for(company):
    company.run("CREATE TABLE people (id date PRIMARY KEY)")
    assert messages(company, "  people: {columns: {id: delete}}") == [
        "subject.key: people.id must be text, number or uuid, not date"
    ]


@ONLY_POSTGRES
def test_an_identifier_must_be_readable_as_text(company):
    company.run("CREATE TABLE people (id integer PRIMARY KEY, face bytea, more jsonb)")
    found = messages(
        company,
        "  people: {columns: {id: delete, face: delete, more: delete}}",
        "identifiers: {face: face}\nrefs: {x: {template: '{more}'}}",
    )
    assert found == [
        "identifiers.face: people.face is binary and can't be read as a text",
        "refs.x: people.more is json and can't be read as a text",
    ]


# --- links -------------------------------------------------------------------------------------------


def _three_tables(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, name text)",
        "CREATE TABLE a (id integer PRIMARY KEY, x integer, y text)",
        "CREATE TABLE b (id integer PRIMARY KEY, x integer)",
        "CREATE TABLE c (id integer PRIMARY KEY, x integer)",
    )


def test_links_over_more_steps_than_sqlite_can_read_are_refused(company):
    tables = "  people: {columns: {id: delete}}\n"
    company.run("CREATE TABLE people (id integer PRIMARY KEY)")
    for number in range(1, 16):
        company.run(f"CREATE TABLE t{number} (id integer PRIMARY KEY, up integer)")
        to = f"t{number - 1}" if number > 1 else "people"
        tables += (
            f"  t{number}: {{link: {{to: {to}, on: {{up: id}}}}, columns: {{id: delete, up: delete}}}}\n"
        )
    found = messages(company, tables)
    assert all("than SQLite can read in one statement" in message for message in found)
    assert any(message.startswith("t15: ") for message in found) == (company.engine == "sqlite")
    assert not any(message.startswith("t8: ") for message in found)


def test_a_circle_of_links_is_refused_with_its_path(company):
    _three_tables(company)
    tables = """
  people: {columns: {id: delete, name: delete}}
  a: {link: {to: b, on: {x: id}}, columns: {id: delete, x: delete, y: delete}}
  b: {link: {to: a, on: {x: id}}, columns: {id: delete, x: delete}}
  c: {link: {to: b, on: {x: id}}, columns: {id: delete, x: delete}}"""
    assert messages(company, tables) == [
        "a.link: the links form a cycle: a -> b -> a",
        "c: no link leads from it to people",
    ]


def test_a_table_that_links_only_to_itself_leads_to_nobody(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY)", "CREATE TABLE a (id integer PRIMARY KEY, x integer)"
    )
    tables = """
  people: {columns: {id: delete}}
  a: {link: {to: a, on: {x: id}}, columns: {id: delete, x: delete}}"""
    assert messages(company, tables) == [
        "a.link: it leads to itself only; add the link that leads to a person",
        "a: no link leads from it to people",
    ]


def test_a_kept_child_under_a_deleted_parent_is_refused(company):
    _three_tables(company)
    tables = """
  people: {columns: {id: not_personal, name: {anonymise: null}}}
  a: {link: {to: people, on: {x: id}}, columns: {id: delete, x: delete, y: delete}}
  b: {link: {to: a, on: {x: id}}, columns: {id: {retain: law}, x: not_personal}}
  c: {link: {to: a, on: {x: id}}, columns: {id: {retain: law}, x: delete}}"""
    assert messages(company, tables) == [
        "b: its rows stay because of id, but the rows of a that they belong to are deleted; keep those"
        " (anonymise or retain a column of a) or delete b.x too"
    ]


def test_a_link_must_lead_to_one_person(company):
    _three_tables(company)
    tables = """
  people: {columns: {id: delete, name: delete}}
  a: {link: {to: people, on: {y: name}}, columns: {id: delete, x: delete, y: delete}}
  b: {link: {to: people, on: {x: id}}, columns: {id: delete, x: delete}}
  c: {link: {to: b, on: {x: x}}, columns: {id: delete, x: delete}}"""
    assert messages(company, tables) == [
        "a.link: people(name) is not unique, so a row of a could belong to several people;"
        " link to a key, or make it unique"
    ]


def test_a_partial_unique_index_does_not_make_a_link_safe(company):
    _three_tables(company)
    company.run("CREATE UNIQUE INDEX not_all ON people (name) WHERE id > 5", "DROP TABLE b", "DROP TABLE c")
    tables = """
  people: {columns: {id: delete, name: delete}}
  a: {link: {to: people, on: {y: name}}, columns: {id: delete, x: delete, y: delete}}"""
    [message] = messages(company, tables)
    assert "people(name) is not unique" in message


def test_a_linked_column_may_not_get_the_same_text_for_everybody(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, mail text UNIQUE)",
        "CREATE TABLE a (mail text, y text)",
    )
    tables = """
  people: {columns: {id: delete, mail: delete}}
  a: {link: {to: people, on: {mail: mail}}, columns: {mail: {anonymise: fixed_text}, y: {retain: law}}}"""
    assert messages(company, tables) == [
        "a.mail: a is linked by this column, and fixed_text would make different people look like one;"
        " use random_unique or null"
    ]


# --- foreign keys that the map does not speak of -----------------------------------------------------


def test_a_foreign_key_beside_the_link_is_named(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY)",
        "CREATE TABLE tickets (opened_by integer, solved_by integer REFERENCES people ON DELETE CASCADE)",
    )
    tables = """
  people: {columns: {id: delete}}
  tickets: {link: {to: people, on: {opened_by: id}}, columns: {opened_by: delete, solved_by: delete}}"""
    assert messages(company, tables) == [
        "tickets: its foreign key tickets(solved_by) -> people(id) points at rows of people that the map"
        " deletes, from rows that no link reaches; add the link {to: people, on: {solved_by: id}}, or, if"
        " they are not the person's: add to tickets the mentions {to: people, on: {solved_by: id},"
        " columns: {solved_by: {anonymise: null}}}"
    ]
    both = tables.replace(
        "{to: people, on: {opened_by: id}}",
        "[{to: people, on: {opened_by: id}}, {to: people, on: {solved_by: id}}]",
    )
    assert messages(company, both) == []


def test_a_foreign_key_of_a_table_without_personal_data_is_named(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY)",
        "CREATE TABLE products (id integer, designer integer REFERENCES people)",
    )
    assert messages(company, "  people: {columns: {id: delete}}\nnot_personal: [products]") == [
        "products: its foreign key products(designer) -> people(id) points at rows of people that the map"
        " deletes, so it is not without personal data; give it a link"
    ]


def test_a_foreign_key_hurts_nobody_while_its_target_stays(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, name text)",
        "CREATE TABLE products (id integer, designer integer REFERENCES people)",
    )
    tables = "  people: {columns: {id: not_personal, name: {anonymise: null}}}\nnot_personal: [products]"
    assert messages(company, tables) == []


def _homes(company, *, nullable: bool = True) -> str:
    """People who point at a home of their own, which points back."""
    rule = "" if nullable else " NOT NULL"
    company.run(
        f"CREATE TABLE people (id integer PRIMARY KEY, home integer{rule})",
        f"CREATE TABLE homes (id integer PRIMARY KEY, person integer{rule} REFERENCES people)",
    )
    if company.engine == "postgresql":
        company.run("ALTER TABLE people ADD FOREIGN KEY (home) REFERENCES homes")
    else:
        company.run(
            "DROP TABLE people",
            f"CREATE TABLE people (id integer PRIMARY KEY, home integer{rule} REFERENCES homes)",
        )
    return """
  people: {columns: {id: delete, home: delete}}
  homes: {link: {to: people, on: {person: id}}, columns: {id: delete, person: delete}}"""


def test_a_pointer_back_into_rows_that_go_asks_what_becomes_of_other_peoples(company):
    assert messages(company, _homes(company)) == [
        "people: its foreign key people(home) -> homes(id) points at rows of homes that the map deletes, from"
        " rows that are not the person's, too: add to people the mentions {to: homes, on: {home: id},"
        " columns: {home: {anonymise: null}}}"
    ]


def test_pointers_in_a_circle_that_can_not_be_emptied_are_refused(company):
    tables = _homes(company, nullable=False).replace(
        "people: {columns", "people: {mentions: {to: homes, on: {home: id}, columns: {home: delete}}, columns"
    )
    [first, *_] = messages(company, tables)
    assert first == ("people.home: delete makes it NULL because the row stays, but the column is NOT NULL")


def test_a_key_that_others_point_at_may_not_be_changed_under_them(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, mail varchar(60) UNIQUE)",
        "CREATE TABLE a (mail varchar(60) REFERENCES people (mail), y text)",
    )
    tables = """
  people: {columns: {id: {retain: law}, mail: {anonymise: random_unique}}}
  a: {link: {to: people, on: {mail: mail}}, columns: {mail: {retain: law}, y: delete}}"""
    assert messages(company, tables) == [
        "a: its foreign key a(mail) -> people(mail) points at rows of people that the map changes,"
        " but a.mail is kept"
    ]


def test_a_foreign_key_column_takes_no_surrogate_but_null(company):
    company.run(
        "CREATE TABLE people (id varchar(60) PRIMARY KEY)",
        "CREATE TABLE a (person varchar(60) REFERENCES people)",
    )
    tables = """
  people: {columns: {id: delete}}
  a: {link: {to: people, on: {person: id}}, columns: {person: {anonymise: random_unique}}}"""
    assert messages(company, tables) == [
        "a.person: the foreign key a(person) -> people(id) allows no random_unique here; use null"
    ]


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL"])
def test_a_table_that_points_at_itself_and_acts_on_its_own_is_refused(company, action):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY)",
        "CREATE TABLE a (id integer PRIMARY KEY, person integer,"
        f" up integer REFERENCES a ON DELETE {action})",
    )
    tables = """
  people: {columns: {id: delete}}
  a: {link: {to: people, on: {person: id}}, columns: {id: delete, person: delete, up: delete}}"""
    assert messages(company, tables) == [
        "a: its foreign key a(up) -> a(id) points at rows of a that the map deletes, from other people's rows"
        " too; anonymise instead, or say what becomes of them: add to a the mentions {to: a, on: {up: id},"
        " columns: {up: {anonymise: null}}}"
    ]


def test_people_who_point_at_each_other_may_not_be_deleted(company):
    company.run("CREATE TABLE people (id integer PRIMARY KEY, invited_by integer REFERENCES people)")
    [message] = messages(company, "  people: {columns: {id: delete, invited_by: delete}}")
    assert "people(invited_by) -> people(id)" in message


# --- what the catalog alone knows --------------------------------------------------------------------

ONLY_SQLITE = pytest.mark.parametrize("company_database", ["sqlite"], indirect=True)
NOTES_BY_PERSON = "  notes: {link: {to: people, on: {person: id}}, columns: {person: delete, body: delete}}"


@ONLY_POSTGRES
@pytest.mark.parametrize("action", ["CASCADE", "SET NULL", "NO ACTION"])
def test_a_foreign_key_from_another_schema_into_deleted_rows_is_refused(company, action):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY)",
        "CREATE SCHEMA billing",
        "CREATE TABLE billing.invoices (person integer CONSTRAINT payer"
        f" REFERENCES public.people ON DELETE {action})",
    )
    assert messages(company, "  people: {columns: {id: delete}}") == [
        "people: the foreign key payer of billing.invoices, a table that is not looked at, points at rows"
        " that the map deletes, and no link can reach its rows; name its schema under schemas and declare the"
        " table, or keep the rows of people"
    ]


@ONLY_POSTGRES
def test_a_foreign_key_from_another_schema_into_a_changed_column_is_refused(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, mail varchar(60) UNIQUE)",
        "CREATE SCHEMA billing",
        "CREATE TABLE billing.invoices (mail text REFERENCES public.people (mail) ON UPDATE CASCADE)",
    )
    tables = "  people: {columns: {id: not_personal, mail: {anonymise: random_unique}}}"
    (message,) = messages(company, tables)
    assert "invoices_mail_fkey of billing.invoices" in message
    assert "the map changes" in message


@ONLY_POSTGRES
def test_a_foreign_key_from_another_schema_hurts_nobody_while_its_target_stays(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, name text)",
        "CREATE SCHEMA billing",
        "CREATE TABLE billing.invoices (person integer REFERENCES public.people ON DELETE CASCADE)",
    )
    assert messages(company, "  people: {columns: {id: not_personal, name: {anonymise: null}}}") == []


@ONLY_POSTGRES
def test_a_foreign_key_of_a_single_partition_counts_for_its_table(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY)",
        "CREATE TABLE visits (person integer, guide integer, at date) PARTITION BY RANGE (at)",
        "CREATE TABLE visits_2024 PARTITION OF visits FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')",
        "ALTER TABLE visits_2024 ADD FOREIGN KEY (guide) REFERENCES people ON DELETE CASCADE",
    )
    tables = """
  people: {columns: {id: delete}}
  visits: {link: {to: people, on: {person: id}}, columns: {person: delete, guide: delete, at: delete}}"""
    (message,) = messages(company, tables)
    assert message.startswith("visits: its foreign key visits(guide) -> people(id) points at rows of people")


@ONLY_POSTGRES
def test_a_table_that_others_inherit_from_is_refused(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY)", "CREATE TABLE vips (perk text) INHERITS (people)"
    )
    assert messages(company, "  people: {columns: {id: delete}}\nnot_personal: [vips]") == [
        "people: vips inherits from it, and an erasure would reach into those rows too; table inheritance is"
        " not supported"
    ]


@pytest.mark.parametrize("side", ["people.id", "notes.person"])
@pytest.mark.parametrize("collation", ["NOCASE", "RTRIM"])
@ONLY_SQLITE
def test_a_link_between_columns_of_different_collations_is_refused_on_sqlite(company, side, collation):
    special = {"people.id": "", "notes.person": ""} | {side: f"COLLATE {collation}"}
    company.run(
        f"CREATE TABLE people (id text {special['people.id']} PRIMARY KEY)",
        f"CREATE TABLE notes (person text {special['notes.person']}, body text)",
    )
    names = {"people.id": "BINARY", "notes.person": "BINARY"} | {side: collation}
    assert messages(company, f"  people: {{columns: {{id: delete}}}}\n{NOTES_BY_PERSON}") == [
        f"notes.link: notes.person has the collation {names['notes.person']} but people.id has"
        f" {names['people.id']}, so one tells texts apart that the other takes for the same; make the"
        " collations equal"
    ]


@ONLY_POSTGRES
def test_a_link_between_columns_of_different_collations_is_refused_on_postgres(company):
    company.run(
        "CREATE TABLE people (id text PRIMARY KEY)",
        'CREATE TABLE notes (person text COLLATE "C", body text)',
    )
    (message,) = messages(company, f"  people: {{columns: {{id: delete}}}}\n{NOTES_BY_PERSON}")
    assert message.startswith('notes.link: notes.person has the collation "C" but people.id has "default"')


def test_a_link_between_columns_of_one_collation_fits(company):
    collation = "NOCASE" if company.engine == "sqlite" else '"C"'
    company.run(
        f"CREATE TABLE people (id text COLLATE {collation} PRIMARY KEY)",
        f"CREATE TABLE notes (person text COLLATE {collation}, body text)",
    )
    assert messages(company, f"  people: {{columns: {{id: delete}}}}\n{NOTES_BY_PERSON}") == []


@pytest.mark.parametrize(("kind", "family"), [("integer", "number"), ("text", "text")])
@ONLY_SQLITE
def test_a_link_column_without_a_type_is_refused(company, kind, family):
    company.run(
        f"CREATE TABLE people (id {kind} PRIMARY KEY)",
        "CREATE TABLE notes (person, body text)",
    )
    assert messages(company, f"  people: {{columns: {{id: delete}}}}\n{NOTES_BY_PERSON}") == [
        f"notes.link: notes.person has no known type but people.id is {family}, so rows may not match;"
        " declare the type"
    ]


def test_a_key_with_digits_after_the_point_is_refused(company):
    company.run("CREATE TABLE people (id numeric(6, 2) PRIMARY KEY)")
    assert messages(company, "  people: {columns: {id: delete}}") == [
        "subject.key: people.id must be a whole number, but its type allows fractions"
    ]


@pytest.mark.parametrize(
    ("rule", "fits"), [("{anonymise: fixed_text}", False), ("{anonymise: random_unique}", True)]
)
def test_what_is_unique_over_a_generated_column_binds_its_sources(company, rule, fits):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, name text, mail text,"
        " low text GENERATED ALWAYS AS (lower(mail)) STORED)",
        "CREATE UNIQUE INDEX mail ON people (low)",
    )
    tables = (
        f"  people: {{columns: {{id: not_personal, name: {{anonymise: fixed_text}}, mail: {rule},"
        " low: not_personal}}"
    )
    refusal = (
        "people.mail: the column is UNIQUE together with low, and fixed_text can repeat; use random_unique"
    )
    assert messages(company, tables) == ([] if fits else [refusal])


def test_what_is_unique_over_an_expression_binds_its_columns(company):
    company.run(
        'CREATE TABLE people (id integer PRIMARY KEY, name text, "e-mail" text)',
        'CREATE UNIQUE INDEX name ON people (lower("e-mail"))',
    )
    tables = (
        "  people: {columns: {id: not_personal, name: {anonymise: fixed_text},"
        " e-mail: {anonymise: fixed_text}}}"
    )
    assert messages(company, tables) == [
        "people.e-mail: the column is UNIQUE, and fixed_text can repeat; use random_unique"
    ]


@ONLY_SQLITE
def test_a_collation_that_sqlite_does_not_know_here_hurts_only_the_links_over_it(company):
    raw = company.session.connection().connection.dbapi_connection
    raw.create_collation("house", lambda a, b: (a > b) - (a < b))
    company.run(
        "CREATE TABLE people (id text PRIMARY KEY)",
        "CREATE TABLE notes (person text COLLATE house, body text)",
        "CREATE TABLE words (word text COLLATE house)",
    )
    raw.create_collation("house", None)
    tables = f"  people: {{columns: {{id: delete}}}}\n{NOTES_BY_PERSON}\nnot_personal: [words]"
    (message,) = messages(company, tables)
    assert message.startswith("notes.link: notes.person has the collation unknown but people.id has BINARY")


@ONLY_POSTGRES
def test_a_link_from_citext_to_text_is_refused(company):
    company.run(
        "CREATE EXTENSION citext",
        "CREATE TABLE people (id text PRIMARY KEY)",
        "CREATE TABLE notes (person citext, body text)",
    )
    (message,) = messages(company, f"  people: {{columns: {{id: delete}}}}\n{NOTES_BY_PERSON}")
    assert message.startswith('notes.link: notes.person has the collation citext but people.id has "default"')


def test_a_table_that_is_to_be_decided_about_stops_the_map(company):
    company.run("CREATE TABLE people (id integer PRIMARY KEY)", "CREATE TABLE leads (mail text)")
    tables = "  people: {columns: {id: delete}}\nreview: {leads: mail looks personal, gone: who knows}"
    assert messages(company, tables) == [
        "gone: the database has no such table",
        "leads: to be decided: mail looks personal",
    ]
