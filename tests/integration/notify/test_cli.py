"""`effaced notify`: who is told, does it arrive, what went out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from notify_cast import Town, webhook
from receivers import SECRET, Receiver

from effaced.cli.main import cli
from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.core.errors import ConfigurationError, NotFound


@pytest.fixture
def shell(town: Town, migrated_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Town:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EFFACED_DATABASE_URL", migrated_url)
    monkeypatch.setenv("EFFACED_KEYS", new_key())
    monkeypatch.setenv("EFFACED_NOTIFY", str(town.path))
    monkeypatch.setenv("COLUMNS", "200")
    return town


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["notify", *arguments])


def test_check_shows_the_targets_and_no_secret(shell: Town, oncall: Receiver) -> None:
    shell.configure(webhook(oncall))
    done = run("check")
    assert done.exit_code == 0
    assert "oncall" in done.output
    assert oncall.url.removesuffix("/hooks/effaced") in done.output
    assert SECRET not in done.output
    assert "/hooks" not in done.output


def test_check_refuses_a_wrong_file_with_its_problems(shell: Town) -> None:
    shell.configure("{oncall: {kind: webhook, url: nonsense}}")
    error = run("check").exception
    assert isinstance(error, ConfigurationError)
    assert [problem.message.partition(":")[0] for problem in error.problems] == [
        "targets.oncall.url",
        "targets.oncall.secret",
    ]


def test_check_refuses_a_timeout_that_the_lease_can_not_hold(
    shell: Town, oncall: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.configure(webhook(oncall))
    monkeypatch.setenv("EFFACED_LEASE_SECONDS", "10")
    error = run("check").exception
    assert isinstance(error, ConfigurationError)
    assert "target oncall: timeout must be under 5 seconds" in str(error)


def test_check_says_if_nobody_is_told(shell: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EFFACED_NOTIFY")
    assert "nobody is told" in run("check").output


def test_a_test_message_arrives_signed_and_leaves_no_row(shell: Town, oncall: Receiver) -> None:
    shell.configure(webhook(oncall))
    done = run("test", "oncall")
    assert (done.exit_code, oncall.posts[0].verified()["type"]) == (0, "notify.test")
    assert "oncall has the test message" in done.output
    assert shell.messages() == []


def test_a_test_message_that_does_not_arrive_says_why(shell: Town, oncall: Receiver) -> None:
    shell.configure(webhook(oncall))
    oncall.statuses = [403]
    done = run("test", "oncall")
    assert done.exit_code == 1
    assert "oncall did not get the test message: http_403, answer 403." in done.output


def test_a_test_of_nobody_is_refused(shell: Town) -> None:
    assert isinstance(run("test", "nobody").exception, NotFound)


def test_the_log_shows_what_went_out_and_what_waits_for_nobody(
    shell: Town, oncall: Receiver, db: Database
) -> None:
    shell.configure(webhook(oncall))
    shell.tell()
    shell.deliver()
    oncall.statuses = [500]
    shell.tell()
    shell.deliver()
    first, second = json.loads(run("log", "--json").output)
    assert (first["status"], first["error"], first["status_code"]) == ("pending", "http_500", 500)
    assert (second["status"], second["attempts"], second["type"]) == ("delivered", 1, "entry.abandoned")
    shell.configure()
    shown = run("log").output
    assert "delivered" in shown
    assert "1 wait for the target oncall, which is not in the file." in shown
