"""`draft_map`: what no link leads to, and what is personal in it all the same."""

from __future__ import annotations

import pytest
from decide_draft import decided
from read_draft import drafted, read, review

from effaced.datamap.check.data_map import check_map
from effaced.draft.draft import draft_map

ONLY_POSTGRES = pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)
USERS = "CREATE TABLE users (id integer PRIMARY KEY, email varchar(60) NOT NULL UNIQUE, name varchar(60))"


def test_what_looks_personal_in_rows_that_only_name_people_is_for_a_person_to_decide(company):
    told = drafted(
        company,
        USERS,
        "CREATE TABLE organisations (id integer PRIMARY KEY, owner_id integer REFERENCES users,"
        " billing_email varchar(60), plan varchar(10))",
    )
    columns = told["tables"]["organisations"]["columns"]
    assert "looks personal" in review(columns["billing_email"])
    assert [columns["plan"], columns["owner_id"]] == ["not_personal", "not_personal"]


@ONLY_POSTGRES
def test_people_in_documents_and_lists_are_seen(company):
    told = drafted(
        company,
        USERS,
        "CREATE TABLE flags (code text PRIMARY KEY, allowed text[])",
        "INSERT INTO flags VALUES ('new_editor', ARRAY['ann@x.example', 'bob@x.example'])",
        "CREATE TABLE settings (id integer PRIMARY KEY, owner_id integer REFERENCES users, conf jsonb)",
        """INSERT INTO settings VALUES (1, NULL, '{"sec_contact": {"email": "pat@x.example"}}')""",
        "CREATE TABLE plans (id integer PRIMARY KEY, features jsonb)",
        """INSERT INTO plans VALUES (1, '[{"name": "single sign-on"}, {"coordinates": [13.4, 52.5]}]')""",
    )
    assert "allowed looks personal" in told["review"]["flags"]
    assert told["not_personal"] == ["plans"]
    assert told["tables"]["settings"]["link"]["to"] == "users"


@ONLY_POSTGRES
def test_addresses_of_another_type_lead_to_people_by_a_link_that_the_check_takes(company):
    company.run(
        "CREATE EXTENSION IF NOT EXISTS citext",
        "CREATE TABLE users (id integer PRIMARY KEY, email citext NOT NULL UNIQUE, name varchar(60))",
        "CREATE TABLE sent (id integer PRIMARY KEY, recipient text, body text)",
        "INSERT INTO users VALUES (1, 'ann@x.example', 'Ann')",
        "INSERT INTO sent VALUES (1, 'ann@x.example', 'Hello Ann, all is well with you')",
    )
    text = draft_map(company.session.connection()).text
    assert "link: {to: users, on: {recipient: email}, as: text}" in text
    assert "other capital letters" in text
    assert check_map(company.session.connection(), company.map(decided(text))) == []


def test_an_office_s_address_is_not_offered_as_a_link(company):
    told = drafted(
        company,
        USERS,
        "INSERT INTO users VALUES (1, 'ann@x.example', 'Ann')",
        "CREATE TABLE vacancies (id integer PRIMARY KEY, salary_min integer, apply_to_email varchar(60))",
        "INSERT INTO vacancies VALUES (1, 10, 'jobs@company.example')",
    )
    assert "addresses of offices" in told["review"]["vacancies"]


