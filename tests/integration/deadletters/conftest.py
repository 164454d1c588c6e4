"""Fixtures of the dead letters' tests."""

from __future__ import annotations

import pytest
from letters_cast import Post, databases, emptied

from effaced.core.db import Database

__all__ = ["databases"]


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request: pytest.FixtureRequest, databases: dict[str, Database]) -> Database:
    """Empty but for the trail; the test runs once per engine."""
    return emptied(databases[request.param])


@pytest.fixture
def post(db: Database) -> Post:
    return Post(db)


@pytest.fixture
def postgres_post(databases: dict[str, Database]) -> Post:
    """For races: on SQLite writers come one after the other."""
    return Post(emptied(databases["postgresql"]))
