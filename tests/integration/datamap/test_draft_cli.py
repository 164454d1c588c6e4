"""`effaced datamap draft`: where it writes, what it refuses, what it says."""

from __future__ import annotations

import pytest
import yaml
from click.testing import CliRunner
from sqlalchemy import text

from effaced.cli.groups import datamap
from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.core.errors import ConfigurationError


@pytest.fixture
def run(tmp_path, fresh_sqlite_url):
    database = Database(fresh_sqlite_url)
    with database.begin() as session:
        for statement in (
            "CREATE TABLE people (id integer PRIMARY KEY, email text, full_name text)",
            "CREATE TABLE invoices (id integer PRIMARY KEY, person_id integer REFERENCES people, note text)",
            "CREATE TABLE callers (phone text)",
            "CREATE TABLE products (id integer PRIMARY KEY)",
            "INSERT INTO people VALUES (1, 'alice@wonder.example', 'Alice Liddell')",
        ):
            session.execute(text(statement))
    database.dispose()
    settings = Settings(database_url=fresh_sqlite_url, datamap=tmp_path / "datamap.yaml", keys=new_key())
    return lambda *words: CliRunner().invoke(datamap, ["draft", *words], obj=settings)


def test_the_map_goes_to_the_terminal_and_the_summary_beside_it(run):
    answer = run()
    assert answer.exit_code == 0
    assert yaml.safe_load(answer.stdout)["subject"] == {"table": "people", "key": "id"}
    assert answer.stderr.splitlines() == [
        "Guessed from 4 tables: people are in people; 2 hold something about them, 1 nothing,"
        " 1 needs a look.",
        "3 decisions left to you, marked `review:`.",
        "Next: read it, decide, then `effaced datamap check --map FILE`.",
    ]


def test_the_map_can_go_into_a_file(run, tmp_path):
    path = tmp_path / "first.yaml"
    answer = run("--output", str(path))
    assert answer.stdout == ""
    assert path.read_text().startswith("# A first data map")
    assert f"check --map {path}" in answer.stderr


def test_a_file_that_is_there_is_left_alone(run, tmp_path):
    path = tmp_path / "datamap.yaml"
    path.write_text("precious")
    answer = run("--output", str(path))
    assert isinstance(answer.exception, ConfigurationError)
    assert "--force" in str(answer.exception)
    assert path.read_text() == "precious"


def test_a_file_that_is_there_is_written_over_by_force(run, tmp_path):
    path = tmp_path / "datamap.yaml"
    path.write_text("precious")
    assert run("--output", str(path), "--force").exit_code == 0
    assert "precious" not in path.read_text()


def test_a_folder_that_is_not_there_is_told_before_the_work(run, tmp_path):
    answer = run("--output", str(tmp_path / "nowhere" / "datamap.yaml"))
    assert isinstance(answer.exception, ConfigurationError)
    assert "folder" in str(answer.exception)


def test_nothing_of_the_rows_is_said(run):
    answer = run()
    assert "alice" not in answer.output.lower()


def test_sqlite_has_no_schemas(run):
    answer = run("--schema", "crm")
    assert isinstance(answer.exception, ConfigurationError)
    assert "SQLite" in str(answer.exception)


def test_a_subject_can_be_named_and_rows_left_unread(run):
    assert "table: callers" not in run("--no-sample").stdout
    assert "{table: products, key: id}" in run("--no-sample", "--subject", "products").stdout
