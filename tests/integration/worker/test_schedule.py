"""What the scheduler does besides ringing: counting tries, and forgetting those whose story is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from attempts_cast import Try, ended_entry, hours, write
from sqlalchemy import func, select, update

from effaced.accounts.api_keys import create_api_key
from effaced.audit.exports.create import create_export
from effaced.audit.read import AuditFilter
from effaced.audit.tables import AuditExport
from effaced.core import clock
from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.model import ExportFormat, ExportStatus, OutboxStatus, StepOutcome
from effaced.outbox.absences import recent_alarms
from effaced.outbox.tables import OutboxRow
from effaced.retries.overrides import ALL
from effaced.retries.tables import Attempt
from effaced.runtime import Runtime
from effaced.worker import schedule
from effaced.worker.bell import RqBell
from effaced.worker.schedule import Scheduler

DAYS_AGO = timedelta(days=2)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HALF_A_MINUTE = timedelta(seconds=30)


@pytest.fixture
def scheduler(db: Database, migrated_url: str, redis_url: str) -> Scheduler:
    settings = Settings(database_url=migrated_url, redis_url=redis_url, keys=new_key())  # type: ignore[arg-type]
    return Scheduler(Runtime(settings, database=db), RqBell(settings))


def test_the_first_sweep_counts_tries_and_forgets_what_is_over(db: Database, scheduler: Scheduler) -> None:
    then = clock.now() - DAYS_AGO
    write(db, [Try(then, entry_id=ended_entry(db, then)), Try(clock.now())])
    scheduler.tick()
    counted = [kept["attempts"] for (_, resolver), kept in hours(db).items() if resolver == ALL]
    assert sum(counted) == 2
    with db.read() as session:
        assert session.scalar(select(func.count()).select_from(Attempt)) == 1


def test_the_sweep_that_counts_tells_of_a_system_that_suddenly_knows_nobody(
    db: Database, scheduler: Scheduler
) -> None:
    now = clock.now()
    entries = [ended_entry(db, now) for _ in range(20)]
    write(db, [Try(now, entry_id=each) for each in entries])
    with db.begin() as session:
        session.execute(update(OutboxRow).values(outcome=StepOutcome.ALREADY_ABSENT))
    scheduler.tick()
    with db.read() as session:
        assert list(recent_alarms(session)) == ["crm"]


@pytest.mark.parametrize(("every", "expected"), [(schedule._COUNT_EVERY, 0), (0.0, 1)])
def test_counting_comes_round_when_its_time_has_passed(
    db: Database, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, every: float, expected: int
) -> None:
    monkeypatch.setattr(schedule, "_COUNT_EVERY", every)
    scheduler.tick()
    write(db, [Try(clock.now())])
    scheduler.tick()
    assert sum(kept["attempts"] for (_, name), kept in hours(db).items() if name == ALL) == expected


def test_a_sweep_has_waits_end_in_time_after_the_clock_was_set_back(
    db: Database, scheduler: Scheduler
) -> None:
    entry_id = ended_entry(db, NOON)
    with clock.pretend(NOON) as now:
        with db.begin() as session:
            values = {"status": OutboxStatus.FAILED, "gate": NOON + HALF_A_MINUTE, "waiting_since": NOON}
            session.execute(update(OutboxRow).values(values))
        now.advance(-timedelta(hours=1))
        scheduler.tick()
        with db.read() as session:
            assert session.get_one(OutboxRow, entry_id).gate == now() + HALF_A_MINUTE


def test_a_sweep_makes_the_exports_that_are_due_and_does_not_wait_for_them(
    db: Database, scheduler: Scheduler
) -> None:
    with db.begin() as session:
        key, _ = create_api_key(session, name="auditor", approvals_needed=1, actor="cli")
    for _ in range(2):
        with db.begin() as session:
            create_export(session, AuditFilter(), ExportFormat.CSV, api_key_id=key.id, own_request_only=False)
        scheduler.tick()
        scheduler.exports.wait()
    with db.read() as session:
        assert list(session.scalars(select(AuditExport.status))) == [ExportStatus.READY] * 2
