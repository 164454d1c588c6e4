"""`draft_map`: whose a row is, where several people have to do with it."""

from __future__ import annotations

import pytest
from read_draft import drafted, review

ONLY_SQLITE = pytest.mark.parametrize("company_database", ["sqlite"], indirect=True)
USERS = "CREATE TABLE users (id varchar(40) PRIMARY KEY, email varchar(60) NOT NULL UNIQUE, name varchar(60))"
TENANTS = (
    "CREATE TABLE tenants (id integer PRIMARY KEY, first_name varchar(40), last_name varchar(40),"
    " email varchar(60) UNIQUE, born date)"
)
AGENTS = "CREATE TABLE agents (id integer PRIMARY KEY, full_name varchar(60), email varchar(60), phone text)"
THREE_TENANTS = (
    "INSERT INTO tenants (id, first_name, last_name, email) VALUES (1, 'Ida', 'Nord', 'ida@x.example'),"
    " (2, 'Per', 'Dahl', 'per@x.example'), (3, 'Eli', 'Lund', 'eli@x.example')"
)
THREE_AGENTS = (
    "INSERT INTO agents VALUES (1, 'Ann Low', 'ann@us.example', '+44 20 5550101'),"
    " (2, 'Bo Hill', 'bo@us.example', '+44 20 5550102'), (3, 'Cy Dale', 'cy@us.example', '+44 20 5550103')"
)


def made_up(number: int) -> str:
    return f"cl{number:022d}"


@ONLY_SQLITE
def test_who_checks_a_ticket_in_does_not_own_it(company):
    told = drafted(
        company,
        USERS,
        "CREATE TABLE orders (id integer PRIMARY KEY, buyer_id varchar(40) NOT NULL REFERENCES users)",
        "CREATE TABLE tickets (id integer PRIMARY KEY, order_id integer NOT NULL REFERENCES orders,"
        " holder_name varchar(60), checked_in_by varchar(40))",
        *(f"INSERT INTO users VALUES ('{made_up(n)}', 'u{n}@x.example', 'U {n}')" for n in range(4)),
        *(f"INSERT INTO orders VALUES ({n}, '{made_up(n)}')" for n in range(2)),
        *(f"INSERT INTO tickets VALUES ({n}, {n}, 'U {n}', '{made_up(3)}')" for n in range(2)),
    )
    assert told["tables"]["tickets"]["link"] == {"to": "orders", "on": {"order_id": "id"}}


def test_who_works_here_and_does_something_with_a_row_does_not_own_it(company):
    told = drafted(
        company,
        TENANTS,
        AGENTS,
        "CREATE TABLE flats (id integer PRIMARY KEY, nickname varchar(40),"
        " managed_by integer REFERENCES agents)",
        "CREATE TABLE inspections (id integer PRIMARY KEY, inspector integer REFERENCES agents, notes text)",
    )
    for table, column in (("flats", "managed_by"), ("inspections", "inspector")):
        assert "link" not in told["tables"][table]
        assert told["tables"][table]["mentions"][0]["on"] == {column: "id"}


def test_staff_are_staff_by_any_word_of_the_tables_name(company):
    told = drafted(
        company,
        TENANTS,
        "CREATE TABLE staff_users (id integer PRIMARY KEY, email varchar(60), full_name varchar(60))",
        "CREATE TABLE warnings (id integer PRIMARY KEY, tenant_id integer REFERENCES tenants,"
        " actor_id integer REFERENCES staff_users, note text)",
    )
    assert list(told["subjects"]) == ["tenant", "staff_user"]
    assert told["tables"]["warnings"]["link"] == {"to": "tenants", "on": {"tenant_id": "id"}}


@ONLY_SQLITE
def test_a_register_that_names_patients_is_not_the_pharmacists(company):
    told = drafted(
        company,
        "CREATE TABLE patients (no varchar(8) PRIMARY KEY, surname text, forename text, dob text)",
        "CREATE TABLE pharmacists (reg_no varchar(8) PRIMARY KEY, surname text, pin text)",
        "CREATE TABLE register (entry integer PRIMARY KEY, patient_name text, pharmacist varchar(8))",
        "INSERT INTO pharmacists VALUES ('2005511', 'A', 'x'), ('2015511', 'B', 'x'), ('2025511', 'C', 'x')",
        "INSERT INTO register VALUES (1, 'A B', '2005511'), (2, 'C D', '2015511'), (3, 'E F', '2025511')",
    )
    assert "link" not in told["tables"]["register"]
    assert "it looks personal" in review(told["tables"]["register"]["columns"]["patient_name"])


