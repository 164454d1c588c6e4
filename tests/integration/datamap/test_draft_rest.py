"""`draft_map`: what no link leads to, and what is personal in it all the same."""

from __future__ import annotations

import pytest
from decide_draft import decided
from read_draft import drafted, review

from effaced.datamap.check import check_map
from effaced.datamap.draft.draft import draft_map

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
        """INSERT INTO plans VALUES (1, '[{"name": "single sign-on"}]')""",
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
