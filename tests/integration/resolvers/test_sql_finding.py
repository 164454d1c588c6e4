"""The `sql` kind with `find_by`: whom a reference names that is no key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from other_database import GOES, STAYS, Shop

from effaced.model import SubjectRef, new_id
from effaced.resolvers.protocols import AlreadyAbsent, Erased, Rejected


def erase(shop: Shop, value: str, text: str = STAYS, **keys: Any) -> Any:
    resolver = shop.resolver(text, **({"find_by": "email"} | keys))
    return asyncio.run(resolver.erase_subject(SubjectRef("shop", value), key=new_id()))


def add(shop: Shop, *addresses: str) -> None:
    for address in addresses:
        shop.run(f"UPDATE users SET email = '{address}' WHERE id = {shop.person()}")


def names(shop: Shop) -> list[Any]:
    return [name for (name,) in shop.rows("SELECT name FROM users ORDER BY id")]


def test_whoever_has_it_and_nobody_else(shop: Shop):
    add(shop, "anna@people.example", "berta@people.example")
    assert Erased() == erase(shop, "anna@people.example")
    assert names(shop) == [None, "Anna Alt"]


def test_nobody_has_it(shop: Shop):
    add(shop, "anna@people.example")
    assert AlreadyAbsent() == erase(shop, "berta@people.example")


@pytest.mark.parametrize("value", ["an\0na", "\ud800"])
def test_what_no_text_can_be_is_nobody(shop: Shop, value: str):
    assert AlreadyAbsent() == erase(shop, value)


def test_several_have_it_and_nobody_can_say_who_is_meant(shop: Shop):
    add(shop, "anna@people.example", "anna@people.example")
    with pytest.raises(Rejected) as told:
        erase(shop, "anna@people.example")
    assert told.value.code == "several_people"
    assert names(shop) == ["Anna Alt", "Anna Alt"]


def test_several_have_it_and_all_are_meant(shop: Shop):
    add(shop, "anna@people.example", "anna@people.example", "berta@people.example")
    assert Erased() == erase(shop, "anna@people.example", several="all")
    assert names(shop) == [None, None, "Anna Alt"]


def test_case_counts_unless_the_file_says_otherwise(shop: Shop):
    add(shop, "Anna@People.example")
    assert AlreadyAbsent() == erase(shop, "anna@people.example")
    assert Erased() == erase(shop, "anna@people.example", ignore_case=True)


def test_a_number_is_found_by_how_it_is_written(shop: Shop):
    anna = shop.person()
    by_number = GOES.replace("{email: email}", "{number: id}")
    assert Erased() == erase(shop, str(anna), by_number, find_by="number")
