"""`draft_map`: what it makes of schemas, one habit of companies after the other."""

from __future__ import annotations

import re
import string

import pytest
from decide_draft import decided
from read_draft import drafted, read, review

from effaced.core.errors import ConfigurationError
from effaced.draft.draft import draft_map

ONLY_SQLITE = pytest.mark.parametrize("company_database", ["sqlite"], indirect=True)
ONLY_POSTGRES = pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)
PEOPLE = (
    "CREATE TABLE customers (id integer PRIMARY KEY, email varchar(60) NOT NULL UNIQUE, name varchar(60))"
)
INVOICES = (
    "CREATE TABLE invoices (id integer PRIMARY KEY, user_id integer NOT NULL REFERENCES users, buyer text)"
)
THREE = (
    "INSERT INTO customers VALUES (1, 'a@x.example', 'A'), (2, 'b@x.example', 'B'), (3, 'c@x.example', 'C')"
)


# --- people ------------------------------------------------------------------------------------------


def test_the_table_of_people_is_the_one_others_point_at(company):
    told = drafted(
        company,
        "CREATE TABLE tbl_client (client_no integer PRIMARY KEY, surname varchar(40), dob date)",
        "CREATE TABLE orders (id integer PRIMARY KEY, client_no integer REFERENCES tbl_client)",
        "CREATE TABLE products (id integer PRIMARY KEY, name varchar(40))",
    )
    assert told["subject"] == {"table": "tbl_client", "key": "client_no"}
    assert told["not_personal"] == ["products"]


def test_customers_and_employees_are_two_kinds_of_people(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE employees (no integer PRIMARY KEY, first_name varchar(40), last_name varchar(40))",
    )
    assert {kind: each["table"] for kind, each in told["subjects"].items()} == {
        "customer": "customers",
        "employee": "employees",
    }


