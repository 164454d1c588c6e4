"""Machines whose clocks differ by minutes, on one PostgreSQL database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from company_house import eventually
from fleet import fleet, recording
from saga_cast import House, add_request

from effaced.db import Database
from effaced.model import OutboxStatus

FIVE_MINUTES = 300.0
CALLS = 30


@pytest.fixture
def shared(migrated_postgres_url: str) -> Iterator[House]:
    database = Database(migrated_postgres_url)
    yield House(database)
    database.dispose()


def all_ended(house: House) -> bool:
    counts = house.outbox().status_counts()
    return counts[OutboxStatus.SUCCEEDED] + counts[OutboxStatus.ABANDONED] == CALLS


@pytest.mark.parametrize("idempotent", [True, False])
def test_two_machines_five_minutes_apart_call_everybody_once_and_abandon_nobody(
    shared: House, migrated_postgres_url: str, tmp_path: Path, idempotent: bool
) -> None:
    with (
        recording(0.1) as server,
        fleet(
            migrated_postgres_url,
            tmp_path,
            server,
            ["crm"],
            lease=60,
            timeout=20,
            concurrency=3,
            idempotent=idempotent,
        ) as workers,
    ):
        workers.spawn()
        workers.spawn(clock_off=FIVE_MINUTES)
        with shared.db.begin() as session:
            add_request(session, [("crm", str(number)) for number in range(CALLS)])
        eventually(lambda: all_ended(shared), "every entry to come to its end")
    entries = shared.entries()
    assert {each.status for each in entries} == {OutboxStatus.SUCCEEDED}
    assert Counter(server.keys()) == Counter(str(each.entry_id) for each in entries)
    assert len({call.process for call in server.calls}) == 2, "one machine has made all the calls"
    assert {(each.token, each.attempts, each.crashes) for each in entries} == {(1, 1, 0)}
    assert "lease_too_short" not in workers.log.read_text()
