"""The benches measure something real and say it in one form."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import inspect

from effaced.bench.drain import bench_drain
from effaced.bench.fill import fill
from effaced.crypto import Keyring, new_key
from effaced.db import Database
from effaced.errors import ConfigurationError


def test_drain_reports_value_floor_and_ratio_and_leaves_nothing(fresh_postgres_url: str) -> None:
    report = json.loads(bench_drain(entries=400, url=fresh_postgres_url, progress=lambda _: None).as_json())
    assert set(report) == {"bench", "n", "value", "unit", "floor", "ratio"}
    assert (report["bench"], report["n"], report["unit"]) == ("drain", 400, "entries/s")
    assert report["ratio"] == pytest.approx(report["value"] / report["floor"], abs=0.01)
    database = Database(fresh_postgres_url)
    assert inspect(database.engine).get_table_names() == ["effaced_alembic_version"]
    database.dispose()


def test_refuses_a_database_that_is_in_use(migrated_postgres_url: str) -> None:
    database = Database(migrated_postgres_url)
    fill(database, Keyring.parse(new_key()), entries=4, resolver="crm")
    with pytest.raises(ConfigurationError, match="empty"):
        bench_drain(entries=100, url=migrated_postgres_url, progress=lambda _: None)
    database.dispose()


def test_refuses_sqlite(fresh_sqlite_url: str) -> None:
    with pytest.raises(ConfigurationError, match="PostgreSQL"):
        bench_drain(entries=100, url=fresh_sqlite_url, progress=lambda _: None)
