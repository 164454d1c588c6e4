"""Planning: from a map of many tables to checked statements, beside reading the schema they are for."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sqlalchemy import text

from effaced import clock
from effaced.bench.ground import Ground, Progress, prepare
from effaced.bench.plan_company import map_of, statements
from effaced.bench.report import Report, quantiles, ratio
from effaced.datamap.check import check
from effaced.datamap.load import load_map
from effaced.datamap.plan import plan_for
from effaced.datamap.read_schema import read_schema
from effaced.datamap.schema import LiveSchema
from effaced.errors import Unavailable


def bench_plan(*, tables: int, rounds: int, url: str | None, progress: Progress) -> Report:
    """Check a map of `tables` tables, find the order and make the statements, as often as told.

    What else a start costs is told beside it: reading the live schema, and reading the map's file.
    """
    with prepare(url, progress) as ground:
        try:
            progress(f"making {tables} tables, with some of everything that a data map can say")
            _make(ground, tables)
            ground.settle_down()
            progress(f"planning {rounds} times")
            planning, reading, loading = _measure(ground, tables, rounds)
        finally:
            _drop(ground, tables)
    ours, theirs, loaded = quantiles(planning), quantiles(reading), quantiles(loading)["p50"]
    line = (
        f"plan: {tables} tables checked and planned in {ours['p50']:.0f} ms (p50); reading the live schema"
        f" takes {theirs['p50']:.0f} ms, ratio {ratio(ours['p50'], theirs['p50']):.2f}; reading the map"
        f" {loaded:.0f} ms"
    )
    return Report("plan", tables, ours["p50"], "ms", theirs["p50"], [line], {**ours, "map_p50": loaded})


def _make(ground: Ground, tables: int) -> None:
    with ground.database.begin() as session:
        for statement in statements(tables):
            session.execute(text(statement))


def _measure(ground: Ground, tables: int, rounds: int) -> tuple[list[float], list[float], list[float]]:
    planning, reading, loading = [], [], []
    with tempfile.TemporaryDirectory() as folder, ground.database.read() as session:
        path = Path(folder, "map.yaml")
        path.write_text(map_of(tables))
        for _ in range(rounds):
            started = clock.monotonic()
            data_map = load_map(path)
            loading.append(clock.monotonic() - started)
            started = clock.monotonic()
            schema = read_schema(session.connection())
            reading.append(clock.monotonic() - started)
            ours = LiveSchema(
                schema.dialect,
                {name: live for name, live in schema.tables.items() if name in data_map.tables},
                schema.foreign_keys,
            )
            started = clock.monotonic()
            checked = check(session.connection(), ours, data_map)
            for view, order in checked.orders:
                plan_for(ours, view, order)
            planning.append(clock.monotonic() - started)
            if checked.problems:
                raise Unavailable("The map does not fit: the figure would mean nothing.")
    return planning, reading, loading


def _drop(ground: Ground, tables: int) -> None:
    with ground.database.begin() as session:
        for number in reversed(range(tables)):
            session.execute(text(f"DROP TABLE IF EXISTS bench_t{number}"))
