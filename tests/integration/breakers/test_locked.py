"""A lock that somebody holds for too long ends no runner: calls are put off, and outcomes not counted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from breaker_cast import CRM, FAILURE, NOON, registry
from quick_database import open_quickly
from sqlalchemy import text

from effaced.breakers.registry import STORE_UNAVAILABLE, BreakerRegistry
from effaced.breakers.stores.sql import SqlBreakerStore
from effaced.core.db import Database


@pytest.fixture
def database(migrated_postgres_url: str) -> Iterator[Database]:
    database = open_quickly(migrated_postgres_url, lock_timeout_ms=50)
    yield database
    database.dispose()


@pytest.fixture
def calls(database: Database) -> BreakerRegistry:
    return registry(SqlBreakerStore(database), fail_max=1)


def test_a_trial_is_put_off(database: Database, calls: BreakerRegistry) -> None:
    calls.repository.update_state(CRM, "open", opened_at=NOON)
    with database.begin() as session:
        session.execute(text("SELECT * FROM effaced_breakers FOR UPDATE"))
        assert ((denied := calls.admit("crm")).granted, denied.reason) == (0, STORE_UNAVAILABLE)
    assert calls.admit("crm").granted == 1


def test_outcomes_are_not_counted_and_nothing_is_raised(database: Database, calls: BreakerRegistry) -> None:
    calls.repository.get_or_create(CRM)
    admission = calls.admit("crm")
    with database.begin() as session:
        session.execute(text("SELECT * FROM effaced_breakers FOR UPDATE"))
        assert calls.settle(admission, [FAILURE]) == ()
    assert len(calls.settle(admission, [FAILURE])) == 1
