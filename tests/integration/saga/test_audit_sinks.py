"""Where events go: a sink of one's own gets what the trail would have got, all of it and in that order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from saga_cast import KEYRING, CheckingVendor, House, Vendor
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from effaced.audit.append import Record
from effaced.audit.sink import AuditSink, DatabaseAuditSink
from effaced.audit.tables import AuditEvent
from effaced.core.clock import ManualClock
from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.core.errors import ResolverError
from effaced.embed import Effaced
from effaced.requests.complete import complete_operations
from effaced.resolvers.protocols import CredentialsRefused
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.saga.facade import Outbox
from effaced.saga.runner import SagaRunner


class OwnSink:
    """Keeps the types of events, and looks at the result of a statement, as a sink may."""

    def __init__(self) -> None:
        self.types: list[str] = []

    def append(self, session: Session, records: Sequence[Record]) -> None:
        assert session.scalar(select(func.count()).select_from(AuditEvent)) == 0
        self.types += [each.event.type for each in records]


def refuse(_ref: str) -> Exception:
    return ResolverError("no", code="http_400")


def lock_out(_ref: str) -> Exception:
    return CredentialsRefused("no")


def work(house: House, sink: AuditSink) -> None:
    """A call that fails for good and is requeued, one that is locked out, one that is still there."""
    crm = house.vendor("crm", Vendor(refuse))
    house.vendor("mail", Vendor(lock_out))
    house.vendor("shop", CheckingVendor(absent=lambda _: False))
    house.request(("crm", "1"), ("mail", "1"), ("shop", "1"))
    outbox = Outbox(house.db.sessions, keyring=KEYRING, audit_sink=sink)
    runner = SagaRunner(house.registry, outbox, on_operations_complete=complete_operations)
    for name in ("crm", "mail", "shop"):
        asyncio.run(runner.drain(name))
    crm.answer = Vendor().answer
    outbox.requeue([each.entry_id for each in outbox.list_abandoned()])
    asyncio.run(runner.drain("crm"))


EXPECTED = [
    "ERASURE_STEP_FAILED", "DEAD_LETTER_OPENED", "RESOLVER_PAUSED", "ERASURE_STEP_SUCCEEDED",
    "ERASURE_EXTERNAL_VERIFICATION_FAILED", "DEAD_LETTER_OPENED", "ERASURE_REQUEUED",
    "ERASURE_STEP_SUCCEEDED",
]  # fmt: skip


def test_the_trail_gets_everything_by_default(house: House, noon: ManualClock) -> None:
    work(house, DatabaseAuditSink())
    assert house.types() == EXPECTED


def test_a_sink_of_one_s_own_gets_the_same_and_the_trail_nothing(house: House, noon: ManualClock) -> None:
    sink = OwnSink()
    work(house, sink)
    assert sink.types == EXPECTED
    assert house.types() == []


MAP = """
version: 1
subject: {table: customers, key: id}
refs: {crm_contact: {column: crm_id}}
tables:
  customers: {columns: {id: delete, crm_id: delete}}
"""


@pytest.fixture
def map_path(db: Database, tmp_path: Path) -> Path:
    with db.begin() as session:
        session.execute(text("CREATE TABLE customers (id integer PRIMARY KEY, crm_id text)"))
        session.execute(text("INSERT INTO customers VALUES (1, 'c1')"))
    (path := tmp_path / "datamap.yaml").write_text(MAP)
    return path


def test_an_application_s_sink_gets_its_requests_and_their_duplicates(db: Database, map_path: Path) -> None:
    sink = OwnSink()
    registry = ResolverRegistry((Registered("crm", "crm_contact", Vendor()),))
    privacy = Effaced(db.sessions, keys=new_key(), datamap=map_path, resolvers=registry, audit_sink=sink)
    for _ in range(2):
        with db.begin() as session:
            privacy.erase(session, "1")
    asyncio.run(privacy.runner().run_once())
    assert sink.types[:3] == ["REQUEST_RECEIVED", "LOCAL_ERASURE_EXECUTED", "LOCAL_VERIFIED"]
    assert {"REQUEST_DUPLICATE", "ERASURE_COMPLETED", "REQUEST_DUPLICATE_COMPLETED"} <= set(sink.types)
    with db.begin() as session:
        assert session.scalar(select(func.count()).select_from(AuditEvent)) == 0


def test_a_sink_that_fails_undoes_the_application_s_request(db: Database, map_path: Path) -> None:
    class Down:
        def append(self, session: Session, records: Sequence[Record]) -> None:
            raise ConnectionError("the sink is down")

    registry = ResolverRegistry((Registered("crm", "crm_contact", Vendor()),))
    privacy = Effaced(db.sessions, keys=new_key(), datamap=map_path, resolvers=registry, audit_sink=Down())
    with pytest.raises(ConnectionError), db.begin() as session:
        privacy.erase(session, "1")
    with db.read() as session:
        assert session.scalar(text("SELECT count(*) FROM customers")) == 1
