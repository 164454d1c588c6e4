"""`effaced resolver check` for another database."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from other_database import GOES, Shop
from sqlalchemy import make_url

from effaced.model import CheckReason, ReadBackProof
from effaced.resolvers.check import Checked, check
from effaced.resolvers.registry import Registered


def checked(shop: Shop, text: str = GOES, *, canary: object = None, **keys: Any) -> Checked:
    named = None if canary is None else str(canary)
    return asyncio.run(
        check(Registered("shop", "shop", shop.resolver(text, **keys), kind="sql", canary=named))
    )


def test_the_canary_is_present_and_an_invented_reference_is_absent(shop: Shop):
    assert checked(shop, canary=shop.person()).proof == ReadBackProof.PROVEN


def test_a_check_fails_when_the_canary_is_gone(shop: Shop):
    assert checked(shop, canary=4711).proof == ReadBackProof.FAILED


def test_a_check_without_a_canary_is_unproven(shop: Shop):
    assert checked(shop, find_by="email").proof == ReadBackProof.UNPROVEN


def test_everything_about_the_map_that_does_not_fit_is_told(shop: Shop):
    shop.run("ALTER TABLE users ADD COLUMN nickname TEXT", "CREATE TABLE logins (id INTEGER PRIMARY KEY)")
    found = checked(shop)
    assert found.proof == ReadBackProof.FAILED
    assert "users.nickname: the column is not declared" in found.sentence
    assert "logins: the table is not declared" in found.sentence


def test_a_check_deletes_nobody_and_makes_no_table(shop: Shop):
    checked(shop, canary=shop.person())
    assert len(shop.rows("SELECT 1 FROM users JOIN orders ON user_id = users.id")) == 1
    with pytest.raises(Exception, match="effaced_sql_calls"):
        shop.calls()


def test_a_database_that_is_away_is_told(shop: Shop):
    with shop.away():
        found = checked(shop)
    assert found.proof == ReadBackProof.FAILED
    assert "check `url`" in found.sentence


def test_a_wrong_password_is_told(fresh_postgres_url, tmp_path):
    shop = Shop(fresh_postgres_url, tmp_path)
    wrong = make_url(shop.url).set(password="rotated").render_as_string(hide_password=False)
    assert "check `url`" in checked(shop, url=wrong).sentence


def test_a_ledger_that_may_not_be_made_is_told(fresh_postgres_url, tmp_path):
    shop = Shop(fresh_postgres_url, tmp_path)
    with shop.role("SELECT, UPDATE, DELETE") as url:
        assert "effaced_sql_calls is missing and we may not make it" in checked(shop, url=url).sentence
        assert checked(shop, url=url, ledger=False).proof == ReadBackProof.UNPROVEN


def test_a_canary_may_be_erased_and_is_seen_absent_then(shop: Shop):
    resolver = Registered("shop", "shop", shop.resolver(GOES), kind="sql", canary=str(shop.person()))
    assert asyncio.run(check(resolver, erase=True)).reason is CheckReason.CANARY_ERASED
    assert shop.rows("SELECT 1 FROM users") == []
