"""What people get wrong: each gives a sentence to act on, the right exit code, and changes nothing."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from click.testing import CliRunner
from quick_database import open_quickly

from effaced import demo
from effaced.cli.main import COMMANDS, cli
from effaced.core.crypto import new_key
from effaced.demo.company import create_company
from effaced.demo.vendors import VENDORS

DEMO = Path(demo.__file__).parent


class Shell:
    """A terminal in a folder of its own, with a working set-up to spoil."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.folder = folder
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("EFFACED_")},
            "EFFACED_DATABASE_URL": database_url,
            "EFFACED_KEYS": new_key(),
            "EFFACED_DATAMAP": str(DEMO / "datamap.yaml"),
            "EFFACED_RESOLVERS": str(DEMO / "resolvers.yaml"),
            **{f"EFFACED_DEMO_{name.upper()}": "http://127.0.0.1:1" for name in VENDORS},
            "EFFACED_DEMO_TOKEN": "t",
        }

    def run(
        self, *arguments: str, typed: str = "", **environ: str | None
    ) -> subprocess.CompletedProcess[str]:
        chosen = {name: value for name, value in (self.environ | environ).items() if value is not None}
        return forked.run(*arguments, environ=chosen, folder=self.folder, typed=typed)


@pytest.fixture
def shell(tmp_path: Path, migrated_sqlite_url: str) -> Shell:
    database = open_quickly(migrated_sqlite_url)
    create_company(database.engine)
    database.dispose()
    return Shell(tmp_path, migrated_sqlite_url)


def sentence(done: subprocess.CompletedProcess[str], code: int) -> str:
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_missing_key_is_named_with_how_to_make_one(shell: Shell) -> None:
    said = sentence(shell.run("drain", EFFACED_KEYS=None), 2)
    assert "EFFACED_KEYS" in said
    assert "effaced keys new" in said


def test_a_missing_variable_of_a_resolver_is_named_with_file_and_line(shell: Shell) -> None:
    said = sentence(shell.run("drain", EFFACED_DEMO_TOKEN=None), 2)
    assert "EFFACED_DEMO_TOKEN" in said
    assert "resolvers.yaml:" in said


def test_a_broken_data_map_lists_everything_wrong_with_lines(shell: Shell) -> None:
    broken = shell.folder / "broken.yaml"
    broken.write_text(
        "version: 1\nsubject: {table: customers, key: id}\ntables:\n  customers:\n    columns:\n"
        "      id: obliterate\n      nmae: delete\n"
    )
    said = sentence(shell.run("drain", EFFACED_DATAMAP=str(broken)), 2)
    assert "broken.yaml:6" in said
    checked = shell.run("datamap", "check", "--map", str(broken))
    assert checked.returncode == 1


def test_a_data_map_that_is_not_there_is_named(shell: Shell) -> None:
    assert "nowhere.yaml" in sentence(shell.run("drain", EFFACED_DATAMAP="nowhere.yaml"), 2)


def test_a_database_that_was_not_migrated_says_what_to_run(shell: Shell) -> None:
    said = sentence(shell.run("drain", EFFACED_DATABASE_URL="sqlite:///empty.db"), 1)
    assert "effaced migrate" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("officer", "add", "new@office.example", "--name", "New", "--password-stdin"),
        ("apikey", "new", "--name", "shop", "--approvals", "0"),
        ("audit", "export"),
    ],
)
def test_a_read_only_database_says_so_and_nothing_changes(shell: Shell, arguments: tuple[str, ...]) -> None:
    path = shell.environ["EFFACED_DATABASE_URL"].removeprefix("sqlite:///")
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = Path(path).read_bytes()
    read_only = f"sqlite:///file:{path}?mode=ro&uri=true"
    said = sentence(shell.run(*arguments, typed="a-long-password\n", EFFACED_DATABASE_URL=read_only), 1)
    assert "read-only" in said
    assert Path(path).read_bytes() == before


