"""`effaced retries ...`, as typed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from attempts_cast import Try, write
from click.testing import CliRunner, Result
from quick_database import open_quickly
from sqlalchemy import select

from effaced.audit.notes import read_notes
from effaced.audit.tables import AuditEvent, Note
from effaced.cli.groups import retries
from effaced.core import clock
from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.core.errors import Conflict, NotFound, Refused
from effaced.model import AttemptOutcome

RESOLVERS = """
version: 1
resolvers:
  crm: {kind: noop, ref: person, max_attempts: 4}
  mail: {kind: noop, ref: person}
"""
Run = Callable[..., Result]


@pytest.fixture
def settings(migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in [name for name in os.environ if name.startswith("EFFACED_")]:
        monkeypatch.delenv(name)
    (tmp_path / "resolvers.yaml").write_text(RESOLVERS)
    return Settings(database_url=migrated_url, keys=new_key(), resolvers=tmp_path / "resolvers.yaml")  # type: ignore[arg-type]


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    made = open_quickly(settings.database_url)
    yield made
    made.dispose()


@pytest.fixture
def run(settings: Settings) -> Run:
    def run(*arguments: str) -> Result:
        result = CliRunner(env={"COLUMNS": "200"}).invoke(retries, arguments, obj=settings)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def in_force(run: Run, *arguments: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(run("policy", "show", "--json", *arguments).output)["policy"]
    return found


class TestFigures:
    @pytest.fixture(autouse=True)
    def _tries(self, database: Database) -> None:
        now = clock.now()
        failed = Try(now - timedelta(hours=1), outcome=AttemptOutcome.FAILURE, status_code=503)
        write(database, [Try(now), failed, Try(now, resolver="mail", latency_ms=40)])

    def test_summary_has_a_line_for_each_resolver(self, run: Run) -> None:
        output = run("summary").output
        assert all(word in output for word in ("crm", "mail", "all", "http_503", "(est.)"))

    def test_summary_for_programs(self, run: Run) -> None:
        found = json.loads(run("summary", "--json", "--resolver", "mail").output)
        assert (found["resolver"], found["attempts"], found["avg_latency_ms"]) == ("mail", 1, 40.0)

    def test_timeseries_has_a_line_for_each_hour(self, run: Run) -> None:
        found = json.loads(run("timeseries", "--json", "--hours", "3", "--resolver", "crm").output)
        assert [each["attempts"] for each in found] == [0, 1, 1]
        assert f"{clock.now():%Y-%m-%d %H}:00" in run("timeseries", "--hours", "2").output

    @pytest.mark.parametrize("command", ["summary", "timeseries"])
    @pytest.mark.parametrize("hours", ["0", "169"])
    def test_other_hours_than_1_to_168_are_refused(self, run: Run, command: str, hours: str) -> None:
        with pytest.raises(Refused, match="between 1 and 168"):
            run(command, "--hours", hours)

    @pytest.mark.parametrize("command", [("summary",), ("timeseries",), ("policy", "show")])
    def test_a_resolver_nobody_knows_is_named(self, run: Run, command: tuple[str, ...]) -> None:
        with pytest.raises(NotFound, match="did you mean 'crm'"):
            run(*command, "--resolver", "crn")


class TestPolicy:
    def test_show_is_what_is_in_force(self, run: Run) -> None:
        assert (in_force(run)["max_attempts"], in_force(run, "--resolver", "crm")["max_attempts"]) == (8, 4)
        assert "408, 429, 5xx" in run("policy", "show").output

    def test_set_changes_what_is_named_and_keeps_the_rest(self, run: Run) -> None:
        run("policy", "set", "--resolver", "crm", "--max-attempts", "12")
        run("policy", "set", "--resolver", "crm", "--jitter", "--retry-status-codes", "429,5xx")
        found = in_force(run, "--resolver", "crm")
        assert (found["max_attempts"], found["jitter"]) == (12, True)
        assert found["retry_status_codes"] == [429, *range(500, 600)]
        assert in_force(run)["max_attempts"] == 8

    def test_undo_goes_back(self, run: Run) -> None:
        run("policy", "set", "--max-attempts", "12")
        run("policy", "set", "--max-attempts", "3")
        run("policy", "undo")
        assert in_force(run)["max_attempts"] == 12

    def test_undo_of_nothing_is_refused(self, run: Run) -> None:
        with pytest.raises(Conflict):
            run("policy", "undo", "--resolver", "mail")

    def test_it_is_in_the_trail_and_the_reason_in_a_note(
        self, run: Run, settings: Settings, database: Database
    ) -> None:
        run("policy", "set", "--base-delay", "5", "--reason", "the vendor is slow")
        with database.read() as session:
            (event,) = session.scalars(select(AuditEvent))
            (note,) = session.scalars(select(Note.id))
            assert read_notes(session, settings.keyring, [note]) == {note: "the vendor is slow"}
        assert (event.type, event.actor, event.payload["note_id"]) == ("POLICY_CHANGED", "cli", str(note))

    def test_what_is_out_of_bounds_is_refused_by_name(self, run: Run) -> None:
        with pytest.raises(Refused) as told:
            run("policy", "set", "--max-attempts", "0", "--multiplier", "1")
        assert [each.where for each in told.value.problems] == ["max_attempts", "multiplier"]

    @pytest.mark.parametrize("arguments", [(), ("--retry-status-codes", "many")])
    def test_what_says_nothing_is_refused_with_a_sentence(self, run: Run, arguments: tuple[str, ...]) -> None:
        result = run("policy", "set", *arguments)
        assert result.exit_code == 2
        assert "Error:" in result.output
