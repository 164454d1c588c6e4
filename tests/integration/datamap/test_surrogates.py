"""What each surrogate writes: once, recognisably, and into every kind of column that it fits."""

from __future__ import annotations

import hashlib
import hmac
import re
import uuid

import pytest

from effaced.core.crypto import Keyring, new_key
from effaced.core.errors import ConfigurationError
from effaced.datamap.run.erase import count_reachable, dry_run, erase
from effaced.datamap.run.subject import find_subject

ONLY_SQLITE = pytest.mark.parametrize("company_database", ["sqlite"], indirect=True)
ONLY_POSTGRES = pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)
NIL = uuid.UUID("00000000-0000-0000-0000-00000000000f")
KEYS = Keyring.parse(new_key("k7"))
UUID = re.compile(r"effaced0-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def people(company, column: str, *values: str) -> None:
    """A table of people with one more column, and a person per value."""
    company.run(f"CREATE TABLE people (id integer PRIMARY KEY, k text, it {column})")
    for number, value in enumerate(values, 1):
        company.run(f"INSERT INTO people VALUES ({number}, 'kept', {value})")


def plan_of(company, rule: str):
    return company.plan(
        "version: 1\nsubject: {table: people, key: id}\nidentifiers: {it: it}\ntables:\n  people:\n"
        f"    columns:\n      id: not_personal\n      k: {{retain: law}}\n      it: {rule}\n",
        KEYS,
    )


def cells(company) -> list:
    return [cell for (cell,) in company.rows("SELECT it FROM people ORDER BY id")]


FITTING = [
    ("varchar(60) UNIQUE NOT NULL", "{anonymise: random_email}", "'a@x.org'", "'b@x.org'"),
    ("varchar(38) UNIQUE", "{anonymise: random_email}", "'a@x.org'", "'b@x.org'"),
    ("varchar(36) UNIQUE", "{anonymise: random_uuid}", "'a'", "'b'"),
    ("char(32) UNIQUE", "{anonymise: random_uuid}", "'a'", "'b'"),
    ("integer UNIQUE NOT NULL", "{anonymise: random_number}", "17", "-18"),
    ("bigint UNIQUE", "{anonymise: random_number}", "17", "4000000000"),
    ("numeric(12, 2) UNIQUE", "{anonymise: random_number}", "17.25", "18"),
    ("smallint", "{anonymise: random_number}", "17", "18"),
    ("integer NOT NULL", "{anonymise: fixed, value: 0}", "17", "18"),
    ("numeric(10, 2)", "{anonymise: fixed, value: 1.5}", "17", "18"),
    ("boolean", "{anonymise: fixed, value: false}", "true", "true"),
    ("date NOT NULL", "{anonymise: fixed, value: 1900-01-01}", "'1984-05-06'", "'1990-01-02'"),
    ("timestamp", "{anonymise: fixed, value: '1900-01-01T00:00:00'}", "'1984-05-06 01:02:03'", "NULL"),
    ("varchar(9)", "{anonymise: fixed, value: 007}", "'a'", "'b'"),
    ("text NOT NULL", "{anonymise: empty}", "'a'", "'b'"),
    ("varchar(88)", "{anonymise: keyed_hash}", "'a'", "'b'"),
    ("text NOT NULL", "{anonymise: keyed_hash}", "'ä'", "'b'"),
]


@pytest.mark.parametrize(("column", "rule", "alice", "bob"), FITTING)
def test_a_cell_changes_once_and_nobody_elses(company, column, rule, alice, bob):
    people(company, column, alice, bob)
    plan = plan_of(company, rule)
    before = cells(company)
    assert dry_run(company.session, plan, "1") == erase(company.session, plan, "1")
    after = cells(company)
    assert after[0] != before[0]
    assert after[1] == before[1]
    assert count_reachable(company.session, plan, "1") == {}
    assert [effect.rows for effect in erase(company.session, plan, "1")] == [0]
    assert after == cells(company)


@pytest.mark.parametrize(("column", "rule", "alice", "bob"), FITTING)
def test_two_people_are_erased_one_after_the_other(company, column, rule, alice, bob):
    people(company, column, alice, bob)
    plan = plan_of(company, rule)
    erase(company.session, plan, "1")
    erase(company.session, plan, "2")
    assert [effect.rows for person in "12" for effect in dry_run(company.session, plan, person)] == [0, 0]
    if "UNIQUE" in column:
        assert len(set(cells(company))) == 2


@pytest.mark.parametrize(
    ("column", "rule"), [(column, rule) for column, rule, *_ in FITTING if "NOT NULL" not in column]
)
def test_a_cell_that_is_null_stays_null(company, column, rule):
    people(company, column, "NULL")
    erase(company.session, plan_of(company, rule), "1")
    assert cells(company) == [None]


def test_the_forms_can_be_told_from_a_persons_data(company):
    people(company, "text", "'a'", "'b'", "'c'", "'d'")
    forms = {
        "1": ("random_email", re.compile(r"erased-[0-9a-f]{32}@erased\.invalid")),
        "2": ("random_uuid", UUID),
        "3": ("keyed_hash", re.compile(r"hashed-k7-[0-9a-f]{64}")),
        "4": ("empty", re.compile("")),
    }
    for person, (surrogate, _) in forms.items():
        erase(company.session, plan_of(company, f"{{anonymise: {surrogate}}}"), person)
    for cell, (surrogate, form) in zip(cells(company), forms.values(), strict=True):
        assert form.fullmatch(cell), surrogate


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [
        ("smallint", -32767, -16384),
        ("integer", -(2**31), -(2**30)),
        ("bigint", -(2**53), -(2**52)),
        ("numeric(4, 1)", -999, -500),
        ("numeric", -(10**15), -5 * 10**14),
    ],
)
def test_a_random_number_is_below_zero_and_fits_its_column(company, column, low, high):
    people(company, column, *["17"] * 20)
    plan = plan_of(company, "{anonymise: random_number}")
    for person in range(1, 21):
        erase(company.session, plan, str(person))
    found = cells(company)
    assert all(low <= cell <= high for cell in found)
    assert len(set(found)) > 10


