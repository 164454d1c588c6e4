"""Can what the map says be written? Types, lengths, UNIQUE, CHECK and domains, before anything changes."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError

from effaced.core.crypto import Keyring, new_key
from effaced.core.errors import ConfigurationError
from effaced.datamap.check.data_map import check_map
from effaced.datamap.check.notes import find_notes
from effaced.datamap.run.erase import erase
from effaced.datamap.schema.read import read_schema

ONLY_POSTGRES = pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)
KEYS = Keyring.parse(new_key("k7"))


def yaml_of(rule: str, more: str = "") -> str:
    return (
        f"version: 1\nsubject: {{table: people, key: id}}\n{more}\ntables:\n  people:\n    columns:\n"
        f"      id: not_personal\n      k: {{retain: law}}\n      it: {rule}\n"
    )


def problems(company, column: str, rule: str, more: str = "") -> list[str]:
    company.run(f"CREATE TABLE people (id integer PRIMARY KEY, k integer, it {column})")
    found = check_map(company.session.connection(), company.map(yaml_of(rule, more)))
    return [problem.message for problem in found]


@pytest.mark.parametrize(
    ("column", "rule", "said"),
    [
        ("integer", "{anonymise: random_email}", "random_email needs a text column; this one is number"),
        ("varchar(37)", "{anonymise: random_email}", "random_email needs 38 characters; the column holds 37"),
        ("varchar(31)", "{anonymise: random_uuid}", "random_uuid needs 32 characters; the column holds 31"),
        ("varchar(87)", "{anonymise: keyed_hash}", "keyed_hash needs 88 characters; the column holds 87"),
        (
            "text UNIQUE",
            "{anonymise: keyed_hash}",
            "the column is UNIQUE, and keyed_hash can repeat; use random_unique",
        ),
        (
            "text",
            "{anonymise: random_number}",
            "random_number needs a column of whole or decimal numbers; this one is text",
        ),
        (
            "float",
            "{anonymise: random_number}",
            "random_number needs a column of whole or decimal numbers; this one is number",
        ),
        (
            "smallint UNIQUE",
            "{anonymise: random_number}",
            "the column is UNIQUE, and random_number can repeat",
        ),
        (
            "integer UNIQUE",
            "{anonymise: fixed, value: 0}",
            "the column is UNIQUE, and fixed can repeat; use random_number",
        ),
        ("integer", "{anonymise: fixed, value: x}", "fixed: the value must be a number"),
        ("boolean", "{anonymise: fixed, value: 1}", "fixed: the value must be true or false"),
        ("date", "{anonymise: fixed, value: 0}", "fixed: the value must be a date such as 1990-04-01"),
        ("varchar(3)", "{anonymise: fixed, value: long}", "fixed: the value must have at most 3 characters"),
        (
            "integer",
            "{anonymise: empty}",
            "empty needs text, JSON, an array or bytes; this one is number",
        ),
        (
            "integer",
            "{json: {$.a: delete}}",
            "json needs a column of JSON, or of text that holds it; this one is number",
        ),
        (
            "integer",
            "{scrub: [k]}",
            "scrub needs a column of text, or of arrays of text; this one is number",
        ),
        ("varchar(7)", "{scrub: [k]}", "scrub needs 8 characters; the column holds 7"),
        ("text UNIQUE", "{scrub: [k]}", "the column is UNIQUE, and scrub can repeat; use random_unique"),
        (
            "text",
            "{scrub: all}",
            "scrub: all means all identifiers, but the map has none; name columns of the subject table",
        ),
        (
            "text",
            "{scrub: [kk]}",
            "scrub: 'kk' is neither an identifier nor a column of people; did you mean 'k'?",
        ),
        (
            "text",
            "{json: {$.a: {scrub: [mail]}}}",
            "scrub: 'mail' is neither an identifier nor a column of people",
        ),
        (
            "text",
            "derived",
            "derived is for columns that the database makes from others; this one is filled by",
        ),
        (
            "text",
            "{review: looks like a name}",
            "nobody has decided yet what happens to it (review: looks like",
        ),
    ],
)
def test_a_rule_that_the_column_cannot_satisfy(company, column, rule, said):
    assert problems(company, column, rule)[0].startswith(f"people.it: {said}")


def test_only_what_can_stand_in_a_text_is_looked_for(company):
    company.run("CREATE TABLE people (id integer PRIMARY KEY, k date, it text)")
    found = check_map(company.session.connection(), company.map(yaml_of("{scrub: [k, id]}")))
    assert [problem.message for problem in found] == [
        "people.it: scrub: 'k' is date and can't be looked for in a text"
    ]


def test_all_that_is_undecided_is_listed_and_nothing_can_be_planned(company):
    company.run("CREATE TABLE people (id integer PRIMARY KEY, a text, b text, c text)")
    with pytest.raises(ConfigurationError) as caught:
        company.plan("""\
            version: 1
            subject: {table: people, key: id}
            tables:
              people:
                columns:
                  id: delete
                  a: {review: "a name, by its name"}
                  b: &once {review: "unsure"}
                  c: *once
            """)
    # One decision is one problem, with all the columns that it is about.
    assert [problem.message for problem in caught.value.problems] == [
        "people.a: nobody has decided yet what happens to it (review: a name, by its name)",
        "people.b, people.c: nobody has decided yet what happens to them (review: unsure)",
    ]


def test_what_is_undecided_about_rows_that_are_nobodys_is_told_as_such(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, a text)",
        "CREATE TABLE rooms (id integer PRIMARY KEY, cleaner integer REFERENCES people, note text)",
    )
    with pytest.raises(ConfigurationError) as caught:
        company.plan("""\
            version: 1
            subject: {table: people, key: id}
            tables:
              people:
                columns: {id: delete, a: delete}
              rooms:
                mentions: {to: people, on: {cleaner: id}, columns: {cleaner: delete}}
                columns: {id: not_personal, cleaner: not_personal, note: {review: "free text"}}
            """)
    assert [problem.message for problem in caught.value.problems] == [
        "rooms.note: nobody has decided yet what happens to it (review: free text)",
    ]


@pytest.mark.parametrize("rule", ["{anonymise: fixed, value: x}", "{anonymise: empty}", "{scrub: [k]}"])
def test_what_can_repeat_is_refused_where_links_go_by_it(company, rule):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, k integer, it text UNIQUE)",
        "CREATE TABLE notes (it text)",
    )
    notes = "  notes: {link: {to: people, on: {it: it}}, columns: {it: delete}}\n"
    found = check_map(company.session.connection(), company.map(yaml_of(rule) + notes))
    assert any("would make different people look like one" in problem.message for problem in found)


# --- CHECK -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "rule", "said"),
    [
        (
            "text CONSTRAINT mailish CHECK (it LIKE '%@%')",
            "{anonymise: random_unique}",
            "random_unique does not satisfy the CHECK mailish",
        ),
        (
            "integer CONSTRAINT positive CHECK (it > 0)",
            "{anonymise: random_number}",
            "random_number does not satisfy the CHECK positive",
        ),
        (
            "text CONSTRAINT known CHECK (it IN ('a', 'b'))",
            "{anonymise: fixed_text}",
            "fixed_text does not satisfy the CHECK known",
        ),
        (
            "text CONSTRAINT there CHECK (it IS NOT NULL)",
            "delete",
            "delete does not satisfy the CHECK there",
        ),
        (
            "date CONSTRAINT recent CHECK (it >= '1950-01-01')",
            "{anonymise: fixed, value: 1900-01-01}",
            "fixed does not satisfy the CHECK recent",
        ),
        (
            "text CONSTRAINT filled CHECK (length(it) > 0)",
            "{anonymise: empty}",
            "empty does not satisfy the CHECK filled",
        ),
        (
            "varchar(100) CONSTRAINT short CHECK (length(it) < 20)",
            "{anonymise: keyed_hash}",
            "keyed_hash does not satisfy the CHECK short",
        ),
    ],
)
def test_a_surrogate_that_a_check_refuses(company, column, rule, said):
    assert problems(company, column, rule) == [f"people.it: {said}"]


@pytest.mark.parametrize(
    ("column", "rule", "value"),
    [
        ("varchar(80) CHECK (it LIKE '%@%.%' AND length(it) > 5)", "{anonymise: random_email}", "'a@x.org'"),
        ("integer CHECK (it < 100)", "{anonymise: random_number}", "17"),
        ("text CHECK (it IN ('a', 'b'))", "{anonymise: fixed_text, text: b}", "'a'"),
        ("text CHECK (it <> '')", "{anonymise: null}", "'a'"),
        ("date CHECK (it >= '1900-01-01')", "{anonymise: fixed, value: 1900-01-01}", "'1984-05-06'"),
        ("boolean CHECK (it OR NOT it)", "{anonymise: fixed, value: false}", "true"),
    ],
)
def test_what_a_check_allows_is_planned_and_carried_out(company, column, rule, value):
    company.run(
        f"CREATE TABLE people (id integer PRIMARY KEY, k integer, it {column})",
        f"INSERT INTO people VALUES (1, 1, {value})",
    )
    plan = company.plan(yaml_of(rule), KEYS)
    assert [effect.rows for effect in erase(company.session, plan, "1")] == [1]


def test_a_check_over_several_written_columns_is_tried_as_a_whole(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, a text, b text,"
        " CONSTRAINT one_of_them CHECK (a IS NOT NULL OR b IS NOT NULL))"
    )
    columns = "{id: not_personal, a: delete, b: {anonymise: null}}"
    yaml = f"version: 1\nsubject: {{table: people, key: id}}\ntables:\n  people: {{columns: {columns}}}\n"
    [problem] = check_map(company.session.connection(), company.map(yaml))
    assert problem.message == (
        "people.a: delete together with b (null) does not satisfy the CHECK one_of_them"
    )


def test_a_check_that_also_speaks_of_other_columns_is_a_note(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, k integer, it integer,"
        " CONSTRAINT order_ CHECK (it > k))"
    )
    data_map = company.map(yaml_of("{anonymise: fixed, value: 0}"))
    connection = company.session.connection()
    assert check_map(connection, data_map) == []
    [note] = find_notes(connection, read_schema(connection), data_map)
    assert note.message == (
        "people.it: whether fixed satisfies the CHECK order_ depends on what else the row holds; the database"
        " decides at that moment"
    )


def test_a_check_that_cannot_be_tried_stands_against_nothing(company):
    """What it asks for is not there by itself: the row's place in the table, or a division by zero."""
    company.run("CREATE TABLE people (id integer PRIMARY KEY, k integer, it integer CHECK (10 / it > 0))")
    data_map = company.map(yaml_of("{anonymise: fixed, value: 0}"))
    assert check_map(company.session.connection(), data_map) == []
    assert company.rows("SELECT 1") == [(1,)]  # the transaction is as usable as before


@ONLY_POSTGRES
def test_a_domains_check_counts_as_the_columns_own(company):
    company.run(
        "CREATE DOMAIN mail AS text CONSTRAINT has_at CHECK (VALUE LIKE '%@%')",
        "CREATE DOMAIN work_mail AS mail CONSTRAINT not_short CHECK (length(VALUE) > 5)",
    )
    assert problems(company, "work_mail", "{anonymise: random_unique}") == [
        "people.it: random_unique does not satisfy the CHECK has_at of the domain work_mail"
    ]
    data_map = company.map(yaml_of("{anonymise: random_email}"))
    assert check_map(company.session.connection(), data_map) == []


@ONLY_POSTGRES
def test_the_database_would_have_refused_what_is_refused(company):
    """The other side of the coin: without the check, the erasure fails."""
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, k integer, it text CHECK (it LIKE '%@%'))",
        "INSERT INTO people VALUES (1, 1, 'a@x')",
    )
    with pytest.raises(DBAPIError):
        company.run("UPDATE people SET it = 'erased-0000'")
