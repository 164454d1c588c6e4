"""Making exports: one file and one event, whoever is killed, late, or works beside."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from export_cast import add_events, chunks_stored, exports_recorded
from sqlalchemy import select, text, update
from sqlalchemy.orm import Session
from waiting import PATIENCE

from effaced.accounts.api_keys import create_api_key
from effaced.accounts.key_rules import NewApiKey
from effaced.audit.append import Record
from effaced.audit.exports import claim
from effaced.audit.exports.claim import LEASE, MOST_ATTEMPTS, Claimed
from effaced.audit.exports.create import create_export
from effaced.audit.exports.make import ExportMaker
from effaced.audit.exports.read import CHUNK_BYTES, FILE_KEPT, read_file
from effaced.audit.exports.remove import remove_export
from effaced.audit.read import AuditFilter
from effaced.audit.sink import with_sink
from effaced.audit.tables import AuditExport, AuditExportChunk
from effaced.core import clock
from effaced.core.crypto import Keyring, new_key
from effaced.core.db import Database
from effaced.model import ExportFormat, ExportStatus

REPEATED = AuditFilter(type="REQUEST_REPEATED")


class House:
    """A database with a trail, and keys to seal with."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.keys = new_key()
        self.keyring = Keyring.parse(self.keys)
        with db.begin() as session:
            key, _ = create_api_key(session, NewApiKey(name="auditor", approvals_needed=1), actor="cli")
        self.key_id = key.id

    def ask(self) -> UUID:
        with self.db.begin() as session:
            asked = create_export(
                session, REPEATED, ExportFormat.JSONL, api_key_id=self.key_id, own_request_only=False
            )
        return asked.id

    def maker(self, meanwhile: Callable[[], object] = lambda: None) -> ExportMaker:
        """A maker to which something happens between its claim and its first look at the trail."""

        def filter_of(_session: Session, _claimed: Claimed) -> AuditFilter:
            meanwhile()
            return REPEATED

        return ExportMaker(self.db, self.keyring, filter_of)

    def export(self, export_id: UUID) -> AuditExport:
        with self.db.read() as session:
            return session.get_one(AuditExport, export_id)

    def ids(self, export_id: UUID) -> list[int]:
        """The events of the file, which must be the one that its sums tell of."""
        export = self.export(export_id)
        data = b"".join(read_file(self.db, self.keyring, export))
        assert (len(data), hashlib.sha256(data).hexdigest()) == (export.size, export.sha256)
        found = [json.loads(line)["id"] for line in data.splitlines()]
        assert len(found) == export.events
        return found

    def end_lease(self) -> None:
        with self.db.begin() as session:
            session.execute(update(AuditExport).values(gate=datetime.fromisoformat("2020-01-01T00:00:00Z")))

    def repeated(self) -> list[int]:
        with self.db.read() as session:
            found = session.scalars(
                text("SELECT id FROM effaced_audit_events WHERE type = 'REQUEST_REPEATED' ORDER BY id")
            )
            return list(found)


@pytest.fixture
def house(db: Database) -> House:
    return House(db)


def test_a_file_of_several_chunks_is_complete_and_none_is_larger_than_the_others(house: House) -> None:
    add_events(house.db, 4_000)
    export_id = house.ask()
    assert house.maker().run() == 1
    assert house.ids(export_id) == house.repeated()
    with house.db.read() as session:
        sizes = [len(each) for each in session.scalars(select(AuditExportChunk.sealed))]
    assert len(sizes) == house.export(export_id).chunks >= 2
    assert max(sizes) < CHUNK_BYTES + 100


def test_what_is_asked_for_together_is_made_in_one_run(house: House) -> None:
    asked = [house.ask() for _ in range(3)]
    assert house.maker().run() == 3
    assert {house.export(each).status for each in asked} == {ExportStatus.READY}
    assert exports_recorded(house.db) == 3


def test_a_ready_one_expires_a_day_later(house: House) -> None:
    export_id = house.ask()
    house.maker().run()
    made = house.export(export_id)
    assert made.expires_at - made.ready_at == FILE_KEPT  # type: ignore[operator]