def test_a_server_that_is_not_there_says_so(shell: Shell) -> None:
    url = "postgresql://nobody:hunter2@127.0.0.1:1/x"
    said = sentence(shell.run("drain", EFFACED_DATABASE_URL=url), 1)
    assert "EFFACED_DATABASE_URL" in said
    assert "hunter2" not in said


def test_workers_without_redis_are_told_what_works_without(shell: Shell) -> None:
    for command in ("worker", "scheduler"):
        said = sentence(shell.run(command), 2)
        assert "EFFACED_REDIS_URL" in said
        assert "effaced drain" in said


def test_a_lease_too_short_for_a_resolver_is_refused(shell: Shell) -> None:
    said = sentence(shell.run("drain", EFFACED_LEASE_SECONDS="10"), 2)
    assert "EFFACED_LEASE_SECONDS" in said
    assert "payment" in said


def test_a_taken_port_is_named(shell: Shell) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert port in sentence(shell.run("up", "--demo", "--port", port), 2)
        assert port in sentence(shell.run("web", "--port", port), 2)


def test_resolver_check_refuses_what_the_workers_would(shell: Shell) -> None:
    said = sentence(shell.run("resolver", "check", EFFACED_LEASE_SECONDS="10"), 2)
    assert "EFFACED_LEASE_SECONDS" in said


def test_a_misspelt_variable_is_warned_of(shell: Shell) -> None:
    done = shell.run("drain", EFFACED_BATCHSIZE="7")
    assert "did you mean EFFACED_BATCH_SIZE" in done.stderr
    assert done.returncode == 0


def test_an_unknown_type_of_event_is_refused_with_those_there_are(shell: Shell) -> None:
    assert "ERASURE_COMPLETED" in sentence(shell.run("audit", "export", "--type", "NONSENSE"), 1)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_needs_no_settings(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("EFFACED_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "argv", ["effaced", command, "--help"])
    done = CliRunner().invoke(cli, [command, "--help"], prog_name="effaced")
    assert done.exit_code == 0
    assert "Usage: effaced" in done.stdout


@pytest.mark.parametrize("command", [["archive", "--yes"], ["purge", "--preview"]])
def test_a_number_of_days_beyond_every_calendar_is_refused(shell: Shell, command: list[str]) -> None:
    said = sentence(shell.run("deadletter", *command, "--older-than-days", "1000000"), 2)
    assert "--older-than-days" in said


def test_a_path_that_can_not_be_written_is_named(shell: Shell) -> None:
    said = sentence(shell.run("datamap", "draft", "--output", "x" * 300), 1)
    assert "File name too long" in said


def test_an_argument_that_is_no_text_is_refused(shell: Shell) -> None:
    said = sentence(shell.run("deadletter", "list", "--error", "\udcff\udcfe"), 2)
    assert "Argument 4 is not valid UTF-8" in said


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param("{kind: noop, ref: nobody}", id="reference"),
        pytest.param("{kind: noop, ref: crm_contact, timeout: 200}", id="lease"),
        pytest.param("{kind: noop, ref: crm_contact, after: [mailing]}", id="order"),
    ],
)
def test_every_command_refuses_the_resolvers_that_drain_refuses(shell: Shell, wrong: str) -> None:
    file = shell.folder / "resolvers.yaml"
    file.write_text(f"version: 1\nresolvers:\n  crm: {wrong}\n")
    commands = (
        ("drain",),
        ("resolver", "list"),
        ("resolver", "list", "--json"),
        ("resolver", "check"),
        ("resolver", "pause", "crm", "--reason", "maintenance"),
        ("retries", "policy", "show"),
        ("retries", "policy", "show", "--resolver", "crm"),
        ("breaker", "show"),
    )
    errors = [sentence(shell.run(*each, EFFACED_RESOLVERS=str(file)), 2) for each in commands]
    said = [[line for line in each.splitlines() if not line.startswith("{")] for each in errors]  # no logs
    assert any("crm" in line for line in said[0])
    assert said == [said[0]] * len(commands)
