"""The benches measure something real and say it in one form. How fast is for people to judge."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from click.testing import CliRunner
from sqlalchemy import inspect

from effaced.bench.drain import Case, bench_cases
from effaced.bench.fill import fill
from effaced.bench.floor import connect_raw
from effaced.bench.ground import RESOLVER, Ground, prepare
from effaced.bench.processes import Side, drain_with
from effaced.cli.groups import bench
from effaced.core import log
from effaced.core.crypto import Keyring, new_key
from effaced.core.db import Database, parse_url

ALWAYS = {"bench", "n", "value", "unit", "floor", "ratio"}
WRITTEN = (
    "effaced_outbox",
    "effaced_attempts",
    "effaced_audit_events",
    "effaced_operations",
    "effaced_requests",
    "effaced_messages",
)
CROWD = ("--terminal", "500", "--parked", "50")


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """The command sets logging up for a standard error that ends with the test."""
    yield
    log.configure("error", "json")


def run(*words: str, url: str) -> dict[str, Any]:
    """One bench with `--json`: its only line on standard output."""
    result = CliRunner().invoke(bench, [*words, "--url", url, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert all(line.startswith(f"bench {words[0]}: ") for line in result.stderr.splitlines())
    (line,) = result.stdout.splitlines()
    report: dict[str, Any] = json.loads(line)
    assert set(report) >= ALWAYS
    assert report["bench"] == words[0]
    consistent(report)
    return report


def consistent(figures: dict[str, Any]) -> None:
    assert figures["value"] > 0
    assert figures["floor"] > 0
    assert figures["ratio"] == pytest.approx(figures["value"] / figures["floor"], abs=0.01, rel=0.01)


def tables(url: str) -> list[str]:
    database = Database(url)
    try:
        return inspect(database.engine).get_table_names()
    finally:
        database.dispose()


def rows_after_a_drain(side: Side, ground: Ground) -> dict[str, Counter[tuple[object, ...]]]:
    """What a drain leaves in the tables that it writes to: values that differ by chance as their types."""
    ground.clear()
    with ground.raw() as connection:
        fill(connection, ground.keyring, entries=10, resolver=RESOLVER)
    drain_with(side, 1, url=ground.url, keys=ground.keys, entries=10)
    with ground.raw() as connection:
        return {
            table: Counter(
                tuple(
                    _told(name.name, value) for name, value in zip(cursor.description or (), row, strict=True)
                )
                for row in cursor
            )
            for table in WRITTEN
            for cursor in [connection.execute(f"SELECT * FROM {table}")]
        }


def _told(column: str, value: object) -> object:
    by_chance = isinstance(value, datetime | UUID) or column in {"id", "ref", "subject_hmac"}
    return type(value) if by_chance or column in {"latency_ms", "delay_before_ms"} else repr(value)


class TestDrain:
    def test_the_floor_writes_the_rows_that_the_runner_writes(self, fresh_postgres_url: str) -> None:
        with prepare(fresh_postgres_url, lambda _: None) as ground:
            assert rows_after_a_drain(Side.FLOOR, ground) == rows_after_a_drain(Side.EFFACED, ground)

    @pytest.mark.drill
    def test_measures_real_processes_and_what_more_of_them_gain(self, fresh_postgres_url: str) -> None:
        report = run(
            "drain", "--entries", "400", "--processes", "1,2", "--rounds", "1", url=fresh_postgres_url
        )
        assert (report["n"], report["unit"]) == (400, "entries/s")
        assert [each["processes"] for each in report["processes"]] == [1, 2]
        one, two = report["processes"]
        consistent(two)
        assert one["value"] == report["value"]
        (gain,) = report["gain"]
        assert gain["value"] == pytest.approx(two["value"] / one["value"], abs=0.01)
        assert gain["floor"] == pytest.approx(two["floor"] / one["floor"], abs=0.01)
        assert tables(fresh_postgres_url) == ["effaced_alembic_version"], "it leaves nothing behind"

    @pytest.mark.drill
    def test_compares_the_cost_of_an_entry_between_cases(self, fresh_postgres_url: str) -> None:
        cases = (Case(), Case(per_request=1), Case(per_request=100), Case(parked=300))
        report = bench_cases(
            entries=200, url=fresh_postgres_url, progress=lambda _: None, cases=cases, rounds=1
        )
        rows = json.loads(report.as_json())["cases"]
        assert [(each["per_request"], each["parked"]) for each in rows] == [
            (4, 0),
            (1, 0),
            (100, 0),
            (4, 300),
        ]
        for each in rows:
            consistent(each)
            assert each["cost"] == pytest.approx(rows[0]["value"] / each["value"], abs=0.01, rel=0.01)
        assert len(report.as_text().splitlines()) == len(cases)

    def test_refuses_numbers_of_processes_that_are_none(self) -> None:
        result = CliRunner().invoke(bench, ["drain", "--processes", "1,many"])
        assert result.exit_code == 2
        assert "1,2,4" in result.output

    def test_refuses_a_database_that_is_in_use(self, migrated_postgres_url: str) -> None:
        with connect_raw(parse_url(migrated_postgres_url)) as connection:
            fill(connection, Keyring.parse(new_key()), entries=4, resolver="crm")
        result = CliRunner().invoke(bench, ["drain", "--url", migrated_postgres_url])
        assert "empty database" in str(result.exception)
        with psycopg.connect(migrated_postgres_url) as connection:
            assert connection.execute("SELECT count(*) FROM effaced_outbox").fetchone() == (4,)

    def test_refuses_sqlite(self, fresh_sqlite_url: str) -> None:
        result = CliRunner().invoke(bench, ["drain", "--url", fresh_sqlite_url])
        assert "PostgreSQL" in str(result.exception)


@pytest.mark.drill
def test_latency_runs_a_fleet_with_and_without_its_bell(fresh_postgres_url: str) -> None:
    report = run("latency", "--samples", "3", "--sweep-seconds", "0.2", url=fresh_postgres_url)
    assert (report["n"], report["unit"]) == (3, "ms")
    assert 0 < report["value"] == report["p50"] <= report["p95"]
    assert report["sweep"]["seconds"] == 0.2
    assert 0 < report["sweep"]["p50"] <= report["sweep"]["p95"]
    assert 0 <= report["notify"]["p50"] <= report["notify"]["p95"]
    assert tables(fresh_postgres_url) == ["effaced_alembic_version"], "it leaves nothing behind"


def test_erase_counts_round_trips_on_the_wire(fresh_postgres_url: str) -> None:
    report = run("erase", "--people", "5", url=fresh_postgres_url)
    assert (report["n"], report["unit"]) == (5, "transactions/s")
    assert 0 < report["p50"] <= report["p95"]
    assert 1 <= report["round_trips"] <= 5
    assert tables(fresh_postgres_url) == ["effaced_alembic_version"], "it leaves nothing behind"


def test_claim_compares_a_crowd_with_an_empty_table(fresh_postgres_url: str) -> None:
    report = run("claim", *CROWD, "--batch", "20", "--claims", "3", url=fresh_postgres_url)
    assert (report["n"], report["unit"], report["batch"]) == (3, "ms", 20)
    assert (report["terminal"], report["parked"]) == (500, 50)
    assert report["against_empty"] == pytest.approx(report["value"] / report["empty"]["value"], abs=0.01)


def test_plan_takes_a_map_with_some_of_everything(fresh_postgres_url: str) -> None:
    report = run("plan", "--tables", "25", "--rounds", "1", url=fresh_postgres_url)
    assert (report["n"], report["unit"]) == (25, "ms")
    assert min(report["map_p50"], report["check_p50"]) > 0
    assert tables(fresh_postgres_url) == ["effaced_alembic_version"], "it leaves nothing behind"


def test_counts_counts_every_entry(fresh_postgres_url: str) -> None:
    report = run("counts", *CROWD, "--times", "3", url=fresh_postgres_url)
    assert (report["n"], report["unit"]) == (3, "ms")
    assert 0 < report["p50"] <= report["p95"]


def test_breaker_compares_memory_with_pybreaker_and_layers_with_redis(fresh_postgres_url: str) -> None:
    report = run("breaker", "--calls", "200", "--rounds", "1", url=fresh_postgres_url)
    assert (report["n"], report["unit"], report["pybreaker"]) == (200, "calls/s", "1.4.1")
    consistent(report["layered"])
    assert report["sql"]["value"] > 0
    assert tables(fresh_postgres_url) == ["effaced_alembic_version"], "it leaves nothing behind"


def test_breaker_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pybreaker", None)
    result = CliRunner().invoke(bench, ["breaker"])
    assert "pip install" in str(result.exception)


def test_without_json_it_speaks_to_people(fresh_postgres_url: str) -> None:
    words = ["counts", *CROWD, "--times", "3", "--url", fresh_postgres_url]
    result = CliRunner().invoke(bench, words, catch_exceptions=False)
    assert result.stdout.startswith("counts: ")
    assert "ratio" in result.stdout
