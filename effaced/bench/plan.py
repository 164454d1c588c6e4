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
from effaced.datamap.model import DataMap
from effaced.datamap.plan import plan_for
from effaced.datamap.read_schema import read_schema
from effaced.datamap.schema import LiveSchema
from effaced.errors import Unavailable


def bench_plan(*, tables: int, rounds: int, url: str | None, progress: Progress) -> Report:
    """Check a map of `tables` tables and make its statements, as often as told."""
    with prepare(url, progress) as ground:
        try:
            progress(f"making {tables} tables, each of which points at another")
            data_map = _company(ground, tables)
            ground.settle_down()
            progress(f"planning {rounds} times")
            planning, reading = _measure(ground, data_map, rounds)
        finally:
            _drop(ground, tables)
    ours, theirs = quantiles(planning), quantiles(reading)
    line = (
        f"plan: {tables} tables checked and planned in {ours['p50']:.0f} ms (p50); reading the live schema"
        f" takes {theirs['p50']:.0f} ms; ratio {ratio(ours['p50'], theirs['p50']):.2f}"
    )
    return Report("plan", tables, ours["p50"], "ms", theirs["p50"], [line], ours)


def _company(ground: Ground, tables: int) -> DataMap:
    with ground.database.begin() as session:
        for statement in statements(tables):
            session.execute(text(statement))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "map.yaml")
        path.write_text(map_of(tables))
        return load_map(path)


def _measure(ground: Ground, data_map: DataMap, rounds: int) -> tuple[list[float], list[float]]:
    planning, reading = [], []
    with ground.database.read() as session:
        for _ in range(rounds):
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
    return planning, reading


def _drop(ground: Ground, tables: int) -> None:
    with ground.database.begin() as session:
        for number in reversed(range(tables)):
            session.execute(text(f"DROP TABLE IF EXISTS bench_t{number}"))