def test_people_who_are_known_through_somebody_are_no_subject(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE contact_persons (id integer PRIMARY KEY,"
        " customer_id integer NOT NULL REFERENCES customers,"
        " first_name varchar(40), last_name varchar(40), email varchar(60))",
    )
    assert told["subject"]["table"] == "customers"
    assert told["tables"]["contact_persons"]["link"] == {"to": "customers", "on": {"customer_id": "id"}}


@ONLY_SQLITE
def test_shops_and_programs_with_an_address_are_no_people(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE kiosks (id integer PRIMARY KEY, name text, email text, phone text)",
        "CREATE TABLE oauth_clients (id integer PRIMARY KEY, name text, secret text)",
        "CREATE TABLE sales_a (id integer PRIMARY KEY, kiosk_id integer REFERENCES kiosks)",
        "CREATE TABLE sales_b (id integer PRIMARY KEY, kiosk_id integer REFERENCES kiosks)",
    )
    assert told["subject"] == {"table": "customers", "key": "id"}


@ONLY_SQLITE
def test_where_no_word_is_known_addresses_tell_who_may_be_meant(company):
    company.run(
        "CREATE TABLE vasarlok (id integer PRIMARY KEY, elerhetoseg text, nev text, login text)",
        "CREATE TABLE rendeles (id integer PRIMARY KEY, vasarlok_id integer REFERENCES vasarlok)",
        "INSERT INTO vasarlok VALUES (1, 'a@x.example', 'A', 'a'), (2, 'b@x.example', 'B', 'b')",
    )
    with pytest.raises(ConfigurationError, match="Closest: vasarlok"):
        draft_map(company.session.connection())


def test_a_subject_can_be_named(company):
    told = drafted(
        company, PEOPLE, "CREATE TABLE parties (id integer PRIMARY KEY, label text)", subjects=["parties"]
    )
    assert told["subject"] == {"table": "parties", "key": "id"}


def test_a_database_without_people_is_told_so(company):
    company.run("CREATE TABLE products (id integer PRIMARY KEY, name text)")
    with pytest.raises(ConfigurationError, match="--subject"):
        draft_map(company.session.connection())


def test_a_subject_that_is_not_there_is_refused(company):
    company.run(PEOPLE)
    with pytest.raises(ConfigurationError, match="no table 'persons'"):
        draft_map(company.session.connection(), subjects=["persons"])


def test_identifiers_and_references_are_proposed(company):
    told = drafted(
        company,
        "CREATE TABLE users (id integer PRIMARY KEY, mail text, phone text, login text, stripe_user_id text)",
    )
    assert told["identifiers"] == {"email": "mail", "phone": "phone", "username": "login"}
    assert told["refs"] == {"stripe_user": "stripe_user_id"}


# --- links -------------------------------------------------------------------------------------------


def test_links_follow_foreign_keys_over_any_number_of_hops(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE carts (id integer PRIMARY KEY, customer_id integer REFERENCES customers)",
        "CREATE TABLE cart_items (id integer PRIMARY KEY, cart_id integer REFERENCES carts)",
        "CREATE TABLE notes (id integer PRIMARY KEY, cart_item_id integer REFERENCES cart_items, body text)",
    )
    assert told["tables"]["notes"]["link"] == {"to": "cart_items", "on": {"cart_item_id": "id"}}


def test_a_well_named_column_is_a_link_if_its_values_are_found(company):
    told = drafted(
        company,
        PEOPLE,
        THREE,
        'CREATE TABLE wishes (id integer PRIMARY KEY, "customerId" integer, body text)',
        "INSERT INTO wishes VALUES (1, 1, 'x'), (2, 3, 'y')",
    )
    assert told["tables"]["wishes"]["link"] == {"to": "customers", "on": {"customerId": "id"}}
    assert told["tables"]["wishes"]["columns"]["customerId"] == "delete"


def test_a_well_named_column_is_no_link_if_its_values_are_not_found(company):
    told = drafted(
        company,
        PEOPLE,
        THREE,
        "CREATE TABLE wishes (id integer PRIMARY KEY, customer_id integer)",
        "INSERT INTO wishes VALUES (1, 70), (2, 71)",
    )
    assert "wishes" not in told["tables"]
    assert "customer_id looks personal" in told["review"]["wishes"]


def test_a_link_that_not_every_value_bears_out_is_for_review(company):
    told = drafted(
        company,
        PEOPLE,
        THREE,
        "CREATE TABLE wishes (id integer PRIMARY KEY, customer_id integer)",
        "INSERT INTO wishes VALUES (1, 1), (2, 2), (3, 99)",
    )
    assert "2 of 3 sampled values" in review(told["tables"]["wishes"]["columns"]["customer_id"])


def test_rows_that_know_a_person_by_e_mail_are_linked_by_it(company):
    told = drafted(
        company,
        PEOPLE,
        THREE,
        "CREATE TABLE newsletter (email varchar(60) PRIMARY KEY, source text)",
        "INSERT INTO newsletter VALUES ('a@x.example', 'fair'), ('z@x.example', 'fair')",
    )
    assert told["tables"]["newsletter"]["link"] == {"to": "customers", "on": {"email": "email"}}


def test_a_link_by_e_mail_that_no_row_bears_out_is_for_review(company):
    told = drafted(company, PEOPLE, "CREATE TABLE newsletter (email varchar(60) PRIMARY KEY)")
    assert "no row to see" in review(told["tables"]["newsletter"]["columns"]["email"])


@ONLY_SQLITE
def test_mail_is_linked_by_the_address_whatever_its_column_is_called(company):
    told = drafted(
        company,
        PEOPLE,
        THREE,
        "CREATE TABLE mails (id integer PRIMARY KEY, to_address varchar(60), from_address varchar(60))",
        "INSERT INTO mails VALUES (1, 'a@x.example', 'us@x.example'), (2, 'us@x.example', 'b@x.example')",
    )
    assert told["tables"]["mails"]["link"] == [
        {"to": "customers", "on": {"to_address": "email"}},
        {"to": "customers", "on": {"from_address": "email"}},
    ]


@ONLY_SQLITE
def test_rows_that_know_a_person_by_another_number_are_linked_by_it(company):
    told = drafted(
        company,
        "CREATE TABLE customers (id integer PRIMARY KEY, email text, card_no varchar(10) UNIQUE)",
        "CREATE TABLE notes (customer_id integer PRIMARY KEY, body text)",
        "CREATE TABLE entries (id integer PRIMARY KEY, card_no varchar(10), gate text)",
        "INSERT INTO customers VALUES (1, 'a@x.example', 'C1'), (2, 'b@x.example', 'C2')",
        "INSERT INTO entries VALUES (1, 'C1', 'N'), (2, 'C2', 'S')",
    )
    assert told["tables"]["entries"]["link"] == {"to": "customers", "on": {"card_no": "card_no"}}
    assert told["tables"]["notes"]["link"] == {"to": "customers", "on": {"customer_id": "id"}}


@ONLY_SQLITE
def test_made_up_ids_of_people_point_at_them_whatever_the_column_is_called(company):
    one, two = (f"a0000000-0000-4000-8000-00000000000{digit}" for digit in "12")
    told = drafted(
        company,
        "CREATE TABLE users (id varchar(36) PRIMARY KEY, email text)",
        "CREATE TABLE answers (id integer PRIMARY KEY, zork varchar(36), body text)",
        f"INSERT INTO users VALUES ('{one}', 'a@x.example'), ('{two}', 'b@x.example')",
        f"INSERT INTO answers VALUES (1, '{one}', 'x'), (2, '{two}', 'y')",
    )
    assert told["tables"]["answers"]["link"] == {"to": "users", "on": {"zork": "id"}}


@ONLY_SQLITE
def test_what_several_have_together_goes_with_the_last_of_them(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE bookings (ref varchar(8) PRIMARY KEY, arrival date)",
        "CREATE TABLE booking_guests (customer_id integer REFERENCES customers,"
        " booking_ref varchar(8) REFERENCES bookings, PRIMARY KEY (customer_id, booking_ref))",
        "CREATE TABLE posts (id integer PRIMARY KEY, author integer NOT NULL REFERENCES customers)",
        "CREATE TABLE likes (customer_id integer REFERENCES customers, post_id integer REFERENCES posts,"
        " PRIMARY KEY (customer_id, post_id))",
    )
    assert told["tables"]["bookings"]["link"] == {"from": "booking_guests", "on": {"ref": "booking_ref"}}
    assert told["tables"]["posts"]["link"] == {"to": "customers", "on": {"author": "id"}}


@ONLY_SQLITE
def test_who_examines_or_is_followed_through_a_row_of_the_same_key(company):
    told = drafted(
        company,
        "CREATE TABLE persons (id integer PRIMARY KEY, first_name text, email text)",
        "CREATE TABLE employees (id integer PRIMARY KEY REFERENCES persons, salary integer)",
        "CREATE TABLE exams (id integer PRIMARY KEY, person_id integer NOT NULL REFERENCES persons,"
        " examiner_id integer REFERENCES employees, grade text)",
        "CREATE TABLE follows (follower_id integer REFERENCES persons,"
        " followee_id integer REFERENCES persons, PRIMARY KEY (follower_id, followee_id))",
    )
    assert told["tables"]["exams"]["link"] == {"to": "persons", "on": {"person_id": "id"}}
    assert told["tables"]["exams"]["mentions"][0]["on"] == {"examiner_id": "id"}
    assert len(told["tables"]["follows"]["link"]) == 2


def test_a_number_that_may_be_another_number_is_for_review(company):
    told = drafted(
        company, PEOPLE, "CREATE TABLE wishes (id integer PRIMARY KEY, customer_number integer, body text)"
    )
    assert "too few values" in review(told["tables"]["wishes"]["columns"]["customer_number"])


@pytest.mark.parametrize(
    ("kind", "own"), [("owner_type", "owner_id"), ("owner_kind", "owner_ref"), ("table_name", "row_id")]
)
def test_a_class_and_an_id_of_it_become_a_condition(company, kind, own):
    """Without it, the depot's note number two would go with the second customer."""
    told = drafted(
        company,
        PEOPLE,
        THREE,
        f"CREATE TABLE notes (id integer PRIMARY KEY, {kind} varchar(20), {own} integer, body text)",
        "INSERT INTO notes VALUES (1, 'Customer', 1, 'x'), (2, 'Customer', 2, 'y'), (3, 'Depot', 2, 'z')",
    )
    assert told["tables"]["notes"]["link"] == {
        "to": "customers",
        "on": {own: "id"},
        "where": {kind: "Customer"},
    }


def test_djangos_content_types_are_looked_up_and_compared_as_texts(company):
    told = drafted(
        company,
        PEOPLE,
        THREE,
        "CREATE TABLE django_content_type (id integer PRIMARY KEY, app_label text, model text)",
        "CREATE TABLE tagged (id integer PRIMARY KEY, content_type_id integer, object_id text, tag text)",
        "INSERT INTO django_content_type VALUES (4, 'shop', 'customer'), (5, 'shop', 'product')",
        "INSERT INTO tagged VALUES (1, 4, '1', 'x'), (2, 5, '77', 'y')",
    )
    link = told["tables"]["tagged"]["link"]
    assert (link["to"], link["on"], link["as"]) == ("customers", {"object_id": "id"}, "text")
    assert str(link["where"]["content_type_id"]) == "4"


def test_what_a_person_points_at_is_theirs_if_it_is_private(company):
    told = drafted(
        company,
        "CREATE TABLE addresses (id integer PRIMARY KEY, street text, city text)",
        "CREATE TABLE groups (id integer PRIMARY KEY, label text)",
        "CREATE TABLE customers (id integer PRIMARY KEY, email text, address_id integer REFERENCES addresses,"
        " group_id integer REFERENCES groups)",
    )
    assert told["tables"]["addresses"]["link"] == {"from": "customers", "on": {"id": "address_id"}}
    assert told["not_personal"] == ["groups"]


def test_who_referred_or_manages_somebody_is_only_mentioned(company):
    told = drafted(
        company,
        "CREATE TABLE users (id integer PRIMARY KEY, email text, referred_by integer REFERENCES users)",
    )
    assert told["tables"]["users"]["mentions"] == [
        {"to": "users", "on": {"referred_by": "id"}, "columns": {"referred_by": {"anonymise": None}}}
    ]


def test_a_ticket_is_the_customers_and_only_names_who_works_on_it(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE staff (id integer PRIMARY KEY, full_name text, email text)",
        "CREATE TABLE tickets (id integer PRIMARY KEY, customer_id integer REFERENCES customers,"
        " assignee_id integer REFERENCES staff, body text)",
    )
    tickets = told["tables"]["tickets"]
    assert tickets["link"] == {"to": "customers", "on": {"customer_id": "id"}}
    assert [each["to"] for each in tickets["mentions"]] == ["staff"]


def test_a_message_is_the_senders(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE messages (id integer PRIMARY KEY, sender_id integer NOT NULL REFERENCES customers,"
        " recipient_id integer REFERENCES customers, body text)",
    )
    assert told["tables"]["messages"]["link"] == {"to": "customers", "on": {"sender_id": "id"}}
    assert told["tables"]["messages"]["mentions"][0]["on"] == {"recipient_id": "id"}


def test_an_organisation_that_people_share_is_nobodys(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE spaces (id integer PRIMARY KEY, owner_id integer REFERENCES customers, label text)",
        "CREATE TABLE members_of (customer_id integer REFERENCES customers,"
        " space_id integer REFERENCES spaces, PRIMARY KEY (customer_id, space_id))",
        "CREATE TABLE pages (id integer PRIMARY KEY, space_id integer REFERENCES spaces, body text)",
    )
    assert "link" not in told["tables"]["spaces"]
    assert told["tables"]["members_of"]["link"]["to"] == "customers"
    assert told["not_personal"] == ["pages"]


def test_folders_below_a_persons_folder_are_theirs_too(company):
    told = drafted(
        company,
        PEOPLE,
        THREE,
        "CREATE TABLE folders (id integer PRIMARY KEY, owner_id integer REFERENCES customers,"
        " parent_id integer REFERENCES folders, label text)",
        "INSERT INTO folders VALUES (1, 1, NULL, 'x'), (2, NULL, 1, 'y')",
    )
    assert {"to": "folders", "on": {"parent_id": "id"}} in told["tables"]["folders"]["link"]


def test_answers_of_others_only_let_go_of_a_deleted_comment(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE comments (id integer PRIMARY KEY, author_id integer NOT NULL REFERENCES customers,"
        " parent_id integer REFERENCES comments, body text)",
    )
    assert told["tables"]["comments"]["link"]["on"] == {"author_id": "id"}
    assert told["tables"]["comments"]["mentions"][0]["columns"] == {"parent_id": {"anonymise": None}}


def test_rows_that_point_at_each_other_belong_one_way(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE carts (id integer PRIMARY KEY, customer_id integer REFERENCES customers, draft_id int)",
        "CREATE TABLE drafts (id integer PRIMARY KEY, cart_id integer REFERENCES carts)",
    )
    assert told["tables"]["carts"]["link"]["to"] == "customers"
    assert told["tables"]["drafts"]["link"]["to"] == "carts"


def test_a_personal_looking_table_that_nothing_leads_to_is_for_review(company):
    told = drafted(
        company, PEOPLE, "CREATE TABLE callers (id integer PRIMARY KEY, phone text, called_at text)"
    )
    assert "phone" in told["review"]["callers"]


@ONLY_SQLITE
def test_a_review_of_a_table_says_how_it_could_be_linked(company):
    told = drafted(
        company,
        PEOPLE,
        THREE,
        "CREATE TABLE invites (id integer PRIMARY KEY, email varchar(60))",
        "INSERT INTO invites VALUES (1, 'new@x.example')",
    )
    assert "link it: {to: customers, on: {email: email}}" in told["review"]["invites"]


def test_values_alone_can_make_a_table_personal(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE misc (id integer PRIMARY KEY, val text)",
        "INSERT INTO misc VALUES (1, 'who@knows.example')",
    )
    assert "val" in told["review"]["misc"]


@ONLY_SQLITE
def test_an_owner_that_no_row_tells_is_for_review(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE tokens (id integer PRIMARY KEY, owner_type text, owner_id integer, label text)",
    )
    assert "no row tells" in told["review"]["tokens"]


@ONLY_SQLITE
def test_one_address_in_common_makes_no_supplier_a_customers(company):
    told = drafted(
        company,
        PEOPLE,
        THREE,
        "CREATE TABLE makers (id integer PRIMARY KEY, contact_email varchar(60))",
        "CREATE TABLE wares (id integer PRIMARY KEY, maker_id integer REFERENCES makers)",
        "INSERT INTO makers VALUES (1, 'a@x.example'), (2, 'm@m.example')",
    )
    assert "makers" in told["review"]
    assert told["not_personal"] == ["wares"]


# --- rows and columns --------------------------------------------------------------------------------


def test_rows_that_nothing_keeps_go(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE visits (id integer PRIMARY KEY, customer_id integer REFERENCES customers)",
    )
    assert told["tables"]["customers"]["columns"] == {
        "id": "not_personal",
        "email": "delete",
        "name": "delete",
    }


def test_invoices_are_kept_once_somebody_has_named_the_law(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE invoices (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers,"
        " buyer_name text, total numeric(9, 2), issued_on date NOT NULL, note text)",
    )
    columns = told["tables"]["invoices"]["columns"]
    assert 'until: "issued_on + 10 years"' in review(columns["total"])
    assert columns["total"] == columns["customer_id"] == columns["buyer_name"]
    assert columns["note"] == "delete"


def test_a_record_that_kept_rows_belong_to_gets_no_end(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer REFERENCES customers, made date)",
        "CREATE TABLE payments (id integer PRIMARY KEY, order_id integer REFERENCES orders, paid date)",
    )
    assert "until" not in review(told["tables"]["orders"]["columns"]["made"])
    assert "paid + 10 years" in review(told["tables"]["payments"]["columns"]["paid"])


def test_people_whose_invoices_are_kept_stay_without_a_name(company):
    told = drafted(
        company,
        "CREATE TABLE customers (id integer PRIMARY KEY, email varchar(60) NOT NULL UNIQUE,"
        " login varchar(30) UNIQUE NOT NULL, first_name varchar(60) NOT NULL,"
        " born date NOT NULL, phone text, active boolean NOT NULL)",
        "CREATE TABLE invoices (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers,"
        " buyer_name text)",
    )
    assert told["tables"]["customers"]["columns"] == {
        "id": "not_personal",
        "email": {"anonymise": "random_email"},
        "login": {"anonymise": "random_unique"},
        "first_name": {"anonymise": "fixed_text"},
        "born": {"anonymise": "truncated_date"},
        "phone": {"anonymise": None},
        "active": "not_personal",
    }


def test_an_invoice_without_a_name_needs_the_customers(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE invoices (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers)",
    )
    assert "of no use without it" in review(told["tables"]["customers"]["columns"]["name"])


def test_a_pointer_that_cannot_be_null_lets_the_person_stay(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE articles (id integer PRIMARY KEY, approved_by integer NOT NULL REFERENCES customers)",
    )
    assert told["tables"]["customers"]["columns"]["email"] == {"anonymise": "random_email"}
    assert told["not_personal"] == ["articles"]


def test_what_a_column_of_a_staying_row_holds_is_for_review_if_nobody_knows(company):
    told = drafted(
        company,
        "CREATE TABLE users (id integer PRIMARY KEY, email text, zork text, points integer)",
        INVOICES,
    )
    assert "suggestion: {anonymise: null}" in review(told["tables"]["users"]["columns"]["zork"])
    assert told["tables"]["users"]["columns"]["points"] == "not_personal"


def test_generated_columns_are_derived(company):
    told = drafted(
        company,
        "CREATE TABLE users (id integer PRIMARY KEY, email text,"
        " folded text GENERATED ALWAYS AS (lower(email)) STORED)",
    )
    assert told["tables"]["users"]["columns"]["folded"] == "derived"


def test_json_is_named_by_the_paths_that_were_seen(company):
    kind = "jsonb" if company.engine == "postgresql" else "json"
    told = drafted(
        company,
        f"CREATE TABLE users (id integer PRIMARY KEY, email text, extra {kind} NOT NULL)",
        INVOICES,
        "INSERT INTO users VALUES"
        """ (1, 'a@x.example', '{"theme": "dark", "contacts": [{"phone": "+49 40 555123"}]}')""",
    )
    assert told["tables"]["users"]["columns"]["extra"] == {"json": {"$.contacts[*].phone": "delete"}}


def test_keys_of_json_that_may_be_names_are_not_written_down(company):
    kind = "jsonb" if company.engine == "postgresql" else "json"
    company.run(
        f"CREATE TABLE users (id integer PRIMARY KEY, email text, extra {kind} NOT NULL)",
        INVOICES,
        """INSERT INTO users VALUES (1, 'a@x.example', '{"Wilhelmine": {"phone": "+49 40 555123"}}')""",
    )
    text = draft_map(company.session.connection()).text
    assert "Wilhelmine" not in text
    assert "keys that vary" in text


def test_names_that_yaml_would_misread_are_quoted(company):
    told = drafted(
        company,
        'CREATE TABLE users (id integer PRIMARY KEY, email text, "on" text, "a: b" text, "größe" text)',
    )
    assert list(told["tables"]["users"]["columns"]) == ["id", "email", "on", "a: b", "größe"]


@ONLY_POSTGRES
def test_views_are_left_alone_and_partitions_go_through_their_parent(company):
    told = drafted(
        company,
        PEOPLE,
        "CREATE TABLE visits (customer_id integer REFERENCES customers, day date) PARTITION BY RANGE (day)",
        "CREATE TABLE visits_1 PARTITION OF visits FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",
        "CREATE VIEW names AS SELECT name FROM customers",
    )
    assert list(told["tables"]) == ["customers", "visits"]


@ONLY_POSTGRES
def test_schemas_that_are_not_looked_at_are_named(company):
    company.run(PEOPLE, "CREATE SCHEMA crm", "CREATE TABLE crm.leads (id integer PRIMARY KEY, email text)")
    assert "# Not looked at: tables in crm;" in draft_map(company.session.connection()).text
    with pytest.raises(ConfigurationError, match="no schema 'nope'"):
        draft_map(company.session.connection(), schemas=["nope"])


@ONLY_POSTGRES
def test_tables_that_may_not_be_read_are_named_and_guessed_by_their_names(company):
    company.run(
        PEOPLE,
        "CREATE TABLE visits (id integer PRIMARY KEY, customer_id integer)",
        "CREATE ROLE effaced_limited",
        "GRANT SELECT ON customers TO effaced_limited",
        "SET LOCAL ROLE effaced_limited",
    )
    answer = draft_map(company.session.connection())
    assert answer.unread == ("visits",)
    assert "# No row could be read of visits:" in answer.text
    assert "{to: customers, on: {customer_id: id}}" in answer.text
    company.run("RESET ROLE")


# --- values stay where they are ----------------------------------------------------------------------


def test_no_value_is_ever_written_down(company):
    canary = "Zq" + string.ascii_lowercase
    company.run(
        "CREATE TABLE users (id integer PRIMARY KEY, email text UNIQUE, name text, zork text, kind_type text,"
        " kind_id integer)",
        "CREATE TABLE invoices (id integer PRIMARY KEY, user_id integer NOT NULL REFERENCES users,"
        " owner_type text, owner_id integer, email text, body text)",
        f"INSERT INTO users VALUES (1, '{canary}@x.example', '{canary}', '{canary}', '{canary}', 1)",
        f"INSERT INTO invoices VALUES (1, 1, '{canary}', 1, '{canary}@x.example', '{canary} was here')",
    )
    assert canary not in draft_map(company.session.connection()).text


def readings(sent: list[str]) -> list[str]:
    """The statements that read rows; finding out a collation reads none."""
    return [each for each in sent if re.search(r"FROM (customers|visits)\b", each) and "0 = 1" not in each]


def test_each_table_is_read_once_and_never_further_than_it_says(company):
    company.run(PEOPLE, THREE, "CREATE TABLE visits (id integer PRIMARY KEY, customer_id integer)")
    with company.statements() as sent:
        draft_map(company.session.connection(), sample_rows=2)
    assert len(readings(sent)) == 2
    assert all("LIMIT" in each and "WHERE" not in each for each in readings(sent))


def test_without_samples_no_row_is_read(company):
    company.run(PEOPLE, THREE, "CREATE TABLE visits (id integer PRIMARY KEY, customer_id integer)")
    with company.statements() as sent:
        text = draft_map(company.session.connection(), sample_rows=0).text
    assert readings(sent) == []
    assert "{to: customers, on: {customer_id: id}}" in text


def test_suggestions_can_be_taken_as_they_are(company):
    company.run(PEOPLE, "CREATE TABLE callers (id integer PRIMARY KEY, phone text)")
    assert "review" not in read(decided(draft_map(company.session.connection()).text))
