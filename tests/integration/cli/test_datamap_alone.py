"""`effaced datamap` where nothing else of effaced is: no keys, no traces, clear refusals."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import forked
import psycopg
import pytest
from sqlalchemy import make_url

MAP = """\
version: 1
subject: {table: people, key: id}
tables:
  people:
    columns: {id: not_personal, email: {anonymise: keyed_hash}}
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A terminal in a folder with a SQLite file of somebody's and its map, and nothing of effaced's."""
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("CREATE TABLE people (id integer PRIMARY KEY, email text)")
        connection.execute("INSERT INTO people VALUES (1, 'alice@wonder.example')")
    (tmp_path / "datamap.yaml").write_text(MAP)
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("EFFACED_")}

    def run(*words: str, url: str = "sqlite:///shop.db") -> subprocess.CompletedProcess[str]:
        environ = {**surroundings, "EFFACED_DATABASE_URL": url}
        return forked.run("datamap", *words, environ=environ, folder=tmp_path)

    return run


@pytest.mark.parametrize(
    "words",
    [
        ("draft",),
        ("check",),
        ("show",),
        ("show", "--subject", "1"),
        ("diff", "datamap.yaml"),
        ("diff", "--live"),
        ("picture",),
    ],
)
def test_no_command_about_the_map_asks_for_keys(run: Run, words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [("draft",), ("check",), ("show", "--subject", "1"), ("diff", "--live")])
def test_looking_leaves_a_sqlite_file_byte_for_byte(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    before = (tmp_path / "shop.db").read_bytes()
    assert run(*words).returncode == 0
    assert (tmp_path / "shop.db").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["datamap.yaml", "shop.db"]


@pytest.mark.parametrize("words", [("draft",), ("check",), ("check", "--json"), ("diff", "--live")])
def test_a_sqlite_file_that_is_not_there_is_not_made(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = run(*words, url="sqlite:///folder/none.db")
    assert done.returncode == 1
    assert "the file in EFFACED_DATABASE_URL is not there" in done.stderr
    assert not (tmp_path / "folder").exists()


def test_each_way_to_miss_a_server_has_its_sentence(run: Run, fresh_postgres_url: str) -> None:
    right = make_url(fresh_postgres_url)
    for wrong, expected in (
        (right.set(password="hunter2"), "refuses the login"),
        (right.set(username="stranger"), "refuses the login"),
        (right.set(database="elsewhere"), "no database of that name"),
        (right.set(host="no-such-host.invalid"), "can't be reached"),
    ):
        done = run("check", url=wrong.render_as_string(hide_password=False))
        assert done.returncode == 1
        assert expected in done.stderr
        assert "EFFACED_DATABASE_URL" in done.stderr
        assert "Traceback" not in done.stderr
        assert "hunter2" not in done.stderr


def test_a_table_that_may_not_be_read_is_named(run: Run, fresh_postgres_url: str) -> None:
    role = f"looker_{make_url(fresh_postgres_url).database}"
    with psycopg.connect(fresh_postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE people (id integer PRIMARY KEY, email text)")
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'let-me-look'")
    try:
        own = make_url(fresh_postgres_url).set(username=role, password="let-me-look")
        done = run("show", "--subject", "1", url=own.render_as_string(hide_password=False))
    finally:
        with psycopg.connect(fresh_postgres_url, autocommit=True) as connection:
            connection.execute(f"DROP ROLE {role}")
    assert done.returncode == 2
    assert "people: the role that effaced connects as may not read email, id; GRANT SELECT" in done.stderr


@pytest.mark.parametrize("command", ["draft", "picture"])
@pytest.mark.parametrize("output", ["nowhere/out", "."])
def test_a_place_that_can_not_be_written_to_is_named(run: Run, command: str, output: str) -> None:
    done = run(command, "--output", output)
    assert done.returncode == 2
    assert output in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["draft", "picture"])
def test_a_full_disk_is_a_sentence(run: Run, command: str) -> None:
    done = run(command, "--output", "/dev/full", *(["--force"] if command == "draft" else []))
    assert done.returncode == 2
    assert "/dev/full can't be written: No space left on device." in done.stderr
