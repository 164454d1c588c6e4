"""`draft_map`: what a hurried look at a schema misses."""

from __future__ import annotations

import pytest
from read_draft import drafted, review

from effaced.draft.draft import draft_map

ONLY_SQLITE = pytest.mark.parametrize("company_database", ["sqlite"], indirect=True)
PATIENTS = (
    "CREATE TABLE patients (pat_no varchar(8) PRIMARY KEY, surname varchar(40), forename varchar(40),"
    " dob varchar(10))"
)
SOME_PATIENTS = "INSERT INTO patients VALUES ('000101', 'Berg', 'Liv', ''), ('000102', 'van Dijk', 'Odd', '')"


@ONLY_SQLITE
def test_of_two_tables_with_the_same_key_the_one_whose_values_the_other_repeats_is_meant(company):
    told = drafted(
        company,
        PATIENTS,
        "CREATE TABLE recipes (rx_no varchar(8) PRIMARY KEY, pat_no varchar(8))",
        "CREATE TABLE fetched (rx_no varchar(8) PRIMARY KEY, by_whom text)",
        "CREATE TABLE rx_lines (rx_no varchar(8), line_no integer, drug text, PRIMARY KEY (rx_no, line_no))",
        SOME_PATIENTS,
        *(f"INSERT INTO recipes VALUES ('RX{n}', '00010{1 + n % 2}')" for n in range(6)),
        *(f"INSERT INTO fetched VALUES ('RX{n}', 'x')" for n in range(3)),
        *(f"INSERT INTO rx_lines VALUES ('RX{n}', 1, 'x')" for n in range(6)),
    )
    for table in ("fetched", "rx_lines"):
        assert told["tables"][table]["link"] == {"to": "recipes", "on": {"rx_no": "rx_no"}}


@pytest.mark.parametrize(("column", "guessed"), [("loyalty_card", False), ("beleg", True)])
@ONLY_SQLITE
def test_values_say_where_a_column_points(company, column, guessed):
    told = drafted(
        company,
        PATIENTS,
        "CREATE TABLE loyalty (card_no varchar(12) PRIMARY KEY, pat_no varchar(8))",
        f"CREATE TABLE visits (id integer PRIMARY KEY, {column} varchar(12))",
        SOME_PATIENTS,
        *(f"INSERT INTO loyalty VALUES ('LC-{n:04}', '000101')" for n in range(8)),
        *(f"INSERT INTO visits VALUES ({n}, 'LC-{n % 6:04}')" for n in range(8)),
    )
    assert told["tables"]["visits"]["link"] == {"to": "loyalty", "on": {column: "card_no"}}
    rule = told["tables"]["visits"]["columns"][column]
    assert ("only its values say so" in review(rule)) if guessed else rule == "delete"


def test_uid_is_somebody(company):
    told = drafted(
        company,
        "CREATE TABLE members (id integer PRIMARY KEY, email varchar(60), name text)",
        "CREATE TABLE devices (id integer PRIMARY KEY, uid integer NOT NULL, push_token text)",
        "INSERT INTO members VALUES (1, 'a@x.example', 'A'), (2, 'b@x.example', 'B'), (3, 'c@x.example', '')",
        "INSERT INTO devices VALUES (7, 1, 'x'), (8, 2, 'y'), (9, 3, 'z')",
    )
    assert told["tables"]["devices"]["link"] == {"to": "members", "on": {"uid": "id"}}


@pytest.mark.parametrize("text", ["paid by Liv Berg in cash", "VAN DIJK, Odd", '[{"who": "Odd van Dijk"}]'])
def test_names_of_people_are_seen_in_texts_of_tables_that_lead_to_nobody(company, text):
    told = drafted(
        company,
        PATIENTS,
        "CREATE TABLE bookings (id integer PRIMARY KEY, purpose varchar(80))",
        SOME_PATIENTS,
        f"INSERT INTO bookings VALUES (1, 'nothing to see'), (2, '{text}')",
    )
    assert "purpose holds names that are also in patients" in told["review"]["bookings"]


def test_a_table_that_only_mentions_staff_may_be_about_somebody_all_the_same(company):
    told = drafted(
        company,
        PATIENTS,
        "CREATE TABLE nurses (id integer PRIMARY KEY, surname text, forename text, email text)",
        "CREATE TABLE rounds (id integer PRIMARY KEY, done_by integer REFERENCES nurses, log_text text)",
        SOME_PATIENTS,
        "INSERT INTO nurses VALUES (1, 'A', 'B', 'n@x.example')",
        "INSERT INTO rounds VALUES (1, 1, 'gave Liv Berg her pills')",
    )
    assert "it looks personal" in review(told["tables"]["rounds"]["columns"]["log_text"])


