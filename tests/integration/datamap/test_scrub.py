"""Free text scrubbed of a person's identifiers, in the database."""

from __future__ import annotations

import unicodedata

import pytest
from sqlalchemy import text

from effaced.datamap.run.erase import count_reachable, dry_run, erase
from effaced.datamap.surrogates.scrub_pattern import ERASED, build_pattern, scrub

ONLY_POSTGRES = pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)

DESK = """
    version: 1
    subject: {table: people, key: id}
    identifiers: {email: email, name: name}
    tables:
      people:
        columns:
          id: not_personal
          email: {anonymise: random_email}
          name: {anonymise: fixed_text, text: nobody}
          phone: {anonymise: null}
          nick: not_personal
      tickets:
        link: {to: people, on: {person: id}}
        columns:
          id: not_personal
          person: {retain: law}
          subject: {scrub: [name]}
          body: {scrub: all}
          notes: {scrub: [phone, email, nick]}
    """
VALUES = ["alice@example.org", "Alice Strauß", "+49 170 1234567", "Σίσυφος"]


@pytest.fixture
def desk(company):
    """Alice (1) and Bob (2), and Alice's tickets."""
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, email text, name text, phone text, nick text)",
        "CREATE TABLE tickets (id integer PRIMARY KEY, person integer, subject varchar(30), body text,"
        " notes text)",
        "INSERT INTO people VALUES (1, 'alice@example.org', 'Alice Strauß', '+49 170 1234567', 'Σίσυφος'),"
        " (2, 'bob@example.org', 'Bob', NULL, NULL)",
        "INSERT INTO tickets VALUES"
        " (1, 1, 'Alice Strauss', 'ALICE@example.org wrote to bob@example.org', 'call 0170/1234567'),"
        " (2, 1, 'socks', 'nothing here', NULL),"
        " (3, 2, 'Alice Strauß', 'alice@example.org', 'alice@example.org')",
    )
    return company


def tickets(company) -> list:
    return company.rows("SELECT subject, body, notes FROM tickets ORDER BY id")


def test_only_what_names_the_person_goes_and_only_in_their_rows(desk):
    erase(desk.session, desk.plan(DESK), "1")
    assert tickets(desk) == [
        ("[erased]", "[erased] wrote to bob@example.org", "call [erased]"),
        ("socks", "nothing here", None),
        ("Alice Strauß", "alice@example.org", "alice@example.org"),
    ]


def test_the_effect_says_in_how_many_rows_something_was_found(desk):
    plan = desk.plan(DESK)
    foreseen = {effect.table: effect for effect in dry_run(desk.session, plan, "1")}
    assert foreseen["tickets"].scrubbed == {"subject": 1, "body": 1, "notes": 1}
    assert foreseen["tickets"].rows == 1
    assert list(foreseen.values()) == erase(desk.session, plan, "1")
    assert foreseen["people"].scrubbed == {}


def test_scrubbing_again_finds_nothing(desk):
    plan = desk.plan(DESK)
    erase(desk.session, plan, "1")
    before = tickets(desk)
    assert count_reachable(desk.session, plan, "1") == {}
    again = {effect.table: effect for effect in erase(desk.session, plan, "1")}
    assert (again["tickets"].rows, again["tickets"].scrubbed) == (0, {"subject": 0, "body": 0, "notes": 0})
    assert before == tickets(desk)


def test_identifiers_that_are_kept_are_not_found_a_second_time(desk):
    kept = DESK.replace("{anonymise: random_email}", "{retain: law}")
    plan = desk.plan(kept)
    erase(desk.session, plan, "1")
    assert count_reachable(desk.session, plan, "1") == {}


def test_when_the_person_is_gone_or_erased_nothing_is_found(desk):
    plan = desk.plan(DESK)
    erase(desk.session, plan, "1")
    desk.run("INSERT INTO tickets VALUES (4, 1, 'nobody', 'alice@example.org', NULL)")
    assert [effect.rows for effect in erase(desk.session, plan, "1")] == [0, 0]
    desk.run("DELETE FROM people WHERE id = 1")
    assert [effect.rows for effect in erase(desk.session, plan, "1")] == [0, 0]


def test_a_dry_run_is_three_statements_however_many_tables_and_texts_there_are(desk):
    plan = desk.plan(DESK)
    with desk.statements() as sent:
        dry_run(desk.session, plan, "1")
    assert len(sent) == 3


