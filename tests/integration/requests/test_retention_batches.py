"""The end of a retention with very many rows: short transactions, whoever makes them, that add up."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pytest
from retention_cast import LAST_DUE, MAP, Shop, forbid, on
from sqlalchemy import Connection, event, select

from effaced.core import clock
from effaced.core.db import Database
from effaced.requests.tables import Retention
from effaced.retention import run as retention_run
from effaced.retention.read import list_due
from effaced.retention.run import iterate_due_requests, reassess_stale

MORE = range(30, 37)
ALL = 2 + len(MORE)


@pytest.fixture
def shop(db: Database, tmp_path: Path) -> Shop:
    """Alice has nine invoices, all due in the end, and no lines; a transaction may change two rows."""
    shop = Shop(db, tmp_path)
    rows = ", ".join(f"({number}, 1, 'A-{number}', '2016-03-01')" for number in MORE)
    shop.run("DELETE FROM lines", f"INSERT INTO invoices VALUES {rows}")
    shop.batch_rows = 2
    shop.erase("1")
    return shop


def left(shop: Shop) -> int:
    return len(shop.rows("SELECT id FROM invoices WHERE customer_id = 1"))


def told(shop: Shop) -> list[int]:
    return [each.payload["rows"] for each in shop.events("RETENTION_ENDED")]


def begun(shop: Shop) -> list[tuple[int, int]]:
    return shop.rows('SELECT rows, "of" FROM effaced_retention_endings')


class _Died(BaseException):
    pass


@contextmanager
def dying(shop: Shop, at_commit: int) -> Iterator[None]:
    commits = 0

    def die(connection: Connection) -> None:
        nonlocal commits
        commits += not connection.get_execution_options().get("effaced_read_only", False)
        if commits == at_commit:
            raise _Died

    event.listen(shop.db.engine, "commit", die)
    try:
        with pytest.raises(_Died):
            yield
    finally:
        event.remove(shop.db.engine, "commit", die)


def test_each_transaction_tells_of_its_own_rows_and_together_they_are_all(shop: Shop) -> None:
    (result,) = shop.end(LAST_DUE)
    assert [(each.table, each.deleted) for each in result.done] == [("invoices", ALL)]
    assert told(shop) == [2, 2, 2, 2, 1]
    assert (left(shop), begun(shop), shop.kept()["invoices"].subject_sealed) == (0, [], None)


def test_the_scheduler_goes_on_where_somebody_s_process_has_died_and_on_their_word(shop: Shop) -> None:
    with dying(shop, at_commit=3):
        shop.end(LAST_DUE)
    assert (left(shop), begun(shop)) == (ALL - 4, [(4, ALL)])
    with on(LAST_DUE):
        assert shop.ender.end_due(on_schedule=True) == 0  # the dead one's five minutes
        with clock.pretend(clock.now() + timedelta(minutes=6)):
            assert shop.ender.end_due(on_schedule=False) == ALL - 4
    events = shop.events("RETENTION_ENDED")
    assert (sum(told(shop)), begun(shop)) == (ALL, [])
    assert len({(each.actor, each.payload["note_id"]) for each in events}) == 1


def test_what_nobody_has_the_patience_for_is_left_to_the_scheduler_and_shown(shop: Shop) -> None:
    (result,) = shop.end(LAST_DUE, until=clock.monotonic())
    assert (result.finished, result.rows, left(shop)) == (False, 0, ALL)
    with on(LAST_DUE):
        with shop.db.read() as session:
            (line,) = list_due(session, shop.keyring, shop.plan).items
        assert line.erasing == (0, 0)
        assert shop.ender.end_due(on_schedule=False) == ALL
    assert {each.actor for each in shop.events("RETENTION_ENDED")} == {"cli"}


def test_the_scheduler_stops_in_time_and_goes_on_at_the_next_sweep(shop: Shop) -> None:
    with on(LAST_DUE):
        assert shop.ender.end_due(on_schedule=True, until=clock.monotonic()) == 0
        assert shop.ender.end_due(on_schedule=True) == ALL
        assert shop.ender.end_due(on_schedule=True) == 0


def test_a_refusal_undoes_its_own_transaction_only_and_nobody_tries_for_ever(shop: Shop) -> None:
    (result,) = shop.end(LAST_DUE, on_progress=lambda *_: forbid(shop))
    assert "refuses to erase in table 'invoices'" in (result.error or "")
    assert sum(told(shop)) == result.rows == ALL - left(shop) == 2
    assert begun(shop) == []
    with on(LAST_DUE):
        assert shop.ender.end_due(on_schedule=True) == 0
    assert len(shop.events("RETENTION_FAILED")) == 1


def test_a_chain_of_rows_goes_from_its_last_to_its_first(shop: Shop) -> None:
    shop.run("ALTER TABLE invoices ADD COLUMN corrects integer REFERENCES invoices")
    shop.use(MAP.replace("issued_on: *tax", "issued_on: *tax\n      corrects: *tax"))
    shop.run(*(f"UPDATE invoices SET corrects = {n - 1} WHERE id = {n}" for n in MORE if n > MORE[0]))
    (result,) = shop.end(LAST_DUE)
    assert (result.error, result.rows, left(shop)) == (None, ALL, 0)


def test_two_officers_at_once_erase_each_row_once_and_both_are_told(shop: Shop) -> None:
    start = Barrier(2)

    def officer(_number: int) -> int:
        start.wait()
        (result,) = list(shop.ender.end_requests([request], actor="cli", reason="over"))
        assert result.error is None
        return result.rows

    request = shop.kept()["invoices"].request_id
    with on(LAST_DUE), ThreadPoolExecutor(2) as officers:
        done = list(officers.map(officer, range(2)))
    assert sum(done) == sum(told(shop)) == ALL
    assert (left(shop), begun(shop)) == (0, [])


def test_all_due_requests_are_found_page_by_page(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention_run, "_AT_ONCE", 1)
    shop.erase("2")
    forbid(shop, 20)  # one that fails is not taken up again and again
    with on(LAST_DUE):
        taken = iterate_due_requests(shop.db, shop.plan)
        results = list(shop.ender.end_requests(taken, actor="cli", reason="over"))
    assert sorted(each.rows for each in results) == [0, ALL]


def test_who_stops_it_at_the_keyboard_wants_nobody_to_go_on(shop: Shop) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shop.end(LAST_DUE, on_progress=interrupted)
    with on(LAST_DUE + timedelta(days=1)):
        assert shop.ender.end_due(on_schedule=False) == 0
    assert (left(shop), told(shop), begun(shop)) == (ALL - 2, [2], [])


@pytest.mark.parametrize("migrated_url", ["postgresql"], indirect=True)
def test_the_register_is_left_to_whoever_is_just_ending_it(shop: Shop) -> None:
    """Where there can be two: SQLite has one writer at a time."""
    before = shop.kept()["invoices"]
    with on(LAST_DUE), shop.db.begin() as session:
        session.execute(select(Retention).with_for_update()).all()
        reassess_stale(shop.db, shop.keyring, shop.plan)
    assert shop.kept()["invoices"].looked_at == before.looked_at