@ONLY_POSTGRES
@pytest.mark.parametrize(
    ("column", "rule", "value", "expected"),
    [
        ("uuid UNIQUE", "{anonymise: random_uuid}", "gen_random_uuid()", None),
        (
            "uuid",
            "{anonymise: fixed, value: 00000000-0000-0000-0000-000000000000}",
            "gen_random_uuid()",
            None,
        ),
        ("mood NOT NULL", "{anonymise: fixed, value: unknown}", "'happy'", "unknown"),
        ("text[] NOT NULL", "{anonymise: empty}", "'{a,b}'", []),
        ("integer[]", "{anonymise: empty}", "'{1,2}'", []),
        ("bytea", "{anonymise: empty}", r"'\xdeadbeef'", b""),
        ("tsvector", "{anonymise: empty}", "to_tsvector('simple', 'alice')", ""),
        ("jsonb", "{anonymise: empty}", """'{"a": 1}'""", {}),
        ("jsonb", "{anonymise: empty}", "'[1]'", []),
        ("json", "{anonymise: empty}", """'{"a": 1}'""", {}),
        ("timestamptz", "{anonymise: fixed, value: '1900-01-01T00:00:00Z'}", "now()", None),
        ("char(100)", "{anonymise: keyed_hash}", "'a'", None),
    ],
)
def test_types_of_postgres(company, column, rule, value, expected):
    company.run("CREATE TYPE mood AS ENUM ('happy', 'unknown')")
    people(company, column, value, value if "UNIQUE" not in column else "gen_random_uuid()")
    plan = company.plan(
        "version: 1\nsubject: {table: people, key: id}\ntables:\n  people:\n    columns:\n"
        f"      id: not_personal\n      k: {{retain: law}}\n      it: {rule}\n",
        KEYS,
    )
    before = cells(company)
    erase(company.session, plan, "1")
    after = cells(company)
    assert after[0] != before[0]
    assert after[1] == before[1]
    assert expected is None or after[0] == expected
    assert [effect.rows for effect in erase(company.session, plan, "1")] == [0]
    assert after == cells(company)


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("column", "value", "left"),
    [("blob", "x'deadbeef'", b""), ("json", """'{"a": 1}'""", "{}"), ("json", "' [1]'", "[]")],
)
def test_types_of_sqlite(company, column, value, left):
    people(company, column, value)
    plan = company.plan(
        "version: 1\nsubject: {table: people, key: id}\ntables:\n  people:\n"
        "    columns: {id: not_personal, k: {retain: law}, it: {anonymise: empty}}\n"
    )
    erase(company.session, plan, "1")
    assert cells(company) == [left]
    assert [effect.rows for effect in erase(company.session, plan, "1")] == [0]


