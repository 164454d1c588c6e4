"""Fixtures of the saga tests."""

from __future__ import annotations

import pytest
from saga_cast import House

from effaced.core.db import Database


@pytest.fixture
def house(db: Database) -> House:
    return House(db)
