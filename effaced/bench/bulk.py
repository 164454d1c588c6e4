"""A person with very many rows: how long the longest transaction is, and whom it keeps waiting."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from sqlalchemy import event, text

from effaced.bench.ground import Ground, Progress, prepare
from effaced.bench.report import Report, ratio
from effaced.core import clock
from effaced.core.errors import Unavailable
from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import ErasurePlan, plan_erasure
from effaced.model import RequestKind
from effaced.requests.execute import Executor
from effaced.requests.intake import IntakeRequest, receive
from effaced.resolvers.registry import ResolverRegistry

_MAP = """
version: 1
subject: {table: bench_people, key: id}
tables:
  bench_people: {columns: {id: delete, email: delete}}
  bench_events:
    link: {to: bench_people, on: {person: id}}
    columns: {id: delete, person: delete, note: delete}
"""
_COMPANY = """
    CREATE TABLE bench_people (id integer PRIMARY KEY, email text);
    CREATE TABLE bench_events (id bigint PRIMARY KEY, person integer REFERENCES bench_people, note text);
    INSERT INTO bench_people SELECT n, n || '@people.example' FROM generate_series(1, 3) n;
    INSERT INTO bench_events SELECT n, CASE WHEN n % 100 = 0 THEN 3 ELSE 1 + n % 2 END, 'what happened'
      FROM generate_series(1, 2 * :rows) n;
    CREATE INDEX ON bench_events (person);
    ANALYZE bench_events
"""


def bench_bulk(*, rows: int, batch_rows: int, url: str | None, progress: Progress) -> Report:
    """Erase a person with `rows` rows in one table, and another with as many in one transaction."""
    with prepare(url, progress) as ground:
        try:
            progress(f"two people have {rows:,} events each, and a third one keeps writing among them")
            plan = _company(ground, rows)
            ground.settle_down()
            progress("erasing the first in batches")
            total, transactions, waited = _effaced(ground, plan, batch_rows)
            progress("erasing the second in one transaction")
            at_once, floor_waited = _floor(ground)
        finally:
            with ground.database.begin() as session:
                session.execute(text("DROP TABLE IF EXISTS bench_events, bench_people"))
    longest = max(transactions)
    line = (
        f"bulk: longest transaction {longest:.2f} s of {len(transactions)}, {total:.1f} s in all;"
        f" in one transaction {at_once:.1f} s; ratio {ratio(longest, at_once):.3f} (in all"
        f" {ratio(total, at_once):.2f}); a neighbour waited at most {waited * 1000:.0f} ms, and"
        f" {floor_waited * 1000:.0f} ms beside the one transaction"
    )
    more = {"total_s": total, "transactions": len(transactions), "waited_ms": waited * 1000}
    more |= {"floor_waited_ms": floor_waited * 1000}
    return Report("bulk", rows, round(longest, 3), "s", round(at_once, 3), [line], more)


def _company(ground: Ground, rows: int) -> ErasurePlan:
    with ground.database.begin() as session:
        for statement in _COMPANY.split(";"):
            session.execute(text(statement), {"rows": rows} if ":rows" in statement else {})
    with tempfile.TemporaryDirectory() as folder, ground.database.read() as session:
        path = Path(folder, "map.yaml")
        path.write_text(_MAP)
        return plan_erasure(session.connection(), load_map(path))


def _effaced(ground: Ground, plan: ErasurePlan, batch_rows: int) -> tuple[float, list[float], float]:
    with ground.database.begin() as session:
        receive(session, ground.keyring, plan, IntakeRequest(RequestKind.ERASURE, "1", approvals=0))
    executor = Executor(ground.database, ground.keyring, plan, ResolverRegistry(()), batch_rows=batch_rows)
    with _neighbour(ground) as waits, _transactions(ground) as lengths:
        started = clock.monotonic()
        executor.execute_due()
        total = clock.monotonic() - started
    with ground.database.read() as session:
        left = session.execute(text("SELECT count(*) FROM bench_events WHERE person = 1")).scalar_one()
    if left:
        raise Unavailable("Rows are left: the figure would mean nothing.")
    return total, lengths, max(waits)


def _floor(ground: Ground) -> tuple[float, float]:
    """Delete everything in one transaction: its seconds, and the longest wait of a concurrent writer."""
    with _neighbour(ground) as waits, ground.raw() as connection:
        started = clock.monotonic()
        connection.execute("DELETE FROM bench_events WHERE person = 2")
        connection.execute("DELETE FROM bench_people WHERE id = 2")
        connection.commit()
        return clock.monotonic() - started, max(waits, default=0.0)


@contextmanager
def _transactions(ground: Ground) -> Iterator[list[float]]:
    """How long each transaction of the block took."""
    lengths: list[float] = []
    began: dict[Any, float] = {}
    engine = ground.database.engine

    def begin(connection: Any) -> None:
        began[connection] = clock.monotonic()

    def commit(connection: Any) -> None:
        lengths.append(clock.monotonic() - began.get(connection, clock.monotonic()))

    event.listen(engine, "begin", begin)
    event.listen(engine, "commit", commit)
    try:
        yield lengths
    finally:
        event.remove(engine, "begin", begin)
        event.remove(engine, "commit", commit)


@contextmanager
def _neighbour(ground: Ground) -> Iterator[list[float]]:
    """Somebody who writes among the rows all the while; how long each write took."""
    waits, stop = [0.0], Event()

    def write() -> None:
        with ground.raw() as connection:
            number, offset = 0, int(clock.monotonic() * 1000)
            while not stop.is_set():
                number += 1
                started = clock.monotonic()
                connection.execute(
                    "UPDATE bench_events SET note = %s WHERE person = 3 AND id = %s", (str(number), 100)
                )
                connection.execute("INSERT INTO bench_events VALUES (%s, 3, 'new')", (-number - offset,))
                connection.commit()
                waits.append(clock.monotonic() - started)
                stop.wait(0.01)

    thread = Thread(target=write)
    thread.start()
    try:
        yield waits
    finally:
        stop.set()
        thread.join()
