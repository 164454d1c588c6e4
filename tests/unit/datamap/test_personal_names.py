"""Names that sound like people."""

from __future__ import annotations

import pytest

from effaced.datamap.check.personal_names import column_sounds_like, table_sounds_like


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("email", "an e-mail address"),
        ("contactEmail", "an e-mail address"),
        ("E-Mail", "an e-mail address"),
        ("email_lower", "an e-mail address"),
        ("phone_1", "a phone number"),
        ("Straße", "an address"),
        ("customer_name", "a person's name"),
        ("users_name", "a person's name"),
        ("LAST_NAME", "a last name"),
        ("nazwisko", "a last name"),
        ("codice_fiscale", "an official number of a person"),
        ("last_sign_in_ip", "an IP address"),
    ],
)
def test_a_column_that_sounds_like_people(name: str, like: str) -> None:
    assert column_sounds_like(name) == like


@pytest.mark.parametrize(
    "name",
    ["id", "name", "product_name", "email_verified", "zip", "shipped_at", "strip", "ship", "_", "recipe"],
)
def test_a_column_that_does_not(name: str) -> None:
    assert column_sounds_like(name) is None


@pytest.mark.parametrize(
    ("name", "word"),
    [("customers", "customers"), ("crm.app_user", "user"), ("Kunden", "kunden"), ("staff", "staff")],
)
def test_a_table_called_after_people(name: str, word: str) -> None:
    assert table_sounds_like(name) == word


@pytest.mark.parametrize("name", ["products", "user_roles", "countries", "address", "crm.orders", "_"])
def test_a_table_that_is_not(name: str) -> None:
    assert table_sounds_like(name) is None
