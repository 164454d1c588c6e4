"""Fixtures of the request tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from requests_cast import Office

from effaced.db import Database


@pytest.fixture
def office(db: Database, tmp_path: Path) -> Office:
    return Office(db, tmp_path)
