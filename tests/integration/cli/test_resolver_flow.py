"""`effaced resolver list | pause | resume`, as typed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result
from quick_database import open_quickly
from sqlalchemy import select

from effaced.audit.notes import read_notes
from effaced.audit.tables import AuditEvent
from effaced.cli.groups import resolver
from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.core.errors import Conflict, NotFound, Refused
from effaced.model import SubjectKey, SubjectRef, new_id
from effaced.outbox.enqueue import Call, enqueue

RESOLVERS = """
version: 1
resolvers:
  crm: {kind: noop, ref: person}
  archive: {kind: manual, ref: person, after: [crm]}
"""


@pytest.fixture
def settings(migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in [name for name in os.environ if name.startswith("EFFACED_")]:
        monkeypatch.delenv(name)
    (tmp_path / "resolvers.yaml").write_text(RESOLVERS)
    return Settings(database_url=migrated_url, keys=new_key(), resolvers=tmp_path / "resolvers.yaml")  # type: ignore[arg-type]


@pytest.fixture
def run(settings: Settings) -> Callable[..., Result]:
    def run(*arguments: str) -> Result:
        result = CliRunner(env={"COLUMNS": "200"}).invoke(resolver, arguments, obj=settings)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def listed(run: Callable[..., Result]) -> dict[str, Any]:
    return {each["name"]: each for each in json.loads(run("list", "--json").output)}


def test_list_counts_what_waits(run: Callable[..., Result], settings: Settings) -> None:
    database = open_quickly(settings.database_url)
    with database.begin() as session:
        calls = [
            Call(name, SubjectRef("person", "1"), after=after)
            for name, after in (("crm", ()), ("archive", ("crm",)))
        ]
        enqueue(session, settings.keyring, new_id(), SubjectKey("k1", "0" * 64), calls)
    database.dispose()
    found = listed(run)
    assert {name: (each["kind"], each["waiting"]) for name, each in found.items()} == {
        "crm": ("noop", 1),
        "archive": ("manual", 1),
    }
    assert found["archive"]["after"] == ["crm"]
    assert found["crm"]["paused"] is None


def test_a_pause_is_listed_with_who_and_why_and_ends_with_resume(run: Callable[..., Result]) -> None:
    assert run("pause", "crm", "--reason", "moving [house]", "--hours", "2").output == "Paused.\n"
    paused = listed(run)["crm"]["paused"]
    assert (paused["by"], paused["reason"], paused["all"]) == ("Command line", "moving [house]", False)
    assert paused["until"] is not None
    assert "moving [house]" in run("list").output
    assert run("resume", "crm", "--reason", "done").output == "Resumed.\n"
    assert listed(run)["crm"]["paused"] is None


def test_all_are_paused_together(run: Callable[..., Result]) -> None:
    run("pause", "--all", "--reason", "incident")
    assert {name: each["paused"]["all"] for name, each in listed(run).items()} == {
        "crm": True,
        "archive": True,
    }
    assert run("list").output.startswith("Everything is paused: since ")
    run("resume", "--all", "--reason", "over")
    assert listed(run)["crm"]["paused"] is None


def test_it_is_in_the_trail_and_the_reason_in_a_note(run: Callable[..., Result], settings: Settings) -> None:
    run("pause", "crm", "--reason", "moving house")
    database = open_quickly(settings.database_url)
    with database.read() as session:
        event = session.scalars(select(AuditEvent)).one()
        notes = read_notes(session, settings.keyring, [UUID(event.payload["note_id"])])
    database.dispose()
    assert (event.type, event.actor) == ("RESOLVER_PAUSED", "cli")
    assert list(notes.values()) == ["moving house"]
    assert "moving" not in str(event.payload)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (("pause", "cmr", "--reason", "x"), NotFound, "No resolver is named 'cmr'; did you mean 'crm'?"),
        (("pause", "crm", "--reason", " "), Refused, "The reason is missing."),
        (("pause", "crm", "--reason", "x", "--hours", "0"), Refused, "more than 0 and at most 2160"),
        (("resume", "crm", "--reason", "x"), Conflict, "'crm' is not paused."),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(
    run: Callable[..., Result], arguments: tuple[str, ...], error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as caught:
        run(*arguments)
    assert said in str(caught.value)
    assert listed(run)["crm"]["paused"] is None


@pytest.mark.parametrize(
    "arguments", [("pause", "--reason", "x"), ("resume", "crm", "--all", "--reason", "x")]
)
def test_one_name_or_all_and_not_both(run: Callable[..., Result], arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Name one resolver, or say --all." in result.output