def test_a_keyed_hash_is_the_hmac_of_the_value_under_a_key_of_its_own(company):
    people(company, "text", "'ä@x.org'", "'ä@x.org'", "''")
    plan = plan_of(company, "{anonymise: keyed_hash}")
    for person in "123":
        erase(company.session, plan, person)
    key = KEYS.secret("datamap:keyed_hash")
    hashes = [hmac.new(key, text.encode(), hashlib.sha256).hexdigest() for text in ("ä@x.org", "ä@x.org", "")]
    assert [f"hashed-k7-{each}" for each in hashes] == cells(company)


def test_a_hash_under_an_older_key_is_not_hashed_again(company):
    people(company, "text", "'a'")
    erase(company.session, plan_of(company, "{anonymise: keyed_hash}"), "1")
    before = cells(company)
    newer = Keyring.parse(new_key("k8"))
    plan = company.plan(
        "version: 1\nsubject: {table: people, key: id}\ntables:\n  people:\n"
        "    columns: {id: not_personal, k: {retain: law}, it: {anonymise: keyed_hash}}\n",
        newer,
    )
    erase(company.session, plan, "1")
    assert before == cells(company)


def test_a_keyed_hash_without_a_key_is_refused_at_plan_time(company):
    people(company, "text", "'a'")
    with pytest.raises(ConfigurationError, match="keyed_hash columns, which need a key"):
        company.plan(
            "version: 1\nsubject: {table: people, key: id}\ntables:\n  people:\n"
            "    columns: {id: not_personal, k: {retain: law}, it: {anonymise: keyed_hash}}\n"
        )


@pytest.mark.parametrize(
    ("column", "rule", "value"),
    [
        ("text", "{anonymise: random_email}", "'a@x.org'"),
        ("text", "{anonymise: random_uuid}", "'a'"),
        ("text", "{anonymise: keyed_hash}", "'a'"),
        ("text", "{anonymise: fixed, value: x}", "'a'"),
        ("integer", "{anonymise: random_number}", "17"),
        ("integer", "{anonymise: fixed, value: 0}", "17"),
    ],
)
def test_a_surrogate_is_nobodys_identifier(company, column, rule, value):
    people(company, column, value)
    plan = plan_of(company, rule)
    found = find_subject(company.session, plan, "1")
    assert found is not None
    assert list(found.identifiers) == ["it"]
    erase(company.session, plan, "1")
    again = find_subject(company.session, plan, "1")
    assert again is not None
    assert again.identifiers == {}


def test_a_derived_column_changes_with_what_it_is_made_from(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, email varchar(80) UNIQUE NOT NULL,"
        " email_lower varchar(80) GENERATED ALWAYS AS (lower(email)) STORED)",
        "INSERT INTO people (id, email) VALUES (1, 'Alice@x.org'), (2, 'Bob@x.org')",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people:
            columns: {id: not_personal, email: {anonymise: random_email}, email_lower: derived}
        """)
    erase(company.session, plan, "1")
    [(email, lower), bob] = company.rows("SELECT email, email_lower FROM people ORDER BY id")
    assert email == lower
    assert email.startswith("erased-")
    assert bob == ("Bob@x.org", "bob@x.org")


def test_a_cell_that_is_erased_already_is_left_alone_when_its_neighbour_changes(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, email text, name text)",
        "INSERT INTO people VALUES (1, 'a@x.org', 'Alice')",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: not_personal, email: {anonymise: random_email}, name: delete}}
        """)
    erase(company.session, plan, "1")
    before = company.rows("SELECT email FROM people")
    company.run("UPDATE people SET name = 'late'")
    erase(company.session, plan, "1")
    assert before == company.rows("SELECT email FROM people")
