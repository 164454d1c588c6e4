"""Fixtures of the tests of retries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from saga_cast import NOON, House

from effaced.core import clock
from effaced.core.db import Database


@pytest.fixture
def house(db: Database) -> House:
    return House(db)


@pytest.fixture
def noon() -> Iterator[clock.ManualClock]:
    with clock.pretend(NOON) as moving:
        yield moving
