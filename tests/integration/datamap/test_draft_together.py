"""`draft_map`: rules that meet in one table."""

from __future__ import annotations

from read_draft import drafted, review

from effaced.datamap.vocabulary.concepts import BY_WORD
from effaced.datamap.vocabulary.names import concept_of

USERS = "CREATE TABLE users (id integer PRIMARY KEY, email varchar(60) NOT NULL UNIQUE, name varchar(60))"


def test_lines_of_an_order_that_stays_are_for_a_person_to_decide(company):
    told = drafted(
        company,
        USERS,
        "CREATE TABLE best (nr integer PRIMARY KEY, user_id integer NOT NULL REFERENCES users)",
        "CREATE TABLE bestrgl (nr integer REFERENCES best, rgl integer, PRIMARY KEY (nr, rgl))",
        "CREATE TABLE invoices (id integer PRIMARY KEY, best_nr integer NOT NULL REFERENCES best)",
    )
    assert "rows of best stay" in review(told["tables"]["bestrgl"]["columns"]["nr"])


def test_whoever_accepts_an_invitation_is_the_one_invited(company):
    told = drafted(
        company,
        USERS,
        "CREATE TABLE organisations (id integer PRIMARY KEY, owner_id integer REFERENCES users)",
        "CREATE TABLE invitations (id integer PRIMARY KEY, org_id integer NOT NULL REFERENCES organisations,"
        " email varchar(60), accepted_by integer REFERENCES users)",
        *(f"INSERT INTO users VALUES ({n}, 'a{n}@x.example', 'Ann {n}')" for n in range(1, 6)),
        "INSERT INTO organisations VALUES (1, 1)",
        *(f"INSERT INTO invitations VALUES ({n}, 1, 'a{n}@x.example', {n})" for n in range(1, 6)),
    )
    assert {"to": "users", "on": {"accepted_by": "id"}} in told["tables"]["invitations"]["link"]


def test_a_number_of_registration_is_a_plate_only_where_it_is_a_vehicle_s():
    assert concept_of("reg_no", "text", "vehicles") is BY_WORD["vehicle"]
    assert concept_of("reg_no", "text", "pharmacists") is BY_WORD["number"]
