"""Planning: from a map of many tables to checked statements, beside reading the schema they are for."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import text

from effaced.bench.ground import Ground, Progress, prepare
from effaced.bench.plan_company import PlanCompany
from effaced.bench.report import Report, quantiles, ratio
from effaced.core import clock
from effaced.core.errors import Unavailable
from effaced.datamap.check.data_map import check
from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import plan_for
from effaced.datamap.schema.read import read_schema
from effaced.datamap.schema.tables import LiveSchema


def bench_plan(*, tables: int, simple: bool, rounds: int, url: str | None, progress: Progress) -> Report:
    """Make the statements for a map of `tables` tables, as often as told.

    What else a start costs is told beside it: reading the live schema, reading the map's file, and checking
    the one against the other, which finds the order.
    """
    company = PlanCompany(tables, simple)
    with prepare(url, progress) as ground:
        try:
            having = (
                "whose rows all simply go" if simple else "with some of everything that a data map can say"
            )
            progress(f"making {tables} tables, {having}")
            _create_tables(ground, company)
            ground.settle_down()
            gc.unfreeze()  # a plan is made at a start, before a worker freezes what it has
            progress(f"planning {rounds} times")
            taken = {name: quantiles(times) for name, times in _measure(ground, company, rounds).items()}
        finally:
            _drop_tables(ground, tables)
    ours, computed, theirs, checked, loaded = (
        taken[name]["p50"] for name in ("plan", "plan_computing", "schema", "check", "map")
    )
    line = (
        f"plan: {tables} tables planned in {ours:.0f} ms (p50, {computed:.0f} ms of it computing), checked in"
        f" {checked:.0f} ms; reading the live schema takes {theirs:.0f} ms, ratio of plan and check"
        f" {ratio(ours + checked, theirs):.2f}; reading the map {loaded:.0f} ms"
    )
    figures = {**taken["plan"], "computing_p50": computed, "check_p50": checked, "map_p50": loaded}
    return Report("plan", tables, ours, "ms", theirs, [line], figures)


def _create_tables(ground: Ground, company: PlanCompany) -> None:
    with ground.database.begin() as session:
        for statement in company.statements():
            session.execute(text(statement))


def _measure(ground: Ground, company: PlanCompany, rounds: int) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {
        name: [] for name in ("map", "schema", "check", "plan", "plan_computing")
    }

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        started = clock.monotonic()
        yield
        taken[name].append(clock.monotonic() - started)

    with tempfile.TemporaryDirectory() as folder, ground.database.read() as session:
        path = Path(folder, "map.yaml")
        path.write_text(company.map())
        for _ in range(rounds):
            gc.collect()  # what the round before has left; a start finds nothing of the kind
            with timed("map"):
                data_map = load_map(path)
            with timed("schema"):
                schema = read_schema(session.connection())
            ours = LiveSchema(
                schema.dialect,
                {name: live for name, live in schema.tables.items() if name in data_map.tables},
                schema.foreign_keys,
            )
            with timed("check"):
                checked = check(session.connection(), ours, data_map)
            computed = clock.cpu_seconds()
            with timed("plan"):
                for view, order in checked.orders:
                    plan_for(ours, view, order)
            # The machine may be busy with others meanwhile: this much of it is the plan's own.
            taken["plan_computing"].append(clock.cpu_seconds() - computed)
            if checked.problems:
                raise Unavailable("The map does not fit: the figure would mean nothing.")
    return taken


def _drop_tables(ground: Ground, tables: int) -> None:
    with ground.database.begin() as session:
        for number in reversed(range(tables)):
            session.execute(text(f"DROP TABLE IF EXISTS bench_t{number}"))
