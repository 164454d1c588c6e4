"""What names say: words, pointers, concepts, references."""

from __future__ import annotations

import pytest

from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.concepts import BY_WORD
from effaced.datamap.vocabulary.names import (
    concept_of,
    is_one_of,
    pointer,
    split_name,
    system_of,
    table_words,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("customer_id", ("customer", "id")),
        ("customerId", ("customer", "id")),
        ("KundenNr", ("kunden", "nr")),
        ("tblHTTPLog2", ("tbl", "http", "log", "2")),
        ("Straße", ("strasse",)),
        ("EMAIL", ("email",)),
    ],
)
def test_names_are_split_into_words(name: str, expected: tuple[str, ...]) -> None:
    assert split_name(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "customers",
        "tbl_customer",
        "app_user",
        "crm.people",
        "tblKunden",
        "patients",
        "user_accounts",
        "STAFF",
    ],
)
def test_tables_of_people_are_known_by_their_last_word(name: str) -> None:
    assert is_one_of(name, [*words.PEOPLE, *words.STAFF])


@pytest.mark.parametrize(
    "name", ["customer_orders", "user_roles", "member_groups", "userstories", "products"]
)
def test_tables_about_something_of_people_are_not(name: str) -> None:
    assert not is_one_of(name, [*words.PEOPLE, *words.STAFF])


def test_the_schema_and_wrappings_do_not_count() -> None:
    assert table_words("crm.tbl_customer_master") == ("customer",)


@pytest.mark.parametrize(
    ("column", "family", "concept"),
    [
        ("email", "text", "email"),
        ("user_email", "text", "email"),
        ("EMailAdresse", "text", "email"),
        ("ph_h", "text", "phone"),
        ("pcode", "text", "postcode"),
        ("rcpt_no", "text", "number"),
        ("cell_no", "text", "phone"),
        ("cell_id", "text", None),
        ("created_by", "text", "maker"),
        ("vehicle_reg", "text", "vehicle"),
        ("email_verified", "true or false", "state"),
        ("email_status", "text", "state"),
        ("email_sent_at", "date and time", "moment"),
        ("firstName", "text", "first_name"),
        ("Nachname", "text", "last_name"),
        ("date_naissance", "date", "birth"),
        ("fecha_nacimiento", "date", "birth"),
        ("GebDatum", "date", "birth"),
        ("Bestelldatum", "date", "moment"),
        ("dob", "date", "birth"),
        ("street_line_1", "text", "street"),
        ("remote_addr", "text", "ip"),
        ("iban", "text", "bank"),
        ("password_digest", "text", "secret"),
        ("reset_password_token", "text", "secret"),
        ("total_cents", "number", "amount"),
        ("sent_to", "text", None),
        ("valid_to", "date", "moment"),
        ("family_doctor", "text", "full_name"),
        ("xyz", "text", None),
        ("cust_nm", "text", "name"),
        ("emlAddr", "text", "email"),
        ("sex_cd", "text", "gender"),
        ("profile_photo_path", "text", "photo"),
        ("given_names", "text", "first_name"),
        ("data_urodzenia", "date", "birth"),
        ("Prénom", "text", "first_name"),
        ("payload_data", "text", None),
    ],
)
def test_columns_tell_what_they_hold(column: str, family: str, concept: str | None) -> None:
    found = concept_of(column, family)
    assert (found.word if found else None) == concept


@pytest.mark.parametrize(
    ("column", "stem"),
    [
        ("customer_id", ("customer",)),
        ("billingCustomerId", ("billing", "customer")),
        ("cust_no", ("customer",)),
        ("created_by", ("created",)),
        ("assigned_to", ("assigned",)),
        ("KdNr", ("kunde",)),
        ("author", ("author",)),
        ("cod_cliente", ("cliente",)),
        ("post_author", ("post", "author")),
        ("cntct_id", ("contact",)),
        ("id", None),
        ("name", None),
    ],
)
def test_columns_that_point_say_where(column: str, stem: tuple[str, ...] | None) -> None:
    said = pointer(column)
    assert (said.stem if said else None) == stem


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("stripe_customer_id", "stripe_customer"),
        ("crm_ref", "crm"),
        ("mailchimpId", "mailchimp"),
        ("customer_id", None),
        ("google", None),
    ],
)
def test_references_for_other_systems_are_known(column: str, kind: str | None) -> None:
    assert system_of(column) == kind


def test_the_name_of_the_table_in_front_says_nothing_about_a_column() -> None:
    assert concept_of("comment_approved", "text", "comments") is BY_WORD["state"]
    assert concept_of("session_key", "text", "sessions") is BY_WORD["device"]
