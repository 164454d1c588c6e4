"""`draft_map`: which tables are a kind of people, and what about each of them must not stay."""

from __future__ import annotations

from read_draft import drafted, review

from effaced.draft.draft import draft_map

USERS = "CREATE TABLE users (id integer PRIMARY KEY, email varchar(60) NOT NULL UNIQUE, name varchar(60))"
THREE = "INSERT INTO users VALUES (1, 'a@x.example', 'A'), (2, 'b@x.example', 'B'), (3, 'c@x.example', 'C')"
ORDERS = "CREATE TABLE orders (id integer PRIMARY KEY, user_id integer NOT NULL REFERENCES users)"


def test_subscribers_who_all_are_users_are_no_people_of_their_own(company):
    told = drafted(
        company,
        USERS,
        THREE,
        ORDERS,
        "CREATE TABLE subscribers (email varchar(60) PRIMARY KEY, first_name varchar(40))",
        "INSERT INTO subscribers VALUES ('a@x.example', 'A'), ('b@x.example', 'B'), ('c@x.example', 'C')",
    )
    assert told["subject"] == {"table": "users", "key": "id"}
    assert told["tables"]["subscribers"]["link"] == {"to": "users", "on": {"email": "email"}}


def test_people_whom_nothing_could_find_belong_to_what_they_hang_on(company):
    told = drafted(
        company,
        USERS,
        "CREATE TABLE policies (id integer PRIMARY KEY, user_id integer NOT NULL REFERENCES users)",
        "CREATE TABLE beneficiaries (id integer PRIMARY KEY, policy_id integer REFERENCES policies,"
        " full_name varchar(60), birth_date date)",
    )
    assert told["subject"]["table"] == "users"
    assert told["tables"]["beneficiaries"]["link"] == {"to": "policies", "on": {"policy_id": "id"}}


def test_logins_that_hold_keys_of_people_are_offered_a_link(company):
    told = drafted(
        company,
        "CREATE TABLE contacts (cont_id integer PRIMARY KEY, first_name text, last_name text, eml text)",
        "INSERT INTO contacts VALUES (1001, 'A', 'A', 'a@x.example'), (1002, 'B', 'B', 'b@x.example'),"
        " (1003, 'C', 'C', 'c@x.example')",
        "CREATE TABLE gifts (id integer PRIMARY KEY, cont_id integer)",
        "CREATE TABLE web_logins (id integer PRIMARY KEY, pw varchar(60), crm_ref varchar(20))",
        "INSERT INTO web_logins VALUES (1, '-', '1001'), (2, '-', '1002'), (3, '-', '1003')",
    )
    logins = told["tables"]["web_logins"]
    assert logins["link"] == {"to": "contacts", "on": {"crm_ref": "cont_id"}, "as": "text"}
    assert "only its values say so" in review(logins["columns"]["crm_ref"])


def test_a_runner_up_says_why_it_was_not_chosen(company):
    company.run(
        USERS,
        ORDERS,
        "CREATE TABLE accounts (id integer PRIMARY KEY, created_by integer REFERENCES users, name text,"
        " email varchar(60), phone text)",
    )
    text = " ".join(draft_map(company.session.connection()).text.replace("\n#", "").split())
    assert "but nothing in it that only people have" in text


def test_what_no_two_people_share_is_not_called_a_setting(company):
    told = drafted(
        company,
        "CREATE TABLE users (id integer PRIMARY KEY, email varchar(60) UNIQUE, name text,"
        " referral_code varchar(40) UNIQUE)",
        ORDERS,
    )
    assert "others may know the person by it" in review(told["tables"]["users"]["columns"]["referral_code"])


def test_numbers_with_a_plus_are_telephones_whatever_their_name(company):
    told = drafted(
        company,
        "CREATE TABLE users (id integer PRIMARY KEY, email varchar(60) UNIQUE, name varchar(60), c3 text)",
        "INSERT INTO users VALUES (1, 'a@x.example', 'A', '+49 30 5550137')",
        ORDERS,
    )
    assert told["tables"]["users"]["columns"]["c3"] == {"anonymise": None}


def test_contacts_of_an_organisation_are_people_and_not_their_maker_s(company):
    told = drafted(
        company,
        USERS,
        ORDERS,
        "CREATE TABLE organisations (id integer PRIMARY KEY, plan varchar(10))",
        "CREATE TABLE contacts (id integer PRIMARY KEY, org_id integer REFERENCES organisations,"
        " created_by integer REFERENCES users, name text, email varchar(60), phone text)",
    )
    assert told["subjects"]["contact"]["table"] == "contacts"
    assert "link" not in told["tables"]["contacts"]


def test_contacts_of_a_person_are_that_person_s(company):
    told = drafted(
        company,
        USERS,
        ORDERS,
        "CREATE TABLE contacts (id integer PRIMARY KEY, user_id integer REFERENCES users, name text,"
        " email varchar(60), phone text)",
    )
    assert told["subject"]["table"] == "users"
    assert told["tables"]["contacts"]["link"][0] == {"to": "users", "on": {"user_id": "id"}}


def test_the_same_addresses_in_two_kinds_of_people_are_for_a_person_to_decide(company):
    told = drafted(
        company,
        USERS,
        THREE,
        ORDERS,
        "CREATE TABLE payers (id integer PRIMARY KEY, full_name text, birth_date date, email varchar(60))",
        "INSERT INTO payers VALUES (1, 'A', NULL, 'a@x.example'), (2, 'B', NULL, 'b@x.example')",
        "CREATE TABLE cards (id integer PRIMARY KEY, payer_id integer NOT NULL REFERENCES payers)",
    )
    assert "are in users.email too" in review(told["tables"]["payers"]["columns"]["email"])


def test_texts_that_are_keys_of_people_point_at_them_whatever_they_are_called(company):
    told = drafted(
        company,
        "CREATE TABLE customers (account_no varchar(12) PRIMARY KEY, email varchar(60), last_name text)",
        "INSERT INTO customers VALUES ('A700001', 'a@x.example', 'A'), ('A700002', 'b@x.example', 'B'),"
        " ('A700003', 'c@x.example', 'C')",
        "CREATE TABLE dunning (id integer PRIMARY KEY, acct varchar(12), letter varchar(200))",
        "INSERT INTO dunning VALUES (1, 'A700001', 'x'), (2, 'A700002', 'y'), (3, 'A700003', 'z')",
    )
    assert told["tables"]["dunning"]["link"] == {"to": "customers", "on": {"acct": "account_no"}}
    assert "only its values say so" in review(told["tables"]["dunning"]["columns"]["acct"])


def test_a_number_in_a_passport_is_the_passport_s(company):
    told = drafted(
        company,
        "CREATE TABLE users (id integer PRIMARY KEY, email varchar(60) UNIQUE, name text, kyc json)",
        """INSERT INTO users VALUES (1, 'a@x.example', 'A', '{"passport": {"number": "X1"}, "no": "7"}')""",
        ORDERS,
    )
    assert told["tables"]["users"]["columns"]["kyc"] == {"json": {"$.passport.number": "delete"}}
