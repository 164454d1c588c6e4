"""`effaced datamap check` and `show`."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from sqlalchemy import text

from effaced import clock
from effaced.cli.datamap import datamap
from effaced.config import Settings
from effaced.crypto import new_key
from effaced.db import Database
from effaced.errors import ConfigurationError, NotFound

MAP = """\
version: 1
subject: {table: people, key: id}
tables:
  people: {columns: {id: not_personal, name: {anonymise: fixed_text}}}
  invoices:
    link: {to: people, on: {person: id}}
    columns: {person: {retain: tax law}, number: {retain: {basis: "tax law, ten years", until: 2031-12-31}}}
  lines:
    link: {to: invoices, on: {invoice: number}}
    columns: {invoice: delete, "text[x]": delete}
not_personal: [products]
"""


@pytest.fixture
def settings(tmp_path, fresh_sqlite_url) -> Settings:
    database = Database(fresh_sqlite_url)
    with database.begin() as session:
        for statement in (
            "CREATE TABLE people (id integer PRIMARY KEY, name text)",
            "CREATE TABLE invoices (person integer, number text UNIQUE)",
            'CREATE TABLE lines (invoice text, "text[x]" text)',
            "CREATE TABLE products (id integer)",
            "INSERT INTO people VALUES (1, 'Alice')",
            "INSERT INTO invoices VALUES (1, 'A-1'), (1, 'A-2')",
            "INSERT INTO lines VALUES ('A-1', 'socks'), ('A-1', 'hat'), ('A-2', 'tea')",
        ):
            session.execute(text(statement))
    database.dispose()
    (tmp_path / "datamap.yaml").write_text(MAP)
    return Settings(database_url=fresh_sqlite_url, datamap=tmp_path / "datamap.yaml", keys=new_key())


@pytest.fixture
def run(settings, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *words: CliRunner().invoke(datamap, words, obj=settings)


def test_check_says_in_one_sentence_that_the_map_fits(run, settings):
    answer = run("check")
    assert answer.exit_code == 0
    assert answer.output == (
        f"{settings.datamap} fits the database: 3 tables with 6 columns declared,"
        " 1 table without personal data.\n"
    )


def test_check_tells_of_a_retention_that_has_ended(run):
    with clock.pretend(datetime(2032, 1, 1, tzinfo=UTC)):
        answer = run("check")
    assert answer.exit_code == 0
    assert "The retention of invoices.number has ended" in answer.output


def test_check_lists_every_problem_and_fails(run, tmp_path):
    other = tmp_path / "other.yaml"
    renamed = MAP.replace("name: {anonymise: fixed_text}", "nam: {retain: law}")
    other.write_text(renamed.replace("[products]", "[]"))
    answer = run("check", "--map", str(other))
    assert answer.exit_code == 1
    assert answer.output.splitlines() == [
        "The data map does not fit the database; 3 problems:",
        f"  {other}:3: products: the table is not declared; put it under tables or not_personal",
        f"  {other}:4: people.nam: the table has no such column; did you mean 'name'?",
        f"  {other}:4: people.name: the column is not declared",
    ]


def test_check_lists_the_mistakes_in_a_map_that_cannot_be_read(run, tmp_path):
    (tmp_path / "datamap.yaml").write_text("version: 1\n")
    answer = run("check")
    assert answer.exit_code == 1
    assert "'subject' is missing" in answer.output
    assert "'tables' is missing" in answer.output


def test_show_has_table_path_action_columns_and_basis(run):
    answer = run("show")
    assert answer.exit_code == 0
    lines = answer.output.splitlines()
    [row] = [line for line in lines if "lines" in line]
    assert [cell.strip() for cell in row.split("│")[1:-1]] == [
        "lines",
        "invoices -> people",
        "deleted",
        "delete: invoice, text[x]",
    ]
    assert "retain (tax law): person" in answer.output
    assert "retain (tax law, ten years; until 2031-12-31): number" in answer.output
    assert "anonymise (fixed_text): name" in answer.output
    assert any("products" in line and "not personal" in line for line in lines)


def test_show_with_a_subject_counts_their_rows_in_the_order_of_erasure(run):
    answer = run("show", "--subject", "1")
    assert answer.exit_code == 0
    rows = [[cell.strip() for cell in line.split("│")] for line in answer.output.splitlines()]
    assert [(row[1], row[5]) for row in rows if len(row) > 5 and row[1]] == [
        ("lines", "3"),
        ("invoices", "2"),
        ("people", "1"),
    ]


@pytest.mark.parametrize("unknown", ["2", "x"])
def test_show_says_that_a_person_is_not_there(run, unknown):
    answer = run("show", "--subject", unknown)
    assert isinstance(answer.exception, NotFound)
    assert str(answer.exception) == "--subject: table 'people' has no such person."


def test_show_of_a_map_that_is_not_there_is_a_configuration_error(run, tmp_path):
    answer = run("show", "--map", str(tmp_path / "none.yaml"))
    assert isinstance(answer.exception, ConfigurationError)
