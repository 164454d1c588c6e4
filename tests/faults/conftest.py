"""A fleet whose Redis a test may stop and start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from breaker_cast import NOON
from breaker_fleet import Fleet
from quick_database import open_quickly

from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.servers import Valkey


@pytest.fixture
def fleet(migrated_sqlite_url: str, own_valkey: Valkey) -> Iterator[Fleet]:
    database = open_quickly(migrated_sqlite_url)
    yield Fleet(database, own_valkey)
    database.dispose()


@pytest.fixture
def now() -> Iterator[ManualClock]:
    """It is noon until the clock is advanced."""
    with clock.pretend(NOON) as pretended:
        yield pretended
