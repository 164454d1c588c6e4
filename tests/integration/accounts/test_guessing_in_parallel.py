"""Many who sign in at the same moment: limits hold, and nobody else has to wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice

import pytest
from slow_hasher import SlowHasher
from sqlalchemy import select

from effaced.accounts import passwords
from effaced.accounts.officers import create_officer, find_officer, set_password
from effaced.accounts.sign_in import Attempt, SignInBusy, SignInResult, sign_in
from effaced.accounts.tables import Officer, SignInRefusals
from effaced.audit.append import append_one
from effaced.audit.events import RequestRepeated
from effaced.core.crypto import Keyring, new_key
from effaced.core.db import Database
from effaced.model import Role

pytestmark = pytest.mark.usefixtures("cheap_passwords")

EMAIL, PASSWORD = "ada@example.org", "correct horse battery"
KEYRING = Keyring.parse(new_key())
Guess = Callable[[str], SignInResult]


@pytest.fixture
def ada(db: Database) -> Officer:
    with db.begin() as session:
        return create_officer(
            session, email=EMAIL, name="Ada", role=Role.OFFICER, password=PASSWORD, actor="cli"
        )


@pytest.fixture
def guess(db: Database, ada: Officer) -> Guess:
    return lambda password: sign_in(db, KEYRING, Attempt(EMAIL, password, address="192.0.2.1"))


@pytest.fixture
def hasher(ada: Officer, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowHasher]:
    passwords._dummy_hash()
    slow = SlowHasher()
    monkeypatch.setattr(passwords, "_hasher", slow)
    yield slow
    slow.go_on()


def test_no_more_than_five_of_many_parallel_guesses_are_checked(db: Database, guess: Guess) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(guess, (f"guess {number}" for number in range(12))))
    assert all(each.officer is None for each in results)
    assert sum(each.retry_after is None for each in results) == 5
    with db.read() as session:
        assert session.scalars(select(SignInRefusals)).one().count == 5
    assert guess(PASSWORD).retry_after is not None


def test_few_passwords_are_checked_at_a_time_and_few_wait_for_that(guess: Guess, hasher: SlowHasher) -> None:
    with ThreadPoolExecutor(20) as pool:
        tries = [pool.submit(guess, PASSWORD) for _ in range(20)]
        answered = islice(as_completed(tries, timeout=60), 20 - 2 * passwords.AT_ONCE)
        assert all(isinstance(each.exception(), SignInBusy) for each in answered)
        hasher.wait_for(passwords.AT_ONCE)
        hasher.go_on()
        let_in = [each for each in tries if each.exception(60) is None]
    assert len(let_in) == 2 * passwords.AT_ONCE
    assert hasher.most == passwords.AT_ONCE


def test_others_write_while_a_password_is_checked(db: Database, guess: Guess, hasher: SlowHasher) -> None:
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(guess, PASSWORD)
        hasher.wait_for(1)
        with db.begin() as session:
            append_one(session, RequestRepeated())
        assert not result.done()
        hasher.go_on()
        assert result.result(60).officer is not None


def test_others_write_while_a_new_password_is_hashed(db: Database, ada: Officer, hasher: SlowHasher) -> None:
    def change() -> None:
        with db.begin() as session:
            set_password(session, ada, "another good password", actor="cli")

    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(change)
        hasher.wait_for(1)
        with db.begin() as session:
            append_one(session, RequestRepeated())
        assert not result.done()
        hasher.go_on()
        result.result(60)
    with db.read() as session:
        changed = find_officer(session, EMAIL)
    assert changed is not None
    assert passwords.verify_password(changed.password_hash, "another good password")


def test_a_password_that_was_changed_while_it_was_checked_is_wrong(
    db: Database, ada: Officer, guess: Guess, hasher: SlowHasher
) -> None:
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(guess, PASSWORD)
        hasher.wait_for(1)
        with db.begin() as session:
            session.get_one(Officer, ada.id).password_hash = "another"
        hasher.go_on()
        assert result.result(60).officer is None