def test_it_sees_nothing_that_is_committed_while_it_is_made(house: House) -> None:
    add_events(house.db, 2)
    export_id = house.ask()

    def filter_of(session: Session, _claimed: Claimed) -> AuditFilter:
        session.scalar(text("SELECT count(*) FROM effaced_audit_events"))
        add_events(house.db, 1)
        return REPEATED

    ExportMaker(house.db, house.keyring, filter_of).run()
    assert house.ids(export_id) == house.repeated()[:2]


class TestTwoProcesses:
    def test_make_one_file_and_one_event(self, house: House) -> None:
        add_events(house.db, 500)
        export_id = house.ask()
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda _: house.maker().run(), range(4)))
        assert sorted(made) == [0, 0, 0, 1]
        assert house.ids(export_id) == house.repeated()
        assert exports_recorded(house.db) == 1

    def test_never_have_one_between_them_while_the_lease_holds(self, house: House) -> None:
        export_id = house.ask()
        others: list[int] = []
        house.maker(lambda: others.append(house.maker().run())).run()
        assert others == [0]
        assert house.export(export_id).attempts == 1

    @pytest.mark.parametrize("events", [0, 10])
    def test_one_that_lost_its_lease_writes_nothing_more(self, house: House, events: int) -> None:
        add_events(house.db, events)
        export_id = house.ask()

        def be_late() -> None:
            house.end_lease()
            assert house.maker().run() == 1

        assert house.maker(be_late).run() == 0
        assert house.ids(export_id) == house.repeated()
        assert (exports_recorded(house.db), chunks_stored(house.db)) == (1, min(events, 1))
        assert house.export(export_id).attempts == 2

    def test_one_whose_export_another_is_making_writes_nothing(self, house: House) -> None:
        add_events(house.db, 10)
        export_id = house.ask()

        def be_late() -> None:
            house.end_lease()
            with house.db.begin() as session:
                assert claim.claim(session)

        assert house.maker(be_late).run() == 0
        assert (house.export(export_id).status, house.export(export_id).token) == (ExportStatus.RUNNING, 2)
        assert (exports_recorded(house.db), chunks_stored(house.db)) == (0, 0)

    def test_one_whose_export_is_deleted_meanwhile_leaves_nothing(self, house: House) -> None:
        add_events(house.db, 10)
        export_id = house.ask()

        def delete() -> None:
            with house.db.begin() as session:
                remove_export(session, session.get_one(AuditExport, export_id, with_for_update=True))

        assert house.maker(delete).run() == 0
        assert (house.export(export_id).status, chunks_stored(house.db)) == (ExportStatus.EXPIRED, 0)
        assert exports_recorded(house.db) == 0


KILLED = """
import os, signal, sys
from sqlalchemy import event
from effaced.audit.exports.make import ExportMaker
from effaced.audit.exports.remove import remove_export
from effaced.audit.read import AuditFilter
from effaced.audit.sink import with_sink
from effaced.core.crypto import Keyring
from effaced.core.db import Database
db, left = Database(sys.argv[1]), int(sys.argv[3])
@event.listens_for(db.engine, "after_cursor_execute")
def die(_connection, _cursor, statement, *_):
    global left
    if sys.argv[4] in statement:
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
which = AuditFilter(type="REQUEST_REPEATED")
ExportMaker(db, Keyring.parse(sys.argv[2]), lambda *_: which).run()
"""
CHUNK, READY = "INSERT INTO effaced_audit_export_chunks", "sha256="


