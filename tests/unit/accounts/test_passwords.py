from __future__ import annotations

import importlib.util
from typing import ClassVar, Literal

import pytest
from argon2 import PasswordHasher, extract_parameters, profiles

from effaced.accounts import passwords
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


class Counting(PasswordHasher):
    """Notes the settings of every check: they are what a check costs."""

    seen: ClassVar[list[str]] = []

    def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:
        self.seen.append(str(hash).rsplit("$", 2)[0])
        return super().verify(hash, password)


def test_checking_costs_the_same_with_and_without_a_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "_hasher", Counting(time_cost=2, memory_cost=64, parallelism=1))
    passwords._dummy_hash.cache_clear()
    verify_password(hash_password(PASSWORD), "wrong")
    verify_password(None, "wrong")
    verify_password(hash_password(PASSWORD), "x" * 300)
    assert Counting.seen == ["$argon2id$v=19$m=64,t=2,p=1"] * 3


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


def test_outside_the_tests_a_guess_costs_what_the_standard_asks_for() -> None:
    spec = importlib.util.find_spec(passwords.__name__)
    assert spec is not None
    assert spec.loader is not None
    untouched = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(untouched)
    assert extract_parameters(untouched.hash_password(PASSWORD)) == profiles.RFC_9106_LOW_MEMORY