def test_what_peoples_rows_point_at_may_be_a_party_of_its_own(company):
    told = drafted(
        company,
        TENANTS,
        "CREATE TABLE plumbers (id integer PRIMARY KEY, name text, phone text, email text)",
        "CREATE TABLE repairs (id integer PRIMARY KEY, tenant_id integer NOT NULL REFERENCES tenants,"
        " plumber_id integer REFERENCES plumbers)",
    )
    assert "phone, email look personal" in told["review"]["plumbers"]


def test_a_list_of_postcodes_is_nobodys(company):
    told = drafted(
        company,
        "CREATE TABLE postcodes (postcode varchar(10) PRIMARY KEY, town text)",
        "CREATE TABLE addresses (id integer PRIMARY KEY, street text, town text,"
        " postcode varchar(10) REFERENCES postcodes)",
        "CREATE TABLE tenants (id integer PRIMARY KEY, first_name text, last_name text,"
        " email varchar(60) UNIQUE, address_id integer REFERENCES addresses)",
    )
    assert told["not_personal"] == ["postcodes"]
    assert told["tables"]["addresses"]["link"] == {"from": "tenants", "on": {"id": "address_id"}}


def test_a_foreign_key_of_nobodys_row_keeps_an_address_and_is_not_emptied(company):
    told = drafted(
        company,
        "CREATE TABLE addresses (id integer PRIMARY KEY, street text, town text)",
        "CREATE TABLE tenants (id integer PRIMARY KEY, first_name text, last_name text,"
        " email varchar(60) UNIQUE, address_id integer REFERENCES addresses)",
        "CREATE TABLE flats (id integer PRIMARY KEY, address_id integer REFERENCES addresses, rooms integer)",
    )
    assert told["not_personal"] == ["flats"]


def test_an_organisation_with_a_contact_and_a_vat_number_is_no_person(company):
    told = drafted(
        company,
        TENANTS,
        "CREATE TABLE promotions (id integer PRIMARY KEY, name text, vat_id text, contact_name text,"
        " contact_email text)",
        "CREATE TABLE shows (id integer PRIMARY KEY, promotion_id integer NOT NULL REFERENCES promotions)",
    )
    assert told["subject"]["table"] == "tenants"
    assert "contact_name" in told["review"]["promotions"]


def test_a_number_that_two_kinds_of_people_have_is_a_guess(company):
    told = drafted(
        company,
        TENANTS,
        AGENTS,
        "CREATE TABLE remarks (id integer PRIMARY KEY, author_id integer, body text)",
        THREE_TENANTS,
        THREE_AGENTS,
        "INSERT INTO remarks VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z')",
    )
    assert "keys of agents as well" in review(told["tables"]["remarks"]["columns"]["author_id"])


def test_a_login_whose_profile_is_somebodys_goes_with_them(company):
    told = drafted(
        company,
        TENANTS,
        AGENTS,
        "CREATE TABLE users (id integer PRIMARY KEY, login varchar(60) UNIQUE, password_hash text,"
        " profile_type varchar(20), profile_id integer)",
        "CREATE TABLE cars (id integer PRIMARY KEY, tenant_id integer REFERENCES tenants, plate text)",
        "CREATE TABLE desks (id integer PRIMARY KEY, agent_id integer REFERENCES agents, plate text)",
        THREE_TENANTS,
        THREE_AGENTS,
        "INSERT INTO users VALUES (1, 'ida', 'x', 'Tenant', 1), (2, 'per', 'x', 'Tenant', 2),"
        " (3, 'ann', 'x', 'Agent', 1)",
    )
    assert list(told["subjects"]) == ["tenant", "agent"]
    assert told["tables"]["users"]["link"] == [
        {"to": "tenants", "on": {"profile_id": "id"}, "where": {"profile_type": "Tenant"}},
        {"to": "agents", "on": {"profile_id": "id"}, "where": {"profile_type": "Agent"}},
    ]


def test_a_lease_of_several_tenants_goes_with_the_last_of_them(company):
    told = drafted(
        company,
        TENANTS,
        "CREATE TABLE leases (id integer PRIMARY KEY, start_on date, rent integer)",
        "CREATE TABLE lease_tenants (lease_id integer NOT NULL REFERENCES leases,"
        " tenant_id integer NOT NULL REFERENCES tenants, PRIMARY KEY (lease_id, tenant_id))",
    )
    assert told["tables"]["leases"]["link"] == {"from": "lease_tenants", "on": {"id": "lease_id"}}
    assert "leases kept" in review(told["tables"]["leases"]["columns"]["rent"])


