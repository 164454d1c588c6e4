"""The `sql` kind when the other database is slow, locked, away or closed to us, or when we are killed."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from other_database import Shop
from sqlalchemy import make_url
from waiting import eventually

from effaced.model import SubjectRef, new_id
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    CallTimeout,
    CredentialsRefused,
    Erased,
    TransientFailure,
    Unreachable,
)
from effaced.resolvers.sql import SqlResolver

# A row that takes for ever to delete, whatever the engine.
SLOW = {
    "sqlite": (
        "CREATE TRIGGER slow BEFORE DELETE ON users BEGIN"
        " SELECT count(*) FROM"
        " (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n); END",
    ),
    "postgresql": (
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$"
        " BEGIN PERFORM pg_sleep(600); RETURN OLD; END $$",
        "CREATE TRIGGER slow BEFORE DELETE ON users FOR EACH ROW EXECUTE FUNCTION slow()",
    ),
}


def slow(shop: Shop) -> None:
    shop.run(*SLOW["postgresql" if shop.is_postgres else "sqlite"])


def quick(shop: Shop) -> None:
    shop.run("DROP TRIGGER slow ON users" if shop.is_postgres else "DROP TRIGGER slow")


def erase(resolver: SqlResolver, value: object, key: Any = None) -> Any:
    return asyncio.run(resolver.erase_subject(SubjectRef("shop", str(value)), key=key or new_id()))


def erasing(resolver: SqlResolver, value: object, key: Any = None) -> asyncio.Task[Any]:
    call = resolver.erase_subject(SubjectRef("shop", str(value)), key=key or new_id())
    return asyncio.create_task(call)


def in_the_middle(shop: Shop) -> list[Any]:
    """What of ours PostgreSQL is at, in the slow trigger."""
    return shop.rows(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'effaced' AND datname = current_database()"
        " AND wait_event = 'PgSleep'"
    )


class TestTime:
    def test_a_statement_that_takes_too_long_is_ended_and_undone(self, shop: Shop):
        # Where the machine is slow, a second may not be enough to make the ledger.
        erase(shop.resolver(), shop.person())
        anna, before = shop.person(), shop.calls()
        slow(shop)
        with pytest.raises(CallTimeout):
            erase(shop.resolver(timeout=1), anna)
        assert [len(shop.rows(f"SELECT 1 FROM {table}")) for table in ("users", "orders")] == [1, 1]
        assert shop.calls() == before

    def test_the_same_call_does_it_once_it_can(self, shop: Shop):
        anna, key, resolver = shop.person(), new_id(), shop.resolver(timeout=1)
        slow(shop)
        with pytest.raises(CallTimeout):
            erase(resolver, anna, key)
        quick(shop)
        assert Erased() == erase(resolver, anna, key)

    def test_a_caller_who_stops_waiting_leaves_no_transaction_behind(self, fresh_postgres_url, tmp_path):
        shop = Shop(fresh_postgres_url, tmp_path)
        anna = shop.person()
        slow(shop)

        async def give_up() -> None:
            async with shop.resolver(timeout=60) as resolver:
                call = erasing(resolver, anna)
                while not await asyncio.to_thread(in_the_middle, shop):
                    await asyncio.sleep(0.01)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                assert in_the_middle(shop) == []

        asyncio.run(give_up())
        assert len(shop.rows("SELECT 1 FROM orders")) == 1

    def test_a_lock_is_not_waited_for_longer_than_the_file_says(self, shop: Shop):
        resolver, anna = shop.resolver(lock_timeout=0.05), shop.person()
        erase(resolver, 4711)  # with the plan made and the ledger there
        with shop.locked(), pytest.raises(CallTimeout) as told:
            erase(resolver, anna)
        assert ("sqlstate_55P03" if shop.is_postgres else "sqlite_busy") == told.value.code

    def test_others_in_the_event_loop_go_on_meanwhile(self, shop: Shop):
        resolver, anna = shop.resolver(timeout=1), shop.person()
        slow(shop)

        async def beside() -> int:
            turns = 0
            call = erasing(resolver, anna)
            while not call.done():
                await asyncio.sleep(0.01)
                turns += 1
            call.exception()
            return turns

        assert asyncio.run(beside()) > 3


class TestGone:
    def test_a_database_that_is_away_is_passing_trouble(self, shop: Shop):
        with shop.away(), pytest.raises(Unreachable):
            erase(shop.resolver(), 1)

    def test_a_file_that_is_not_there_is_not_made(self, fresh_sqlite_url, tmp_path):
        shop = Shop(fresh_sqlite_url, tmp_path)
        missing = tmp_path / "no" / "shop.db"
        with pytest.raises(Unreachable) as told:
            erase(shop.resolver(url=f"sqlite:///{missing}"), 1)
        assert told.value.code == "sqlite_cantopen"
        assert not missing.parent.exists()

    def test_a_connection_that_is_cut_undoes_everything(self, fresh_postgres_url, tmp_path):
        shop = Shop(fresh_postgres_url, tmp_path)
        anna, key, resolver = shop.person(), new_id(), shop.resolver(timeout=60)
        slow(shop)

        async def cut() -> None:
            call = erasing(resolver, anna, key)
            while not (found := await asyncio.to_thread(in_the_middle, shop)):
                await asyncio.sleep(0.01)
            shop.run(f"SELECT pg_terminate_backend({found[0][0]})")
            with pytest.raises(TransientFailure):
                await call

        asyncio.run(cut())
        quick(shop)
        assert len(shop.rows("SELECT 1 FROM orders")) == 1
        assert Erased() == erase(resolver, anna, key)


class TestTheDoor:
    def test_a_wrong_password_is_refused_credentials(self, fresh_postgres_url, tmp_path):
        shop = Shop(fresh_postgres_url, tmp_path)
        with shop.role("SELECT") as url:
            wrong = make_url(url).set(password="rotated").render_as_string(hide_password=False)
            with pytest.raises(CredentialsRefused) as told:
                erase(shop.resolver(url=wrong), 1)
        assert told.value.code == "login_refused"
        assert "clerk" not in str(told.value)

    def test_a_role_that_is_gone_is_refused_credentials(self, fresh_postgres_url, tmp_path):
        shop = Shop(fresh_postgres_url, tmp_path)
        nobody = make_url(shop.url).set(username="nobody-here").render_as_string(hide_password=False)
        with pytest.raises(CredentialsRefused):
            erase(shop.resolver(url=nobody), 1)

    def test_a_table_that_may_not_be_made_is_a_right_that_lacks(self, fresh_postgres_url, tmp_path):
        shop = Shop(fresh_postgres_url, tmp_path)
        with shop.role("SELECT, UPDATE, DELETE") as url:
            anna = shop.person()
            with pytest.raises(CredentialsRefused) as told:
                erase(shop.resolver(url=url), anna)
            assert told.value.code == "sqlstate_42501"
            assert Erased() == erase(shop.resolver(url=url, ledger=False), anna)


def test_a_process_that_is_killed_in_the_middle_has_done_nothing(shop: Shop, tmp_path: Path):
    anna, key = shop.person(), new_id()
    resolver = shop.resolver()
    assert AlreadyAbsent() == erase(resolver, 4711)
    slow(shop)
    script = dedent(f"""
        import asyncio, sys
        from datetime import timedelta
        from uuid import UUID
        from effaced.model import SubjectRef
        from effaced.resolvers.protocols import Limits
        from effaced.resolvers.sql import from_config
        url, path = sys.argv[1:]
        made = from_config("shop", {{"url": url, "map": path}}, Limits(timeout=timedelta(seconds=60)))
        asyncio.run(made.erase_subject(SubjectRef("shop", "{anna}"), key=UUID("{key}")))
    """)
    command = [sys.executable, "-c", script, shop.url, str(tmp_path / "shop.yaml")]
    with subprocess.Popen(command) as process:
        if shop.is_postgres:
            eventually(lambda: in_the_middle(shop), "the call to be in the middle")
        else:
            eventually(lambda: Path(f"{shop.path}-journal").exists(), "the call to be in the middle")
        process.send_signal(signal.SIGKILL)
        process.wait()
    if shop.is_postgres:  # the server notices when the statement ends; an operator would not wait either
        for (pid,) in in_the_middle(shop):
            shop.run(f"SELECT pg_terminate_backend({pid}, 5000)")
    quick(shop)
    assert len(shop.rows("SELECT 1 FROM orders")) == 1
    assert Erased() == erase(resolver, anna, key)
    assert [(outcome, rows) for _, outcome, _, rows in shop.calls()] == [("already_absent", 0), ("erased", 2)]
