"""The stores of dead letters, each with a way to say what stands behind a letter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from letters_cast import databases, emptied
from saga_cast import KEYRING
from sqlalchemy import insert

from effaced import clock
from effaced.clock import ManualClock
from effaced.db import Database
from effaced.deadletters.data import FailedOperationData
from effaced.deadletters.interface import FailedOperationRepository
from effaced.deadletters.memory import Behind, InMemoryFailedOperationRepository
from effaced.deadletters.repository import SQLFailedOperationRepository
from effaced.model import OutboxOperation, OutboxStatus, new_id
from effaced.outbox.tables import OutboxRow

__all__ = ["databases"]

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


@dataclass
class Store:
    """One store. `entry` makes what a letter is linked to, in the state given."""

    letters: FailedOperationRepository
    entry: Callable[[OutboxStatus], UUID]

    def create(self, domain: str = "external_call", failure_type: str = "Timeout", **more: Any) -> str:
        return self.letters.create(domain, failure_type, **more).id

    def get(self, letter_id: str) -> FailedOperationData:
        found = self.letters.get_by_id(letter_id)
        assert found is not None
        return found

    def status(self, letter_id: str) -> str:
        return self.get(letter_id).status

    def archived(self, **more: Any) -> str:
        letter_id = self.create(**more)
        self.letters.update_status(letter_id, "archived")
        return letter_id


@pytest.fixture
def now() -> Iterator[ManualClock]:
    with clock.pretend(START) as manual:
        yield manual


def in_memory() -> Store:
    behind = Behind()

    def entry(status: OutboxStatus) -> UUID:
        entry_id = new_id()
        if status not in (OutboxStatus.SUCCEEDED, OutboxStatus.ABANDONED):
            behind.under_way.add(entry_id)
        if status is not OutboxStatus.SUCCEEDED:
            behind.missing.add(entry_id)
        return entry_id

    return Store(InMemoryFailedOperationRepository(KEYRING, behind=behind), entry)


def in_database(database: Database) -> Store:
    def entry(status: OutboxStatus) -> UUID:
        entry_id, at = new_id(), clock.now()
        values = {
            "entry_id": entry_id,
            "request_id": new_id(),
            "operation": OutboxOperation.ERASE,
            "resolver": "crm",
            "subject_key_id": "k1",
            "subject_hmac": "0" * 64,
            "ref_kind": "crm",
            "status": status,
            "enqueued_at": at,
            "aging_since": at,
        }
        with database.begin() as session:
            session.execute(insert(OutboxRow), [values])
        return entry_id

    return Store(SQLFailedOperationRepository(database, KEYRING), entry)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, now: ManualClock, databases: dict[str, Database]) -> Store:
    """The test runs once per store, and time stands still."""
    if request.param == "memory":
        return in_memory()
    return in_database(emptied(databases[request.param]))