def test_what_hangs_on_people_s_premises_is_for_a_person_to_decide(company):
    company.run(
        USERS,
        "CREATE TABLE premises (id integer PRIMARY KEY, street text, zip text, town text)",
        "CREATE TABLE contracts (id integer PRIMARY KEY, user_id integer NOT NULL REFERENCES users,"
        " premise_id integer REFERENCES premises)",
        "CREATE TABLE meters (id integer PRIMARY KEY, premise_id integer REFERENCES premises)",
        "CREATE TABLE readings (id integer PRIMARY KEY, meter_id integer REFERENCES meters, kwh integer)",
        "CREATE TABLE kiosks (id integer PRIMARY KEY, premise_id integer REFERENCES premises)",
        "INSERT INTO users VALUES (1, 'a@x.example', 'A'), (2, 'b@x.example', 'B'), (3, 'c@x.example', 'C')",
        "INSERT INTO premises VALUES (11, 'a', '1', 'x'), (12, 'b', '1', 'x'), (13, 'c', '1', 'x'),"
        " (21, 'd', '1', 'x'), (22, 'e', '1', 'x'), (23, 'f', '1', 'x')",
        "INSERT INTO contracts VALUES (1, 1, 11), (2, 2, 12), (3, 3, 13)",
        "INSERT INTO meters VALUES (1, 11), (2, 12), (3, 13)",
        "INSERT INTO kiosks VALUES (1, 21), (2, 22), (3, 23)",
    )
    text = draft_map(company.session.connection()).text
    told = read(text)
    assert "{to: premises, on: {premise_id: id}}" in told["review"]["meters"]
    assert "{to: meters, on: {meter_id: id}}" in told["review"]["readings"]
    assert told["not_personal"] == ["kiosks"]
    linked = decided(text).replace("  - meters\n", "").replace("  - readings\n", "")
    linked = linked.replace(
        "tables:\n",
        "tables:\n"
        "  meters:\n    link: {to: premises, on: {premise_id: id}}\n"
        "    columns: {id: not_personal, premise_id: delete}\n"
        "  readings:\n    link: {to: meters, on: {meter_id: id}}\n"
        "    columns: {id: not_personal, meter_id: delete, kwh: delete}\n",
        1,
    )
    assert check_map(company.session.connection(), company.map(linked)) == []


def test_numbers_that_are_people_s_are_seen_whatever_their_column_is_called(company):
    told = drafted(
        company,
        USERS,
        "CREATE TABLE sims (id integer PRIMARY KEY, msisdn varchar(16) UNIQUE,"
        " user_id integer REFERENCES users)",
        "CREATE TABLE calls (id integer PRIMARY KEY, a_party varchar(16), b_party varchar(16), took integer)",
        "CREATE TABLE masts (id integer PRIMARY KEY, serial varchar(16), batch integer)",
        "INSERT INTO users VALUES (1, 'ann@x.example', 'Ann'), (2, 'bob@x.example', 'Bob')",
        "INSERT INTO sims VALUES (1, '491755500001', 1), (2, '491755500002', 2)",
        "INSERT INTO calls VALUES (1, '491755500001', '493011100001', 60)",
        "INSERT INTO calls VALUES (2, '493022200001', '493022200002', 9)",
        "INSERT INTO masts VALUES (1, '553011100001', 1), (2, '553011100002', 2)",
    )
    assert "a_party holds values of sims.msisdn" in told["review"]["calls"]
    assert "link it: {to: sims, on: {a_party: msisdn}}" in told["review"]["calls"]
    assert told["not_personal"] == ["masts"]


def test_numbers_of_people_in_rows_that_only_name_somebody_are_for_a_person_to_decide(company):
    told = drafted(
        company,
        "CREATE TABLE users (id integer PRIMARY KEY, email varchar(60) NOT NULL UNIQUE, mobile varchar(20))",
        "CREATE TABLE offices (id integer PRIMARY KEY, owner_id integer REFERENCES users, wire varchar(20))",
        "INSERT INTO users VALUES (1, 'ann@x.example', '1705550001'), (2, 'bob@x.example', '1705550002')",
        "INSERT INTO offices VALUES (1, 1, '1705550002')",
    )
    columns = told["tables"]["offices"]["columns"]
    assert "looks personal" in review(columns["wire"])
    assert columns["id"] == "not_personal"


def test_where_no_address_is_anybody_s_the_draft_says_so_though_no_link_could_go_by_it(company):
    told = drafted(
        company,
        "CREATE TABLE users (id integer PRIMARY KEY, email varchar(60), name varchar(60), dob date)",
        "CREATE TABLE drop_offs (id integer PRIMARY KEY, mail varchar(60))",
        "INSERT INTO users VALUES (1, 'ann@x.example', 'Ann', '1990-01-01')",
        "INSERT INTO drop_offs VALUES (1, 'north@depot.example')",
    )
    assert "no sampled mail is an address of users" in told["review"]["drop_offs"]