def test_a_list_of_the_banned_is_not_simply_nobodys(company):
    told = drafted(
        company,
        PATIENTS,
        "CREATE TABLE banned_identifiers (kind varchar(10), hash varchar(64), PRIMARY KEY (kind, hash))",
    )
    assert "hash of an address is personal" in told["review"]["banned_identifiers"]


def test_an_empty_table_whose_names_say_nothing_needs_a_look(company):
    told = drafted(company, PATIENTS, "CREATE TABLE import_tmp (col1 text, col2 text)")
    assert "no row" in told["review"]["import_tmp"]


def test_an_empty_list_of_kinds_does_not(company):
    told = drafted(company, PATIENTS, "CREATE TABLE kinds (id integer PRIMARY KEY, name text)")
    assert told["not_personal"] == ["kinds"]


def test_landlords_and_artists_are_people_by_their_names_alone(company):
    told = drafted(company, PATIENTS, "CREATE TABLE artists (id integer PRIMARY KEY, stage_name text)")
    assert "stage_name" in told["review"]["artists"]


def test_a_number_that_is_somebodys_is_said_so(company):
    told = drafted(
        company,
        "CREATE TABLE patients (id integer PRIMARY KEY, surname text, mobile text)",
        "CREATE TABLE texts (id integer PRIMARY KEY, msisdn text)",
        "INSERT INTO patients VALUES (1, 'A', '+4477009001'), (2, 'B', '+4477009002')",
        "INSERT INTO texts VALUES (1, '+4477009001')",
    )
    assert "no link can go by patients.mobile" in told["review"]["texts"]


@ONLY_SQLITE
def test_documents_in_texts_are_looked_into(company):
    told = drafted(
        company,
        PATIENTS,
        "CREATE TABLE rounds (id integer PRIMARY KEY, data text)",
        """INSERT INTO rounds VALUES (1, '[{"name": "X", "address": "Y"}]')""",
    )
    assert "data looks personal" in told["review"]["rounds"]


def test_amounts_with_tax_make_an_invoice_whatever_it_is_called(company):
    told = drafted(
        company,
        PATIENTS,
        "CREATE TABLE re (renr varchar(12) PRIMARY KEY, pat_no varchar(8) REFERENCES patients,"
        " redat date NOT NULL, netto integer, mwst integer)",
        "CREATE TABLE eingang (id integer PRIMARY KEY, renr varchar(12) REFERENCES re, betrag integer,"
        " valuta date, iban varchar(34))",
    )
    for table in ("re", "eingang"):
        assert f"{table} kept" in review(told["tables"][table]["columns"]["renr"])


def test_lab_orders_are_kept_by_medical_law(company):
    told = drafted(
        company,
        PATIENTS,
        "CREATE TABLE lab_orders (id integer PRIMARY KEY, pat_no varchar(8) REFERENCES patients, asked text)",
    )
    assert "medical" in review(told["tables"]["lab_orders"]["columns"]["asked"])


def test_german_names_cut_short_are_known(company):
    told = drafted(
        company,
        "CREATE TABLE kd (kdnr varchar(8) PRIMARY KEY, vname text, nname text NOT NULL, mail text)",
        "CREATE TABLE mitarb (persnr integer PRIMARY KEY, vname text, nname text, mail text)",
        "CREATE TABLE ansprechp (kdnr varchar(8) REFERENCES kd, lfdnr integer, name text, mail text,"
        " PRIMARY KEY (kdnr, lfdnr))",
        "CREATE TABLE auftraege (nr integer PRIMARY KEY, kdnr varchar(8) REFERENCES kd,"
        " vtr integer REFERENCES mitarb)",
    )
    assert list(told["subjects"]) == ["kunde", "mitarbeiter"]
    assert told["tables"]["ansprechp"]["link"] == {"to": "kd", "on": {"kdnr": "kdnr"}}
    assert told["tables"]["auftraege"]["link"] == {"to": "kd", "on": {"kdnr": "kdnr"}}
    assert told["tables"]["kd"]["columns"]["vname"] == {"anonymise": None}


def test_employer_and_immigration_status_do_not_stay(company):
    told = drafted(
        company,
        "CREATE TABLE users (id integer PRIMARY KEY, email text, employer text, immigration_status text)",
        "CREATE TABLE invoices (id integer PRIMARY KEY, user_id integer REFERENCES users, buyer text)",
        *(f"INSERT INTO users VALUES ({n}, 'u{n}@x.example', 'Acme', 'visa')" for n in range(12)),
    )
    columns = told["tables"]["users"]["columns"]
    assert columns["employer"] == columns["immigration_status"] == {"anonymise": None}


