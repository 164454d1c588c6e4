"""Every test here runs once per store: all of them keep the same promises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from breaker_cast import NOON, STORES, Where

from effaced.breakers.repository import CircuitBreakerStateRepository
from effaced.breakers.stores.base import BreakerStore
from effaced.core import clock


@pytest.fixture(scope="module")
def one_postgres_url(postgres_admin: Any, migrated_postgres_template: str) -> Iterator[str]:
    """One database for a module: making one takes longer than most tests here."""
    url = postgres_admin.create(template=migrated_postgres_template)
    yield url
    postgres_admin.drop(url)


def emptied(url: str) -> str:
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        for table in (
            "effaced_breakers",
            "effaced_breaker_transitions",
            "effaced_breaker_shadow",
            "effaced_breaker_drift",
        ):
            connection.execute(f"TRUNCATE {table}".encode())
    return url


@pytest.fixture(params=STORES)
def where(request: pytest.FixtureRequest) -> Where:
    """An empty store."""
    # A test may say more than the store: `threads-redis`.
    kind = request.param.rpartition("-")[2]
    database = redis = ""
    if kind in ("sqlite", "embedded", "layered"):
        database = request.getfixturevalue("migrated_sqlite_url")
    if kind == "postgresql":
        database = emptied(request.getfixturevalue("one_postgres_url"))
    if kind in ("redis", "layered"):
        redis = request.getfixturevalue("redis_url")
    return Where(kind, database, redis)


@pytest.fixture
def store(where: Where) -> Iterator[BreakerStore]:
    with where.opened() as opened:
        yield opened


@pytest.fixture
def repository(store: BreakerStore) -> CircuitBreakerStateRepository:
    return CircuitBreakerStateRepository(store)


@pytest.fixture
def now() -> Iterator[clock.ManualClock]:
    """It is noon until the clock is advanced."""
    with clock.pretend(NOON) as pretended:
        yield pretended