class TestAKilledProcess:
    @pytest.mark.parametrize(("number", "statement", "left"), [(1, CHUNK, 0), (3, CHUNK, 2), (1, READY, 3)])
    def test_neither_loses_nor_doubles_the_file_or_its_event(
        self, house: House, migrated_url: str, number: int, statement: str, left: int
    ) -> None:
        add_events(house.db, 4_000)
        export_id = house.ask()
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, migrated_url, house.keys, str(number), statement],
            timeout=PATIENCE,
            check=False,
        )
        assert killed.returncode == -9
        assert (house.export(export_id).status, exports_recorded(house.db)) == (ExportStatus.RUNNING, 0)
        assert chunks_stored(house.db) == left
        assert house.maker().run() == 0, "the lease holds"
        with clock.pretend(clock.now() + LEASE + timedelta(seconds=1)):
            assert house.maker().run() == 1
        assert house.ids(export_id) == house.repeated()
        assert (exports_recorded(house.db), chunks_stored(house.db)) == (1, house.export(export_id).chunks)

    def test_is_replaced_only_so_often(self, house: House) -> None:
        export_id = house.ask()
        for _ in range(MOST_ATTEMPTS):
            with house.db.begin() as session:
                assert claim.claim(session)
            house.end_lease()
        assert house.maker().run() == 0
        assert house.export(export_id).status is ExportStatus.FAILED
        assert house.export(export_id).last_error == "interrupted"

    def test_whose_clock_is_set_back_keeps_nobody_waiting_for_longer(self, house: House) -> None:
        house.ask()
        with clock.pretend(clock.now() + timedelta(days=30)), house.db.begin() as session:
            assert claim.claim(session)
        with clock.pretend(clock.now()) as now:
            with house.db.begin() as session:
                assert claim.restart_waits(session) == 1
            now.advance(LEASE)
            assert house.maker().run() == 1


class BrokenSink:
    def append(self, session: Session, records: Sequence[Record]) -> None:
        raise OSError


class TestAFailure:
    def fail(self) -> None:
        raise OSError("Anna Ash")

    def test_is_tried_again_after_a_while_and_holds_up_no_other(self, house: House) -> None:
        failing, second = house.ask(), house.ask()
        with clock.pretend(clock.now()) as now:
            first_only = iter([self.fail])
            assert house.maker(lambda: next(first_only, lambda: None)()).run() == 1
            assert house.export(failing).status is ExportStatus.PENDING
            assert house.export(failing).last_error == "OSError"
            assert house.export(second).status is ExportStatus.READY
            assert house.maker().run() == 0
            now.advance(timedelta(minutes=1))
            assert house.maker().run() == 1
        assert exports_recorded(house.db) == 2

    def test_that_lasts_is_given_up(self, house: House) -> None:
        export_id = house.ask()
        for _ in range(MOST_ATTEMPTS):
            assert house.maker(self.fail).run() == 0
            house.end_lease()
        assert house.export(export_id).status is ExportStatus.FAILED
        assert house.maker().run() == 0

    def test_of_the_trail_keeps_the_file_from_being_ready(self, house: House) -> None:
        add_events(house.db, 10)
        export_id = house.ask()
        sessions, house.db.sessions = house.db.sessions, with_sink(house.db.sessions, BrokenSink())
        house.maker().run()
        house.db.sessions = sessions
        assert house.export(export_id).status is ExportStatus.PENDING
        house.end_lease()
        house.maker().run()
        assert house.ids(export_id) == house.repeated()
        assert exports_recorded(house.db) == 1


def test_a_process_that_is_told_to_stop_leaves_it_to_others_at_once(house: House) -> None:
    add_events(house.db, 10)
    export_id = house.ask()
    stopped = house.maker(lambda: stopped.stop())
    assert stopped.run() == 0
    assert (house.export(export_id).status, house.export(export_id).attempts) == (ExportStatus.PENDING, 0)
    assert house.maker().run() == 1


def test_a_key_that_was_rotated_away_is_told_when_the_file_is_fetched(house: House) -> None:
    add_events(house.db, 1)
    export_id = house.ask()
    house.maker().run()
    both = Keyring.parse(f"{new_key('k2')},{house.keys}")
    assert b"".join(read_file(house.db, both, house.export(export_id)))
    with pytest.raises(Exception, match="has no key 'k1'"):
        b"".join(read_file(house.db, Keyring.parse(new_key("k2")), house.export(export_id)))


@pytest.mark.parametrize("times", [10, pytest.param(50, marks=pytest.mark.drill)])
def test_many_more_events_take_the_same_memory_in_making_and_sending(house: House, times: int) -> None:
    def peak() -> int:
        export_id = house.ask()
        tracemalloc.start()
        house.maker().run()
        for _ in read_file(house.db, house.keyring, house.export(export_id)):
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    add_events(house.db, 2_000)
    peak()  # what is kept for good is made by now
    few = peak()
    for _ in range(times - 1):
        add_events(house.db, 2_000)
    assert peak() < 2 * few