def test_a_copy_of_somebodys_rows_is_theirs_and_may_be_evidence(company):
    told = drafted(
        company,
        "CREATE TABLE person (id integer PRIMARY KEY, surname text, forename text, email text)",
        "CREATE TABLE person_aud (id integer, rev integer, surname text, PRIMARY KEY (id, rev))",
        "INSERT INTO person VALUES (1, 'A', 'B', 'a@x.example'), (2, 'C', 'D', 'c@x.example')",
        "INSERT INTO person_aud VALUES (1, 1, 'Z'), (2, 2, 'Y')",
    )
    assert told["tables"]["person_aud"]["link"] == {"to": "person", "on": {"id": "id"}}
    assert "evidence" in review(told["tables"]["person_aud"]["columns"]["id"])


def test_a_number_of_somebody_that_leads_nowhere_needs_a_look(company):
    told = drafted(
        company,
        PATIENTS,
        "CREATE TABLE loans (id integer PRIMARY KEY, borrower_no varchar(12), item varchar(12))",
        "INSERT INTO loans VALUES (1, 'S400', 'x'), (2, 'S401', 'y')",
    )
    assert "borrower_no looks personal" in told["review"]["loans"]


@ONLY_SQLITE
def test_a_log_by_table_and_key_is_read_in_other_languages_too(company):
    told = drafted(
        company,
        "CREATE TABLE klant (klantnr integer PRIMARY KEY, anaam text, mobnr text, emailadr text)",
        "CREATE TABLE logboek (id integer PRIMARY KEY, tabel text, sleutel text, oud text)",
        "INSERT INTO klant VALUES (7, 'Bos', '06-1', 'a@x.example'), (8, 'Smit', '06-2', 'b@x.example')",
        "INSERT INTO logboek VALUES (1, 'klant', '7', 'x'), (2, 'klant', '8', 'y'), (3, 'artikel', '7', 'z')",
    )
    assert told["tables"]["logboek"]["link"] == {
        "to": "klant",
        "on": {"sleutel": "klantnr"},
        "where": {"tabel": "klant"},
        "as": "text",
    }
    assert "evidence" in review(told["tables"]["logboek"]["columns"]["sleutel"])


@ONLY_SQLITE
def test_a_second_way_to_the_same_table_is_not_guessed(company):
    told = drafted(
        company,
        PATIENTS,
        "CREATE TABLE bills (no varchar(12) PRIMARY KEY, pat_no varchar(8) REFERENCES patients)",
        "CREATE TABLE paid (id integer PRIMARY KEY, bill varchar(12) REFERENCES bills, said varchar(40))",
        SOME_PATIENTS,
        *(f"INSERT INTO bills VALUES ('F24-{n:04}', '000101')" for n in range(6)),
        *(f"INSERT INTO paid VALUES ({n}, 'F24-{n:04}', 'F24-{n:04}')" for n in range(6)),
    )
    assert told["tables"]["paid"]["link"] == {"to": "bills", "on": {"bill": "no"}}


def test_documents_in_texts_are_called_so(company):
    company.run(
        PATIENTS,
        "CREATE TABLE visits (id integer PRIMARY KEY, pat_no varchar(8) REFERENCES patients, extra text)",
        """INSERT INTO visits VALUES (1, NULL, '{"a": "b", "c": "d", "e": "f"}')""",
    )
    assert "# JSON in a text: 1 sampled value\n" in draft_map(company.session.connection()).text


@ONLY_SQLITE
def test_a_class_may_be_called_as_its_table_is_cut_short(company):
    told = drafted(
        company,
        "CREATE TABLE kd (kdnr integer PRIMARY KEY, vname text, nname text, mail text)",
        "CREATE TABLE aend (id integer PRIMARY KEY, tab text, schluessel integer, alt text)",
        "INSERT INTO kd VALUES (7, 'A', 'Bos', 'a@x.example'), (8, 'B', 'Smit', 'b@x.example')",
        "INSERT INTO aend VALUES (1, 'kd', 7, 'x'), (2, 'kd', 8, 'y'), (3, 'art', 7, 'z')",
    )
    assert told["tables"]["aend"]["link"] == {
        "to": "kd",
        "on": {"schluessel": "kdnr"},
        "where": {"tab": "kd"},
    }


@pytest.mark.parametrize(("unique", "guests"), [("", 1), ("", 0), ("UNIQUE", 1)])
def test_rows_of_guests_that_no_link_finds_are_told(company, unique, guests):
    told = drafted(
        company,
        f"CREATE TABLE users (id integer PRIMARY KEY, name text, email varchar(60) {unique})",
        "CREATE TABLE remarks (id integer PRIMARY KEY, user_id integer REFERENCES users, email varchar(60))",
        "INSERT INTO users VALUES (1, 'A', 'a@x.example'), (2, 'B', 'b@x.example')",
        "INSERT INTO remarks VALUES (1, 1, 'a@x.example')",
        *["INSERT INTO remarks VALUES (2, NULL, 'b@x.example')"] * guests,
    )
    rule = told["tables"]["remarks"]["columns"]["email"]
    if guests and not unique:
        assert "no link can go by users.email" in review(rule)
    else:
        assert rule == "delete"
