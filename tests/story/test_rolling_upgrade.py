"""The database is migrated while processes run: those that are too old for it stop, the others go on."""

from __future__ import annotations

from pathlib import Path

import loopback
import pytest
from company_house import Company, company, eventually
from sqlalchemy import text

from effaced.core.db.schema_level import code_level

SENTENCE = "upgrade effaced here and restart it"


def migrate_to_the_future(shop: Company, oldest_code: int) -> None:
    """As `effaced migrate` of a later version leaves the database."""
    with shop.db.begin() as session:
        session.execute(
            text("INSERT INTO effaced_schema_levels (revision, oldest_code) VALUES ('9000', :oldest)"),
            {"oldest": oldest_code},
        )
        session.execute(text("UPDATE effaced_alembic_version SET version_num = '9000'"))


def test_processes_that_are_too_old_stop_and_say_why(
    migrated_url: str, redis_url: str, tmp_path: Path
) -> None:
    with company(migrated_url, redis_url, tmp_path) as shop:
        address = shop.start_web()
        worker, scheduler = shop.start("worker"), shop.start("scheduler")
        eventually(lambda: "worker_started" in shop.log("worker"), "the worker to start")
        eventually(lambda: "scheduler_started" in shop.log("scheduler"), "the scheduler to start")
        first = shop.post(shop.people[0])
        assert first.status_code == 201
        # A call under way would be a result that can't be written: the worker tries that for a minute.
        eventually(lambda: shop.get(first.json()["id"])["status"] == "completed", "the calls to end")
        migrate_to_the_future(shop, code_level() + 1)
        eventually(lambda: shop.ask(first.json()["id"]).status_code == 503, "the API to answer 503")
        assert SENTENCE in shop.post(shop.people[1]).json()["detail"]
        page = loopback.get(f"{address}/console/sign-in")
        assert (page.status_code, SENTENCE in page.text) == (503, True)
        assert loopback.get(f"{address}/readyz").status_code == 503
        assert loopback.get(f"{address}/healthz").status_code == 200
        eventually(lambda: scheduler.poll() == 1, "the scheduler to end")
        assert SENTENCE in shop.log("scheduler")
        drained = shop.start("drain")
        assert drained.wait(60) == 1
        assert SENTENCE in shop.log("drain")
        # It takes no more jobs after the first that it may not do.
        from effaced.core.config import Settings
        from effaced.worker.bell import RqBell

        settings = Settings(database_url=migrated_url, redis_url=redis_url, keys=shop.environ["EFFACED_KEYS"])  # type: ignore[arg-type]

        def worker_ended() -> bool:
            if worker.poll() is None:
                RqBell(settings).ring(["crm"])
            return worker.poll() == 1

        eventually(worker_ended, "the worker to end")
        assert SENTENCE in shop.log("worker")


def test_processes_that_the_schema_tolerates_go_on(migrated_url: str, redis_url: str, tmp_path: Path) -> None:
    with company(migrated_url, redis_url, tmp_path) as shop:
        shop.start_web()
        migrate_to_the_future(shop, code_level())
        request_id = shop.post(shop.people[0]).json()["id"]
        assert shop.start("drain").wait(60) == 0
        assert shop.get(request_id)["status"] == "completed"
        assert loopback.get(f"{shop.address}/readyz").status_code == 200


@pytest.mark.parametrize("command", ["officer list", "deadletter list", "audit export", "resolver list"])
def test_commands_refuse_a_schema_that_is_too_new(
    migrated_sqlite_url: str, tmp_path: Path, command: str
) -> None:
    with company(migrated_sqlite_url, "redis://127.0.0.1:1/0", tmp_path) as shop:
        migrate_to_the_future(shop, 9000)
        assert shop.start(*command.split()).wait(60) == 1
        assert SENTENCE in shop.log(command.split()[0])
