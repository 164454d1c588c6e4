"""An export keeps nobody waiting, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import resource
import stat
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from quick_database import open_quickly
from sqlalchemy import func, insert, select, text

from effaced.audit.append import append_one
from effaced.audit.events import RequestRepeated
from effaced.audit.export import export
from effaced.audit.read import AuditFilter
from effaced.audit.spool import AT_ONCE, Spool
from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.core.db import Database
from effaced.core.errors import Unavailable
from effaced.model import ExportFormat


def add_events(db: Database, count: int) -> None:
    row = {"at": clock.now(), "type": "REQUEST_REPEATED", "actor": "system", "payload": {}}
    with db.begin() as session:
        session.execute(insert(AuditEvent), [row] * count)


def take_out(db: Database, folder: Path | None = None) -> Spool:
    return export(db, AuditFilter(type="REQUEST_REPEATED"), ExportFormat.JSONL, actor="cli", spool_dir=folder)


def ids(spool: Spool) -> list[int]:
    return [json.loads(line)["id"] for line in b"".join(spool).splitlines()]


def exports_recorded(db: Database) -> int:
    with db.read() as session:
        return session.scalar(select(func.count()).where(AuditEvent.type == "AUDIT_EXPORTED")) or 0


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """No file of this process can grow beyond this size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_exports_and_writers_go_on_while_a_writer_is_open(migrated_postgres_url: str) -> None:
    database = open_quickly(migrated_postgres_url, lock_timeout_ms=1_000)
    with database.begin() as late:
        append_one(late, RequestRepeated())
        add_events(database, 1)
        with ExitStack() as stack:
            spools = [stack.enter_context(closing(take_out(database))) for _ in range(3)]
            add_events(database, 1)
            assert [ids(each) for each in spools] == [[2], [2], [2]]
    assert ids(take_out(database)) == [1, 2, 6]
    database.dispose()


def test_writers_go_on_while_an_export_is_being_read(db: Database) -> None:
    add_events(db, 2_000)
    spool = take_out(db)
    first = next(iter(spool))
    assert first
    add_events(db, 1)
    with db.read() as session:
        if session.get_bind().dialect.name == "postgresql":
            elsewhere = "pid <> pg_backend_pid() AND datname = current_database()"
            in_transaction = (
                f"SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%' AND {elsewhere}"
            )
            assert session.scalar(text(in_transaction)) == 0
    spool.close()


def test_a_snapshot_sees_nothing_that_is_committed_later(db: Database) -> None:
    add_events(db, 1)
    counting = select(func.count()).select_from(AuditEvent)
    with db.snapshot() as session:
        assert session.scalar(counting) == 1
        add_events(db, 1)
        assert session.scalar(counting) == 1
    with db.read() as session:
        assert session.scalar(counting) == 2


def test_the_file_has_no_name_and_is_for_its_owner_only(db: Database, tmp_path: Path) -> None:
    add_events(db, 10)
    folder = tmp_path / "spool"
    folder.mkdir()
    spool = take_out(db, folder)
    status = os.fstat(spool._file.fileno())
    assert (stat.S_IMODE(status.st_mode), status.st_nlink, status.st_size) == (0o600, 0, spool.size)
    assert list(folder.iterdir()) == []
    spool.close()


def test_only_few_at_a_time_are_made_and_the_next_one_once_one_has_ended(db: Database) -> None:
    add_events(db, 1)
    spools = [take_out(db) for _ in range(AT_ONCE)]
    with pytest.raises(Unavailable, match="exports are under way"):
        take_out(db)
    assert ids(spools[0]) == [1]
    take_out(db).close()
    spools[1].close()
    take_out(db).close()
    del spools
    for spool in [take_out(db) for _ in range(AT_ONCE)]:
        spool.close()


def test_a_full_disk_is_told_and_no_export_is_recorded(db: Database) -> None:
    add_events(db, 20_000)
    for _ in range(AT_ONCE + 1):
        with files_up_to(500_000), pytest.raises(Unavailable, match=r"EFFACED_SPOOL_DIR\) is full"):
            take_out(db)
    assert exports_recorded(db) == 0


def test_a_folder_that_is_not_there_is_told_and_no_export_is_recorded(db: Database, tmp_path: Path) -> None:
    for _ in range(AT_ONCE + 1):
        with pytest.raises(Unavailable, match=r"EFFACED_SPOOL_DIR\) can't be written"):
            take_out(db, tmp_path / "missing")
    assert exports_recorded(db) == 0


def test_ten_times_the_events_take_the_same_memory(db: Database) -> None:
    def peak() -> int:
        tracemalloc.start()
        for _ in take_out(db):
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    add_events(db, 2_000)
    take_out(db).close()  # what is kept for good is made by now
    few = peak()
    add_events(db, 18_000)
    assert peak() < 2 * few
