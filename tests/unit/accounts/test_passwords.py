from __future__ import annotations

import pytest
from argon2 import PasswordHasher

from effaced.accounts.passwords import hash_password, needs_rehash, password_problems, verify_password

PASSWORD = "correct horse battery"


def test_a_password_is_recognised_by_its_hash() -> None:
    assert verify_password(hash_password(PASSWORD), PASSWORD)


@pytest.mark.parametrize("wrong", ["", "Correct horse battery", PASSWORD + " ", "x" * 300])
def test_another_password_is_not(wrong: str) -> None:
    assert not verify_password(hash_password(PASSWORD), wrong)


def test_two_hashes_of_one_password_differ() -> None:
    assert hash_password(PASSWORD) != hash_password(PASSWORD)


def test_with_no_hash_no_password_is_right_not_even_the_one_checked_in_its_place() -> None:
    assert not verify_password(None, "no officer has this password")


def test_a_damaged_hash_refuses_instead_of_raising() -> None:
    assert not verify_password("not a hash", PASSWORD)


def test_one_letter_typed_on_two_keyboards_is_one_letter() -> None:
    assert verify_password(hash_password("caf\u00e9 au lait, deux"), "cafe\u0301 au lait, deux")


@pytest.mark.parametrize(("length", "fine"), [(11, False), (12, True), (256, True), (257, False)])
def test_a_new_password_has_12_to_256_characters(length: int, fine: bool) -> None:
    assert (password_problems("x" * length) == []) is fine


def test_a_hash_of_weaker_settings_wants_to_be_made_anew() -> None:
    weak = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    assert needs_rehash(weak)
    assert not needs_rehash(hash_password(PASSWORD))