def test_an_address_of_somebody_else_in_a_row_is_a_mention(company):
    told = drafted(
        company,
        USERS,
        "CREATE TABLE gifts (id integer PRIMARY KEY, user_id varchar(40) NOT NULL REFERENCES users,"
        " recipient_email varchar(60), recipient_name varchar(60), message text)",
        "INSERT INTO users VALUES ('a', 'a@x.example', 'A'), ('b', 'b@x.example', 'B')",
        "INSERT INTO gifts VALUES (1, 'a', 'b@x.example', 'B', 'hi'), (2, 'a', 'z@x.example', 'Z', 'hi')",
    )
    assert told["tables"]["gifts"]["link"] == {"to": "users", "on": {"user_id": "id"}}
    assert told["tables"]["gifts"]["mentions"] == [
        {
            "to": "users",
            "on": {"recipient_email": "email"},
            "columns": {"recipient_email": {"anonymise": None}, "recipient_name": {"anonymise": None}},
        }
    ]


def test_mail_to_somebody_is_theirs_also_where_the_column_is_called_just_to(company):
    told = drafted(
        company,
        USERS,
        'CREATE TABLE sent (id integer PRIMARY KEY, "to" varchar(60) NOT NULL, body text)',
        "INSERT INTO users VALUES ('a', 'a@x.example', 'A'), ('b', 'b@x.example', 'B')",
        "INSERT INTO sent VALUES (1, 'a@x.example', 'hi'), (2, 'b@x.example', 'hi')",
    )
    assert told["tables"]["sent"]["link"] == {"to": "users", "on": {"to": "email"}}


def test_others_messages_in_a_chat_of_two_are_for_a_person_to_decide(company):
    told = drafted(
        company,
        TENANTS,
        "CREATE TABLE pairs (id integer PRIMARY KEY, one_id integer NOT NULL REFERENCES tenants,"
        " other_id integer NOT NULL REFERENCES tenants)",
        "CREATE TABLE chats (id integer PRIMARY KEY, pair_id integer NOT NULL REFERENCES pairs)",
        "CREATE TABLE messages (id integer PRIMARY KEY, chat_id integer NOT NULL REFERENCES chats,"
        " sender_id integer NOT NULL REFERENCES tenants, body text)",
        "CREATE TABLE likes (message_id integer NOT NULL REFERENCES messages,"
        " liker_id integer NOT NULL REFERENCES tenants, PRIMARY KEY (message_id, liker_id))",
    )
    columns = told["tables"]["messages"]["columns"]
    assert "what the others have put into messages goes as well" in review(columns["chat_id"])
    assert columns["sender_id"] == "delete"
    assert told["tables"]["likes"]["columns"]["message_id"] == "delete"


def test_what_one_has_said_about_another_may_be_needed(company):
    told = drafted(
        company,
        TENANTS,
        "CREATE TABLE complaints (id integer PRIMARY KEY,"
        " complainant_id integer NOT NULL REFERENCES tenants,"
        " about_tenant_id integer NOT NULL REFERENCES tenants, body text)",
    )
    columns = told["tables"]["complaints"]["columns"]
    assert "evidence" in review(columns["about_tenant_id"])


PERSONS = "CREATE TABLE person (id integer PRIMARY KEY, family_name text, given_names text, birth_date date)"
STUDENTS = (
    "CREATE TABLE student (id integer PRIMARY KEY REFERENCES person, tutor_id integer REFERENCES lecturer,"
    " emergency_name text, matric_no varchar(40))"
)
LECTURERS = "CREATE TABLE lecturer (id integer PRIMARY KEY REFERENCES person, office varchar(10))"


def test_students_are_not_their_tutors_and_courses_not_their_convenors(company):
    told = drafted(
        company,
        PERSONS,
        LECTURERS,
        STUDENTS,
        "CREATE TABLE course (id integer PRIMARY KEY, title text, convenor_id integer REFERENCES lecturer)",
        "CREATE TABLE essay (id integer PRIMARY KEY, student_id integer NOT NULL REFERENCES student,"
        " second_marker integer REFERENCES lecturer, author_id integer REFERENCES lecturer, body text)",
    )
    assert told["tables"]["student"]["link"] == {"to": "person", "on": {"id": "id"}}
    assert told["tables"]["essay"]["link"] == {"to": "student", "on": {"student_id": "id"}}
    assert "link" not in told["tables"]["course"]


