"""Fixtures of the dead letters' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from letters_cast import Post
from saga_cast import NOON

from effaced import clock
from effaced.db import Database


@pytest.fixture
def post(db: Database) -> Post:
    return Post(db)


@pytest.fixture
def postgres_post(migrated_postgres_url: str) -> Iterator[Post]:
    """For races: on SQLite writers come one after the other."""
    database = Database(migrated_postgres_url, pool_size=10)
    yield Post(database)
    database.dispose()


@pytest.fixture
def noon() -> Iterator[clock.ManualClock]:
    with clock.pretend(NOON) as moving:
        yield moving
