"""Fixtures of the request tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from quick_database import open_quickly
from requests_cast import Office

from effaced.core.db import Database


@pytest.fixture
def postgres_office(migrated_postgres_url: str, tmp_path: Path) -> Iterator[Office]:
    """For what only PostgreSQL can do: on SQLite writers come one after the other."""
    database = open_quickly(migrated_postgres_url)
    yield Office(database, tmp_path)
    database.dispose()


@pytest.fixture
def office(db: Database, tmp_path: Path) -> Office:
    return Office(db, tmp_path)
