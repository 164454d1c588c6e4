"""The stores of dead letters, each with a way to say how the work behind one stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from letters_cast import databases, emptied
from saga_cast import KEYRING
from sqlalchemy import insert, update

from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.deadletters.data import FailedOperationData
from effaced.deadletters.interface import FailedOperationRepository
from effaced.deadletters.memory import InMemoryFailedOperationRepository
from effaced.deadletters.repository import SQLFailedOperationRepository
from effaced.model import (
    DeliveryStatus,
    NoticeType,
    OutboxOperation,
    OutboxStatus,
    RequestKind,
    RequestStatus,
    Verification,
    new_id,
)
from effaced.notify.tables import Delivery, Message
from effaced.outbox.tables import OutboxRow
from effaced.requests.tables import Request

__all__ = ["databases"]

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


class Work(Enum):
    """How the work behind a dead letter stands."""

    DONE = "done"
    NOT_DONE = "not_done"
    UNDER_WAY = "under_way"


@dataclass
class Store:
    """One store. `entry` makes an entry in the state given, `set_work` says how linked work stands."""

    letters: FailedOperationRepository
    entry: Callable[[OutboxStatus], UUID]
    set_work: Callable[[str, UUID, Work], None]

    def linked(self, domain: str, work: Work) -> tuple[str, UUID]:
        """A dead letter with work behind it; its id, and that of the work."""
        link = new_id()
        self.set_work(domain, link, work)
        kind = {"local_execution": "request", "message": "delivery"}.get(domain, "entry")
        return self.create(domain, entity_type=kind, entity_id=str(link)), link

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
        self.bring(letter_id, "archived")
        return letter_id

    def bring(self, letter_id: str, status: str) -> None:
        """A pending dead letter to that status, the way that leads there."""
        if status == "replaying":
            assert self.letters.try_acquire_for_replay(letter_id, 2)
            return
        if status == "archived":
            assert self.letters.update_status(letter_id, "resolved")
        assert self.letters.update_status(letter_id, status)


@pytest.fixture
def now() -> Iterator[ManualClock]:
    with clock.pretend(START) as manual:
        yield manual


_ENTRY = {
    Work.DONE: {"status": OutboxStatus.SUCCEEDED},
    Work.NOT_DONE: {"status": OutboxStatus.ABANDONED},
    Work.UNDER_WAY: {"status": OutboxStatus.SCHEDULED},
}
_READ_BACK = {
    Work.DONE: {"verification": Verification.CONFIRMED, "verify_due_at": None},
    Work.NOT_DONE: {"verification": Verification.STILL_PRESENT, "verify_due_at": None},
    Work.UNDER_WAY: {"verification": Verification.DUE, "verify_due_at": START},
}
_REQUEST = {
    Work.DONE: {"status": RequestStatus.RUNNING, "execute_at": None, "executed_at": START},
    Work.NOT_DONE: {"status": RequestStatus.APPROVED, "execute_at": None, "executed_at": None},
    Work.UNDER_WAY: {"status": RequestStatus.APPROVED, "execute_at": START, "executed_at": None},
}
_DELIVERY = {
    Work.DONE: {"status": DeliveryStatus.DELIVERED},
    Work.NOT_DONE: {"status": DeliveryStatus.UNDELIVERABLE},
    Work.UNDER_WAY: {"status": DeliveryStatus.PENDING},
}


def store_over(letters: FailedOperationRepository, database: Database) -> Store:
    def entry(status: OutboxStatus) -> UUID:
        entry_id = new_id()
        put(OutboxRow, OutboxRow.entry_id, entry_id, {"status": status})
        return entry_id

    def set_work(domain: str, link: UUID, work: Work) -> None:
        if domain == "local_execution":
            put(Request, Request.id, link, _REQUEST[work])
        elif domain == "message":
            put(Delivery, Delivery.id, link, _DELIVERY[work])
        elif domain == "verification":
            put(OutboxRow, OutboxRow.entry_id, link, {"status": OutboxStatus.SUCCEEDED, **_READ_BACK[work]})
        else:
            put(OutboxRow, OutboxRow.entry_id, link, _ENTRY[work])

    def put(table: Any, key: Any, link: UUID, values: dict[str, Any]) -> None:
        with database.begin() as session:
            if session.execute(update(table).where(key == link).values(values).returning(key)).first():
                return
            if table is Delivery:
                message = {"id": link, "type": NoticeType.REQUEST_COMPLETED, "payload": {}}
                session.execute(insert(Message), [{**message, "created_at": clock.now()}])
            session.execute(insert(table), [{**_columns(table, link), **values}])

    return Store(letters, entry, set_work)


def _columns(table: Any, link: UUID) -> dict[str, Any]:
    at, person = clock.now(), {"subject_key_id": "k1", "subject_hmac": link.hex}
    if table is Delivery:
        return {"id": link, "message_id": link, "target": "ops", "gate": at, "aging_since": at}
    if table is Request:
        return {
            **person,
            "id": link,
            "ref": link.hex[-16:],
            "kind": RequestKind.ERASURE,
            "datamap_hash": "0" * 64,
            "approvals_needed": 1,
            "received_at": at,
            "due_at": at,
        }
    return {
        **person,
        "entry_id": link,
        "request_id": new_id(),
        "operation": OutboxOperation.ERASE,
        "resolver": "crm",
        "ref_kind": "crm",
        "enqueued_at": at,
        "aging_since": at,
    }


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, now: ManualClock, databases: dict[str, Database]) -> Store:
    """The test runs once per store, and time stands still."""
    if request.param == "memory":
        in_memory = InMemoryFailedOperationRepository(KEYRING)
        return store_over(in_memory, in_memory.database)
    database = emptied(databases[request.param])
    return store_over(SQLFailedOperationRepository(database, KEYRING), database)
