"""Having the scheduler end retentions, beside whoever is ending them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest
from quick_database import open_quickly
from retention_cast import INVOICE_DUE, LAST_DUE, MAP, Shop, on
from waiting import PATIENCE, eventually

from effaced.core.db import Database
from effaced.core.errors import Conflict, Refused
from effaced.model import new_id
from effaced.retention.begin import begin_ending

_WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@pytest.fixture
def shop(db: Database, tmp_path: Path) -> Shop:
    return Shop(db, tmp_path)


@pytest.fixture
def postgres_shop(migrated_postgres_url: str, tmp_path: Path) -> Iterator[Shop]:
    database = open_quickly(migrated_postgres_url)
    yield Shop(database, tmp_path)
    database.dispose()


def begin(shop: Shop, request_id: UUID) -> None:
    with shop.db.begin() as session:
        begin_ending(session, shop.keyring, shop.plan, request_id, actor="api_key:7", reason="over")


def code_of(shop: Shop, request_id: UUID) -> dict[str, str]:
    with pytest.raises(Conflict) as conflict:
        begin(shop, request_id)
    return {each.where: each.code for each in conflict.value.problems}


def test_the_scheduler_carries_it_out(shop: Shop) -> None:
    bob = shop.erase("2")
    with on(INVOICE_DUE):
        begin(shop, bob)
        assert shop.ender.end_due(on_schedule=False) == 1
    assert [each.actor for each in shop.events("RETENTION_ENDED")] == ["api_key:7"]
    assert shop.rows("SELECT * FROM effaced_retention_endings") == []


def test_a_table_that_the_map_no_longer_has_can_be_closed(shop: Shop) -> None:
    bob = shop.erase("2")
    shop.use(
        "version: 1\nsubject: {table: customers, key: id}\nnot_personal: [invoices, lines]\n"
        "tables:\n  customers:\n    columns: {id: not_personal, name: {anonymise: fixed_text}}\n"
    )
    with on(INVOICE_DUE):
        begin(shop, bob)
        shop.ender.end_due(on_schedule=False)
    assert shop.kept()["invoices"].closed_at is not None


def test_what_the_map_no_longer_retains_is_a_conflict(shop: Shop) -> None:
    bob = shop.erase("2")
    shop.use(re.sub(r"\{retain: .*\}", "delete", MAP))
    with on(INVOICE_DUE):
        assert code_of(shop, bob) == {"tables.invoices": "not_retained"}


def test_rows_that_are_gone_already_are_nothing_to_end(shop: Shop) -> None:
    bob = shop.erase("2")
    shop.run("DELETE FROM invoices WHERE id = 20")
    with on(INVOICE_DUE):
        assert code_of(shop, bob) == {"request_id": "nothing_due"}


def test_an_unknown_request_is_refused(shop: Shop) -> None:
    with pytest.raises(Refused):
        begin(shop, new_id())


def test_whoever_ends_it_at_the_same_time_waits_and_goes_on(postgres_shop: Shop) -> None:
    shop = postgres_shop
    bob = shop.erase("2")
    shop.batch_rows = 1  # so that the other one records its progress, too
    with on(LAST_DUE), ThreadPoolExecutor(1) as pool:
        with shop.db.begin() as beginning:
            begin_ending(beginning, shop.keyring, shop.plan, bob, actor="api_key:7", reason="over")
            ending = pool.submit(lambda: list(shop.ender.end_requests([bob], actor="cli", reason="over")))
            eventually(lambda: shop.rows(_WAITING)[0][0], "the other one to wait")
        (result,) = ending.result(PATIENCE)
    assert (result.error, result.finished, result.rows) == (None, True, 1)
    assert shop.rows("SELECT * FROM effaced_retention_endings") == []
