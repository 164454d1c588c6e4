"""Finding the person a request is about."""

from __future__ import annotations

import pytest

from effaced.datamap.run.erase import erase
from effaced.datamap.run.subject import Subject, find_subject

ONLY_POSTGRES = pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)

PEOPLE = """
    version: 1
    subject: {table: people, key: id}
    identifiers: {email: mail, phone: phone}
    refs:
      payment: {column: pay}
      files: {template: "people/{id}/{region}/"}
    tables:
      people:
        columns:
          id: not_personal
          mail: {anonymise: random_unique}
          phone: delete
          pay: {anonymise: fixed_text, text: gone}
          region: not_personal
    """


@pytest.fixture
def people(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, mail varchar(60), phone text, pay text, region text)",
        "INSERT INTO people VALUES (1, 'alice@example.org', '555', 'cus_1', 'eu'), (2, '', NULL, '', NULL)",
    )
    return company


def test_identifiers_and_refs_are_read_from_the_subjects_row(people):
    assert find_subject(people.session, people.plan(PEOPLE), "1") == Subject(
        subject_id="1",
        identifiers={"email": "alice@example.org", "phone": "555"},
        refs={"payment": "cus_1", "files": "people/1/eu/"},
    )


def test_what_is_null_or_empty_is_absent(people):
    assert find_subject(people.session, people.plan(PEOPLE), "2") == Subject("2", {}, {})


def test_what_is_erased_already_is_absent(people):
    plan = people.plan(PEOPLE)
    erase(people.session, plan, "1")
    assert find_subject(people.session, plan, "1") == Subject("1", {}, {"files": "people/1/eu/"})


@pytest.mark.parametrize(
    "unknown", ["3", "", "x", "1.5", "01", "9" * 40, "a\0", "\ud800", "1; DROP TABLE people"]
)
def test_an_id_that_nobody_has_finds_nobody(people, unknown):
    plan = people.plan(PEOPLE)
    assert find_subject(people.session, plan, unknown) is None
    assert find_subject(people.session, plan, "1") is not None, "the transaction goes on"


def test_it_takes_one_statement(people):
    plan = people.plan(PEOPLE)
    with people.statements() as sent:
        find_subject(people.session, plan, "1")
    assert len(sent) == 1


def test_nothing_personal_shows_in_the_repr(people):
    assert repr(find_subject(people.session, people.plan(PEOPLE), "1")) == "Subject()"


def test_a_composite_key_is_its_parts_with_bars_between(company):
    company.run(
        "CREATE TABLE people (club text, no integer, PRIMARY KEY (club, no))",
        "INSERT INTO people VALUES ('a|b', 7)",
    )
    plan = company.plan(
        """
        version: 1
        subject: {table: people, key: [club, no]}
        tables: {people: {columns: {club: delete, no: delete}}}
        """
    )
    found = find_subject(company.session, plan, "a\\|b|7")
    assert found is not None
    assert found.subject_id == "a\\|b|7"
    assert find_subject(company.session, plan, "a|b|7") is None


@ONLY_POSTGRES
def test_however_a_uuid_is_spelled_the_person_has_one_id(company):
    company.run(
        "CREATE TABLE people (id uuid PRIMARY KEY)",
        "INSERT INTO people VALUES ('0000000a-0000-0000-0000-000000000000')",
    )
    plan = company.plan(
        """
        version: 1
        subject: {table: people, key: id}
        tables: {people: {columns: {id: delete}}}
        """
    )
    found = find_subject(company.session, plan, "0000000A-0000-0000-0000-000000000000")
    assert found is not None
    assert found.subject_id == "0000000a-0000-0000-0000-000000000000"


def test_a_numeric_key_is_found_by_its_whole_number(company):
    company.run("CREATE TABLE people (id numeric(12, 0) PRIMARY KEY)", "INSERT INTO people VALUES (42)")
    plan = company.plan(
        """
        version: 1
        subject: {table: people, key: id}
        tables: {people: {columns: {id: delete}}}
        """
    )
    found = find_subject(company.session, plan, "42")
    assert found is not None
    assert found.subject_id == "42"
    assert [effect.rows for effect in erase(company.session, plan, "42")] == [1]


@pytest.mark.parametrize("company_database", ["sqlite"], indirect=True)
def test_sqlite_keys_of_a_type_it_does_not_know_are_compared_as_text(company):
    company.run("CREATE TABLE people (id UUID PRIMARY KEY)", "INSERT INTO people VALUES ('abc-1')")
    plan = company.plan(
        """
        version: 1
        subject: {table: people, key: id}
        tables: {people: {columns: {id: delete}}}
        """
    )
    found = find_subject(company.session, plan, "abc-1")
    assert found is not None
    assert found.subject_id == "abc-1"


PADDED = """
    version: 1
    subject: {table: people, key: id}
    identifiers: {email: mail}
    refs: {crm: {template: "c/{crm}/{id}"}}
    tables:
      people:
        columns:
          id: not_personal
          mail: {anonymise: random_unique}
          crm: {anonymise: fixed_text, text: gone}
    """


@pytest.fixture
def padded(company):
    company.run(
        "CREATE TABLE people (id char(5) PRIMARY KEY, mail char(60), crm char(12))",
        "INSERT INTO people VALUES ('ab', 'alice@example.org', 'C-77'), ('abcde', 'bob@example.org', 'C-78')",
    )
    return company


def test_the_blanks_that_fill_a_char_column_are_no_part_of_the_person(padded):
    assert find_subject(padded.session, padded.plan(PADDED), "ab") == Subject(
        "ab", {"email": "alice@example.org"}, {"crm": "c/C-77/ab"}
    )


def test_a_surrogate_is_known_again_in_a_char_column(padded):
    plan = padded.plan(PADDED)
    erase(padded.session, plan, "ab")
    assert find_subject(padded.session, plan, "ab") == Subject("ab", {}, {})


def test_an_id_too_long_for_a_char_key_is_nobodys(padded):
    assert find_subject(padded.session, padded.plan(PADDED), "abcdefgh") is None


@pytest.mark.parametrize("company_database", ["sqlite"], indirect=True)
def test_sqlite_blanks_are_the_persons_own(padded):
    padded.run("INSERT INTO people VALUES ('x ', 'y ', NULL)")
    assert find_subject(padded.session, padded.plan(PADDED), "x ") == Subject("x ", {"email": "y "}, {})
