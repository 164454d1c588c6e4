"""Commands whose output nobody reads to its end, as in `effaced audit export | head -1`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from quick_database import open_quickly

from effaced.audit.append import append_one
from effaced.audit.events import DuplicateReleased
from effaced.core.crypto import new_key


@pytest.fixture
def environ(migrated_sqlite_url: str, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "resolvers.yaml").write_text("version: 1\nresolvers: {crm: {kind: noop, ref: person}}\n")
    (tmp_path / "datamap.yaml").write_text(
        "version: 1\nsubject: {table: t, key: id}\nrefs: {person: {column: id}}\n"
        "tables: {t: {rows: keep, columns: {id: not_personal}}}\n"
    )
    database = open_quickly(migrated_sqlite_url)
    with database.begin() as session:
        append_one(session, DuplicateReleased())
    database.dispose()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EFFACED_")}
    return kept | {"EFFACED_DATABASE_URL": migrated_sqlite_url, "EFFACED_KEYS": new_key()}


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        ["audit", "--help"],
        ["audit", "export"],
        ["audit", "export", "--format", "csv"],
        ["audit", "export", "--output", "-"],
        ["keys", "new"],
        ["migrate"],
        ["deadletter", "list"],
        ["deadletter", "list", "--json"],
    ],
    ids=" ".join,
)
def test_a_command_that_nobody_reads_ends_quietly_as_by_sigpipe(
    environ: dict[str, str], tmp_path: Path, command: list[str]
) -> None:
    done = forked.run(*command, environ=environ, folder=tmp_path, unread=True)
    assert (done.returncode, done.stderr) == (141, "")


def test_an_error_keeps_its_sentence_and_its_code(environ: dict[str, str], tmp_path: Path) -> None:
    done = forked.run("drain", environ=environ | {"EFFACED_KEYS": "x"}, folder=tmp_path, unread=True)
    assert done.returncode == 2
    assert "EFFACED_KEYS" in done.stderr


@pytest.mark.parametrize("command", [["audit", "export"], ["keys", "new"]], ids=" ".join)
def test_without_a_standard_output_a_command_does_its_work(
    environ: dict[str, str], tmp_path: Path, command: list[str]
) -> None:
    effaced = [sys.executable, "-m", "effaced", *command]
    # Started without it, and without an input: the next files to be opened would get their numbers.
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&-', "sh", *effaced],
        env=environ,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
