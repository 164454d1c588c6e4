"""`draft_map`: databases that were moved more than once, with short names and no foreign keys."""

from __future__ import annotations

import pytest
from read_draft import drafted, review

ONLY_POSTGRES = pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)
CONTACTS = (
    "CREATE TABLE tbl_contact (cont_id integer PRIMARY KEY, fname varchar(40), lname varchar(40),"
    " eml1 varchar(60), spouse_cont_id integer)"
)
THREE = (
    "INSERT INTO tbl_contact VALUES (1001, 'A', 'A', 'a@x.example', NULL),"
    " (1002, 'B', 'B', 'b@x.example', 1001), (1003, 'C', 'C', 'c@x.example', NULL)"
)


def test_the_name_of_a_key_with_a_number_after_it_points_there(company):
    told = drafted(
        company,
        CONTACTS,
        THREE,
        "CREATE TABLE tbl_rel (rel_id integer PRIMARY KEY, cont_id_1 integer, cont_id_2 integer)",
        "INSERT INTO tbl_rel VALUES (1, 1001, 1002)",
    )
    assert told["tables"]["tbl_rel"]["link"] == [
        {"to": "tbl_contact", "on": {"cont_id_1": "cont_id"}},
        {"to": "tbl_contact", "on": {"cont_id_2": "cont_id"}},
    ]


def test_the_name_of_a_key_with_a_word_before_it_is_for_a_person_to_decide(company):
    told = drafted(
        company,
        CONTACTS,
        THREE,
        "CREATE TABLE tbl_event (evt_id integer PRIMARY KEY, venue varchar(40), host_cont_id integer)",
        "INSERT INTO tbl_event VALUES (1, 'Town Hall', 1001), (2, 'Park', 1002)",
    )
    assert "ends like tbl_contact.cont_id" in review(told["tables"]["tbl_event"]["columns"]["host_cont_id"])


def test_a_code_that_is_the_key_of_staff_points_at_staff(company):
    told = drafted(
        company,
        CONTACTS,
        THREE,
        "CREATE TABLE tbl_staff (staff_cd varchar(10) PRIMARY KEY, staff_nm text, staff_eml varchar(60))",
        "INSERT INTO tbl_staff VALUES ('JD', 'J', 'j@office.example')",
        "CREATE TABLE tbl_call (call_id integer PRIMARY KEY, cont_id integer NOT NULL, staff_cd varchar(10))",
        "INSERT INTO tbl_call VALUES (1, 1001, 'JD'), (2, 1002, 'JD')",
    )
    [mention] = told["tables"]["tbl_call"]["mentions"]
    assert (mention["to"], mention["on"]) == ("tbl_staff", {"staff_cd": "staff_cd"})


def test_a_log_by_table_and_key_leads_to_the_people_among_its_tables(company):
    told = drafted(
        company,
        CONTACTS,
        THREE,
        "CREATE TABLE audit_trail (aud_id integer PRIMARY KEY, tbl varchar(40), pk varchar(9), old_val text)",
        "INSERT INTO audit_trail VALUES (1, 'tbl_contact', '1001', 'x'), (2, 'tbl_fund', '7', 'y')",
    )
    assert told["tables"]["audit_trail"]["link"] == {
        "to": "tbl_contact",
        "on": {"pk": "cont_id"},
        "where": {"tbl": "tbl_contact"},
        "as": "text",
    }


def test_no_link_hides_that_most_addresses_are_those_of_people_it_cannot_lead_to(company):
    told = drafted(
        company,
        CONTACTS,
        THREE,
        "CREATE TABLE web_users (id integer PRIMARY KEY, email varchar(60) UNIQUE, pw varchar(90))",
        "INSERT INTO web_users VALUES (1, 'a@x.example', '-')",
        "CREATE TABLE mailings (no integer PRIMARY KEY, address varchar(60))",
        "INSERT INTO mailings VALUES (1, 'a@x.example'), (2, 'b@x.example'), (3, 'c@x.example')",
    )
    assert "no link can go by tbl_contact.eml1" in told["review"]["mailings"]