def test_what_extends_a_persons_row_is_about_them(company):
    told = drafted(
        company,
        PERSONS,
        LECTURERS,
        STUDENTS,
        "CREATE TABLE invoices (id integer PRIMARY KEY, student_id integer NOT NULL REFERENCES student)",
    )
    columns = told["tables"]["student"]["columns"]
    assert columns["emergency_name"] == {"anonymise": None}
    assert "others may know the person" in review(columns["matric_no"])


def test_who_reported_somebody_does_not_own_the_case(company):
    told = drafted(
        company,
        PERSONS,
        "CREATE TABLE hearings (id integer PRIMARY KEY, person_id integer NOT NULL REFERENCES person,"
        " reported_by integer REFERENCES person, summary text)",
    )
    assert told["tables"]["hearings"]["link"] == {"to": "person", "on": {"person_id": "id"}}


def test_who_offers_something_does_not_own_what_others_book(company):
    told = drafted(
        company,
        TENANTS,
        "CREATE TABLE gigs (id integer PRIMARY KEY, owner_id integer NOT NULL REFERENCES tenants, t text)",
        "CREATE TABLE bookings (id integer PRIMARY KEY, tenant_id integer REFERENCES tenants,"
        " gig_id integer NOT NULL REFERENCES gigs, total integer)",
    )
    assert told["tables"]["bookings"]["link"] == {"to": "tenants", "on": {"tenant_id": "id"}}


def test_who_changed_a_row_does_not_own_its_history(company):
    told = drafted(
        company,
        TENANTS,
        "CREATE TABLE wishes (id integer PRIMARY KEY, tenant_id integer NOT NULL REFERENCES tenants)",
        "CREATE TABLE historicalwishes (history_id integer PRIMARY KEY, id integer NOT NULL, wish text,"
        " history_tenant_id integer REFERENCES tenants)",
        THREE_TENANTS,
        "INSERT INTO wishes VALUES (5, 1), (6, 2)",
        "INSERT INTO historicalwishes VALUES (1, 5, 'x', 3), (2, 6, 'y', 3)",
    )
    assert told["tables"]["historicalwishes"]["link"] == {"to": "wishes", "on": {"id": "id"}}


def test_a_guest_of_a_booking_is_no_subject(company):
    told = drafted(
        company,
        TENANTS,
        "CREATE TABLE bookings (id integer PRIMARY KEY, tenant_id integer REFERENCES tenants)",
        "CREATE TABLE guests (id integer PRIMARY KEY, booking_id integer NOT NULL REFERENCES bookings,"
        " name text, email text)",
    )
    assert told["subject"]["table"] == "tenants"
    assert told["tables"]["guests"]["link"] == {"to": "bookings", "on": {"booking_id": "id"}}


def test_the_profile_of_an_app_called_shop_is_no_shop(company):
    told = drafted(
        company,
        TENANTS,
        "CREATE TABLE shop_profile (id integer PRIMARY KEY, phone text, born date,"
        " tenant_id integer NOT NULL UNIQUE REFERENCES tenants)",
    )
    assert told["tables"]["shop_profile"]["link"] == {"to": "tenants", "on": {"tenant_id": "id"}}


def test_a_venue_with_an_address_to_write_to_is_nobodys_home(company):
    told = drafted(
        company,
        TENANTS,
        "CREATE TABLE venues (id integer PRIMARY KEY, name text, street text, city text, contact_email text)",
        "CREATE TABLE parties (id integer PRIMARY KEY, tenant_id integer NOT NULL REFERENCES tenants,"
        " venue_id integer REFERENCES venues)",
    )
    assert "street, contact_email look personal" in told["review"]["venues"]


def test_a_ticket_is_that_of_who_opened_it_and_not_of_who_works_on_it(company):
    told = drafted(
        company,
        "CREATE TABLE customers (account_no varchar(12) PRIMARY KEY, full_name text, email varchar(60))",
        "CREATE TABLE employees (emp_id integer PRIMARY KEY, full_name varchar(60), email varchar(60))",
        "CREATE TABLE tickets (id integer PRIMARY KEY, opened_by varchar(12),"
        " emp_id integer REFERENCES employees, body text)",
        *(f"INSERT INTO customers VALUES ('A70000{n}', 'Ida {n}', 'i{n}@x.example')" for n in range(5)),
        *(f"INSERT INTO employees VALUES ({n}, 'Ann {n}', 'a{n}@us.example')" for n in range(5)),
        *(f"INSERT INTO tickets VALUES ({n}, 'A70000{n}', {n % 2}, 'No power.')" for n in range(5)),
    )
    assert told["tables"]["tickets"]["link"] == {"to": "customers", "on": {"opened_by": "account_no"}}