def test_rows_of_others_that_mention_the_person_are_scrubbed_of_them(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, name text)",
        "CREATE TABLE letters (id integer PRIMARY KEY, about integer, body text)",
        "INSERT INTO people VALUES (1, 'Alice'), (2, 'Bob')",
        "INSERT INTO letters VALUES (1, 1, 'Dear Bob, Alice'), (2, 2, 'Alice, too')",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: not_personal, name: {anonymise: null}}}
          letters:
            mentions:
              - {to: people, on: {about: id}, columns: {about: {anonymise: null}, body: {scrub: [name]}}}
            columns: {id: not_personal, about: not_personal, body: not_personal}
        """)
    effects = {effect.table: effect.scrubbed for effect in erase(company.session, plan, "1")}
    assert effects["letters"] == {"body": 1}
    assert company.rows("SELECT about, body FROM letters ORDER BY id") == [
        (None, "Dear Bob, [erased]"),
        (2, "Alice, too"),
    ]


def test_a_text_that_would_no_longer_fit_goes_as_a_whole(desk):
    desk.run("UPDATE people SET name = 'Ann' WHERE id = 1")
    desk.run("UPDATE tickets SET subject = 'Ann Ann Ann Ann Ann' WHERE id = 1")
    erase(desk.session, desk.plan(DESK), "1")
    assert tickets(desk)[0][0] == ERASED


@ONLY_POSTGRES
@pytest.mark.parametrize(
    ("column", "value", "left"),
    [
        ("text[]", ["Ann", "x", "annual", None], [ERASED, "x", "annual", None]),
        ("varchar(10)[]", ["Ann Ann", "x"], [ERASED, "x"]),
        ("text[]", [["Ann", "x"], ["y", 'to "Ann"']], [[ERASED, "x"], ["y", f'to "{ERASED}"']]),
        ("text[]", [], []),
        ("text[]", None, None),
        ("char(20)", "Ann", ERASED.ljust(20)),
    ],
)
def test_arrays_and_padded_texts_of_postgres(company, column, value, left):
    company.run(f"CREATE TABLE people (id integer PRIMARY KEY, name text, it {column})")
    company.session.execute(text("INSERT INTO people VALUES (1, 'Ann', :it)"), {"it": value})
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: not_personal, name: not_personal, it: {scrub: [name]}}}
        """)
    [effect] = erase(company.session, plan, "1")
    assert company.rows("SELECT it FROM people") == [(left,)]
    assert effect.rows == effect.scrubbed["it"] == (value != left)
    assert [effect.rows for effect in erase(company.session, plan, "1")] == [0]


@ONLY_POSTGRES
def test_postgres_finds_what_python_finds(company):
    """One pattern, two engines. The server's locale is C, which knows no letters but ASCII's."""
    texts = [
        "ALICE+x@EXAMPLE.org malice@example.org alice%40example.org",
        "alice strauss, ALICE STRAUẞ, Alice Straußen, xAlice Strauß",
        unicodedata.normalize("NFD", "σίσυφοσ ΣΊΣΥΦΟΣ Σίσυφοςα"),
        "0049 170/1234567, 0170 1234567, +491701234567, 1701234567, 101701234567",
        "Alice Strauß+49 170 1234567",
        "",
    ]
    found = build_pattern(VALUES)
    query = text("SELECT regexp_replace(regexp_replace(:it, :p, '[erased]', 'g'), :p, '[erased]', 'g')")
    for each in texts:
        by_postgres = company.session.execute(query, {"it": each, "p": found}).scalar_one()
        assert by_postgres == scrub(each, found)


@pytest.mark.parametrize(
    "value", ["(" * 300, "[" * 300, "\\" * 300, "s" * 300, "1" * 300, "{9}" * 90, "***=x"]
)
def test_no_value_breaks_the_statement(company, value):
    company.run("CREATE TABLE people (id integer PRIMARY KEY, name text, it text)")
    company.session.execute(
        text("INSERT INTO people VALUES (1, :v, :it)"), {"v": value, "it": f"x {value} y"}
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: not_personal, name: not_personal, it: {scrub: [name]}}}
        """)
    erase(company.session, plan, "1")
    assert company.rows("SELECT it FROM people") == [(f"x {ERASED} y",)]
