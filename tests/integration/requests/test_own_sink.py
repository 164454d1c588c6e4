"""An application's own audit sink gets every event that the trail would have got."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from quick_database import open_quickly
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from effaced.audit.append import Record
from effaced.audit.sink import AuditSink, DatabaseAuditSink
from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.core.crypto import Keyring, new_key
from effaced.core.db import Database
from effaced.core.errors import ResolverError
from effaced.embed import Effaced
from effaced.model import OutboxOperation, SubjectRef
from effaced.resolvers.protocols import CredentialsRefused, Erased, Rectified, Scheduled
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.saga.facade import Outbox, OutboxEntry
from effaced.saga.runner import SagaRunner
from effaced.testing import RecordingResolver, VerifyingRecordingResolver

MAP = """
version: 1
subject: {table: customers, key: id}
refs: {contact: {column: contact}}
rectify: {city: customers.city}
tables:
  customers: {columns: {id: delete, contact: delete, city: delete}}
"""


@dataclass
class Own:
    """A sink of an application's own: it remembers, and looks at what its statements give."""

    records: list[Record] = field(default_factory=list)

    def append(self, session: Session, records: Sequence[Record]) -> None:
        assert session.execute(text("SELECT 40 + 2")).scalar_one() == 42
        self.records += records


class Both(DatabaseAuditSink):
    """The trail, and a copy of it."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def append(self, session: Session, records: Sequence[Record]) -> None:
        self.records += records
        super().append(session, records)


class Corrects(RecordingResolver):
    async def rectify_subject(self, ref: SubjectRef, corrections: object, *, key: object) -> Rectified:
        return Rectified()


def raising(*errors: BaseException | bool):
    """What a read-back says, look by look; the last one for ever."""
    left = list(errors)
    return lambda _ref: left.pop(0) if len(left) > 1 else left[0]


def go_through(database: Database, folder: Path, sink: AuditSink | None) -> None:
    """Erasures and a correction at systems of every kind, with later read-backs and a requeue."""
    with database.begin() as session:
        session.execute(text("CREATE TABLE customers (id integer PRIMARY KEY, contact text, city text)"))
        session.execute(text("INSERT INTO customers VALUES (1, 'c1', 'Ulm'), (2, 'c2', 'Jena')"))
    (path := folder / "datamap.yaml").write_text(MAP)
    systems = {
        "absent": VerifyingRecordingResolver(),
        "present": VerifyingRecordingResolver(absent=lambda _: False),
        "absent_later": VerifyingRecordingResolver(absent=raising(OSError(), True)),
        "present_later": VerifyingRecordingResolver(absent=raising(OSError(), False)),
        "given_up": VerifyingRecordingResolver(absent=raising(OSError(), ResolverError("no", code="no"))),
        "locked": VerifyingRecordingResolver(absent=raising(CredentialsRefused("no"))),
        "refuses": RecordingResolver(answer=lambda _: ResolverError("no", code="no")),
        "corrects": Corrects(),
        "expires": RecordingResolver(answer=lambda _: Scheduled(clock.now() + timedelta(days=1))),
    }
    registry = ResolverRegistry(tuple(Registered(name, "contact", each) for name, each in systems.items()))
    privacy = Effaced(database.sessions, keys=new_key(), datamap=path, resolvers=registry, audit_sink=sink)

    def run() -> None:
        asyncio.run(privacy.runner().run_once())

    with database.sessions.begin() as session:
        privacy.rectify(session, 2, {"city": "Gera"})
        privacy.erase(session, 1)
    run()
    with database.sessions.begin() as session:
        privacy.erase(session, 2)  # overtakes its correction where that has not got through
        session.execute(text("INSERT INTO customers VALUES (1, 'c1', 'Ulm')"))
        privacy.erase(session, 1)
    for days in range(1, 4):
        with clock.pretend(clock.now() + timedelta(days=days)):
            run()
    systems["refuses"].answer = lambda _: Erased()
    abandoned = privacy.outbox.list_abandoned()
    erasures = [each.entry_id for each in abandoned if each.operation is OutboxOperation.ERASE]
    privacy.outbox.requeue(erasures, actor="officer:1")
    run()


def trail(database: Database) -> list[str]:
    with database.read() as session:
        return sorted(session.scalars(select(AuditEvent.type)))


@pytest.fixture
def expected(migrated_sqlite_template: Path, tmp_path: Path) -> list[str]:
    """What the trail has of the same, without a sink."""
    (folder := tmp_path / "expected").mkdir()
    database = open_quickly(f"sqlite:///{shutil.copyfile(migrated_sqlite_template, folder / 'trail.db')}")
    go_through(database, folder, None)
    types = trail(database)
    database.dispose()
    return types


def test_gets_every_event_and_the_trail_none(db: Database, expected: list[str], tmp_path: Path) -> None:
    sink = Own()
    go_through(db, tmp_path, sink)
    assert sorted(each.event.type for each in sink.records) == expected
    assert trail(db) == []
    assert {
        "REQUEST_RECEIVED", "LOCAL_ERASURE_EXECUTED", "ERASURE_EXTERNAL_VERIFIED", "RESOLVER_PAUSED",
        "ERASURE_EXTERNAL_VERIFICATION_FAILED", "ERASURE_READ_BACK_GIVEN_UP", "DEAD_LETTER_OPENED",
        "ERASURE_STEP_FAILED", "ERASURE_EXPIRY_SCHEDULED", "ERASURE_REQUEUED",
    } <= set(expected)  # fmt: skip


def test_that_hands_them_on_leaves_the_trail_as_it_would_be(
    db: Database, expected: list[str], tmp_path: Path
) -> None:
    sink = Both()
    go_through(db, tmp_path, sink)
    assert trail(db) == sorted(each.event.type for each in sink.records) == expected


def test_of_a_runner_gets_what_the_runner_does(db: Database) -> None:
    sink, keyring = Own(), Keyring.parse(new_key())
    outbox = Outbox(db.sessions, keyring=keyring)
    absent = VerifyingRecordingResolver(absent=raising(OSError(), True))
    with db.sessions.begin() as session:
        outbox.enqueue(session, [OutboxEntry("crm", SubjectRef("contact", "c1"), "1")])
    runner = SagaRunner(ResolverRegistry((Registered("crm", "contact", absent),)), outbox, sink)
    asyncio.run(runner.run_once())
    with clock.pretend(clock.now() + timedelta(days=1)):
        asyncio.run(runner.run_once())
    told = {"ERASURE_STEP_SUCCEEDED", "ERASURE_EXTERNAL_VERIFIED", "ERASURE_VERIFICATION_COMPLETED"}
    assert told < {each.event.type for each in sink.records}
    assert trail(db) == []
