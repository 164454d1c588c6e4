"""`effaced deadletter ...`, as typed."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result
from letters_cast import Post
from quick_database import open_quickly
from saga_cast import KEYRING
from waiting import PATIENCE, eventually

from effaced.cli.groups import deadletter
from effaced.core.config import Settings
from effaced.core.errors import Conflict, NotFound, Refused
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterStatus, new_id
from effaced.requests.tables import Request

Run = Callable[..., Result]


def keys() -> str:
    """The cast's keys as the setting has them."""
    return ",".join(f"{key_id}:{base64.b64encode(key).decode()}" for key_id, key in KEYRING.keys)


@pytest.fixture
def post(migrated_sqlite_url: str) -> Iterator[Post]:
    database = open_quickly(migrated_sqlite_url)
    yield Post(database)
    database.dispose()


@pytest.fixture
def run(post: Post, migrated_sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "200")
    settings = Settings(database_url=migrated_sqlite_url, keys=keys())  # type: ignore[arg-type]

    def typed(*arguments: str, answer: str | None = None) -> Result:
        return CliRunner().invoke(deadletter, [str(each) for each in arguments], obj=settings, input=answer)

    return typed


def read(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


class TestList:
    def test_shows_what_waits_for_a_person(self, post: Post, run: Run) -> None:
        (letter_id,) = post.fail()
        shown = run("list").output
        for expected in (str(letter_id), "pending", "crm", "ResolverError (http_400)", "fix_and_requeue"):
            assert expected in shown

    def test_says_so_when_there_is_nothing(self, run: Run) -> None:
        assert run("list").output == "There are no unresolved dead letters.\n"
        assert run("list", "--expired").output == "No dead letters match.\n"
        assert run("list", "--late").output == "No dead letters match.\n"

    @pytest.mark.parametrize("columns", ["20", "80", "200"])
    def test_into_a_pipe_has_everything_in_full(
        self, post: Post, run: Run, monkeypatch: pytest.MonkeyPatch, columns: str
    ) -> None:
        (letter_id,) = post.fail()
        with post.db.begin() as session:
            letter = session.get_one(DeadLetter, letter_id)
            letter.failure_type, letter.resolver = "E" * 150, "r" * 150
        monkeypatch.setenv("COLUMNS", columns)
        for shown in (run("list").output, run("show", letter_id).output, run("stats").output):
            assert "E" * 150 in shown
            assert "r" * 150 in shown
        (line,) = [each for each in run("list").output.splitlines() if str(letter_id) in each]
        assert line.split()[1] == str(letter_id)

    @pytest.mark.parametrize("status", list(DeadLetterStatus))
    def test_reaches_every_status(self, post: Post, run: Run, status: DeadLetterStatus) -> None:
        (letter_id,) = post.fail()
        with post.db.begin() as session:
            session.get_one(DeadLetter, letter_id).status = status
        for options in (["--status", status.value], ["--status", "all"]):
            found = read(run("list", "--json", *options))["dead_letters"]
            assert [each["status"] for each in found] == [status]

    def test_without_a_status_has_those_that_were_given_up(self, post: Post, run: Run) -> None:
        given_up, resolved = post.fail(2)
        run("resolve", given_up, "--as", "permanently_failed", "--reason", "they are out of business")
        with post.db.begin() as session:
            session.get_one(DeadLetter, resolved).status = DeadLetterStatus.RESOLVED
        assert [each["id"] for each in read(run("list", "--json"))["dead_letters"]] == [str(given_up)]

    def test_of_expired_ones_removes_and_changes_nothing(self, post: Post, run: Run) -> None:
        expired, later, archived, _ = post.fail(4)
        day = timedelta(days=1)
        with post.db.begin() as session:
            for each, after, status in (
                (expired, -day, "pending"),
                (later, day, "pending"),
                (archived, -2 * day, "archived"),
            ):
                letter = session.get_one(DeadLetter, each)
                letter.expires_at, letter.status = letter.created_at + after, DeadLetterStatus(status)
        before = post.statuses()
        for options, ids in (([], [expired]), (["--status", "all"], [expired, archived])):
            found = read(run("list", "--expired", "--json", *options))["dead_letters"]
            assert [each["id"] for each in found] == [str(each) for each in ids]
        assert found[0]["expires_at"] is not None
        assert post.statuses() == before

    def test_filters(self, post: Post, run: Run) -> None:
        first, second = post.fail(2)
        olga = post.officer()
        run("assign", first, "--to", olga.email)
        with post.db.begin() as session:
            session.get_one(DeadLetter, second).status = DeadLetterStatus.REVIEWING

        def found(*options: str) -> list[str]:
            return [each["id"] for each in read(run("list", "--json", *options))["dead_letters"]]

        assert found("--assigned-to", olga.email) == [str(first)]
        assert found("--unassigned") == [str(second)]
        assert found("--status", "reviewing") == [str(second)]
        assert found("--status", "reviewing", "--status", "pending") == [str(first), str(second)]
        assert found("--resolver", "crm", "--error", "ResolverError", "--code", "http_400") != []
        assert found("--resolver", "other") == []
        assert found("--domain", "message") == []
        request_id = post.letter(first).request_id
        assert found("--request", str(request_id)) == [str(first)]
        with post.db.begin() as session:
            session.get_one(Request, request_id).ref = "ER-7KQ2-M4XP"
        assert found("--request", "er-7kq2-m4xp") == [str(first)]

    def test_pages_for_programs(self, post: Post, run: Run) -> None:
        post.fail(3)
        page = read(run("list", "--json", "--limit", "2"))
        rest = read(run("list", "--json", "--after", page["next"]))
        assert (len(page["dead_letters"]), len(rest["dead_letters"]), rest["next"]) == (2, 1, None)

    @pytest.mark.parametrize(
        ("options", "error"),
        [(["--assigned-to", "nobody@office.example"], NotFound), (["--request", "ER-0000-0000"], NotFound)],
    )
    def test_a_name_that_nobody_has_is_refused(self, run: Run, options: list[str], error: type) -> None:
        result = run("list", *options)
        assert result.exit_code == 1
        assert isinstance(result.exception, error)

    def test_a_word_that_does_not_exist_is_refused_with_those_that_do(self, run: Run) -> None:
        result = run("list", "--status", "done")
        assert result.exit_code == 2
        assert "permanently_failed" in result.output


class TestShow:
    def test_has_everything_with_the_notes(self, post: Post, run: Run) -> None:
        (letter_id,) = post.fail()
        assert run("note", letter_id, "called them").output == "Note added.\n"
        shown = run("show", letter_id).output
        for expected in ("pending", "http_400", "nobody", "0 of 2", "called them", "Command line"):
            assert expected in shown
        found = read(run("show", letter_id, "--json"))
        assert (found["status"], found["notes"][0]["text"]) == ("pending", "called them")

    def test_of_no_letter_is_refused(self, run: Run) -> None:
        assert run("show", "x").exit_code == 2
        assert isinstance(run("show", new_id()).exception, NotFound)


def test_stats_say_what_is_late_and_what_letters_have_in_common(post: Post, run: Run) -> None:
    post.fail(2)
    found = read(run("stats", "--json"))
    assert (found["active"], found["sla"]["external_call"]) == (2, {"hours": 24.0, "breached": 0})
    assert found["facets"]["resolver"] == {"crm": 2}
    assert [(each["resolver"], each["count"]) for each in found["groups"]] == [("crm", 2)]
    shown = run("stats").output
    assert "2 of 2 dead letters are not settled." in shown
    assert "24 h" in shown
    assert "pending 2" in shown
    assert "Resolved older than 30 days: 0." in shown
    assert "Archived older than 90 days: 0." in shown


def test_how_long_they_may_wait_is_a_setting(
    post: Post, migrated_sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (letter_id,) = post.fail()
    with post.db.begin() as session:
        session.get_one(DeadLetter, letter_id).created_at -= timedelta(hours=3)
    hours = {"dead_letter_hours": "external_call=2"}
    settings = Settings(database_url=migrated_sqlite_url, keys=keys(), **hours)  # type: ignore[arg-type]

    def told(*arguments: str) -> Any:
        return read(CliRunner().invoke(deadletter, [*arguments, "--json"], obj=settings))

    assert told("stats")["sla"]["external_call"] == {"hours": 2.0, "breached": 1}
    assert [each["late"] for each in told("list", "--late")["dead_letters"]] == [True]
    assert told("show", str(letter_id))["late"] is True


class TestRequeue:
    def test_named_ones_tell_what_became_of_each(self, post: Post, run: Run) -> None:
        (letter_id,), stranger = post.fail(), new_id()
        result = run("requeue", letter_id, stranger, "--reason", "back")
        assert result.output == f"{letter_id} is tried again.\n{stranger} does not exist.\n"
        assert post.statuses() == ["replaying"]
        told = read(run("requeue", letter_id, "--reason", "back", "--json"))
        assert told == [
            {
                "dead_letter_id": str(letter_id),
                "retried": False,
                "code": "already_replaying",
                "message": "is already replaying",
            }
        ]

    def test_all_of_a_filter_are_carried_out_here(self, post: Post, run: Run) -> None:
        post.fail(3)
        post.fail_correction()
        result = run("requeue", "--all", "--reason", "back", "--yes", "--per-second", "0")
        assert result.exit_code == 0, result.output
        assert "3 of 4 requeued" in result.stdout
        assert "1 left alone: each can't be tried again: its corrections are gone" in result.stdout
        assert sorted(post.statuses()) == ["pending", "replaying", "replaying", "replaying"]

    def test_asks_before_it_does_a_set(self, post: Post, run: Run) -> None:
        post.fail(2)
        result = run("requeue", "--all", "--reason", "back", answer="n\n")
        assert result.exit_code == 1
        assert "2 dead letters will be retried" in result.output
        assert post.statuses() == ["pending"] * 2

    def test_asks_with_the_number_of_those_that_will_be_taken(self, post: Post, run: Run) -> None:
        closed, _ = post.fail_message(), post.fail(2)
        run("resolve", closed, "--reason", "told them by phone")
        result = run("requeue", "--all", "--status", "all", "--reason", "back", answer="n\n")
        assert "2 dead letters will be retried" in result.output
        result = run("requeue", "--all", "--status", "resolved", "--reason", "back", answer="y\n")
        assert isinstance(result.exception, Refused)

    def test_in_the_background_is_left_to_the_scheduler_and_can_be_cancelled(
        self, post: Post, run: Run
    ) -> None:
        post.fail()
        started = read(run("requeue", "--all", "--reason", "back", "--yes", "--background", "--json"))
        assert (started["status"], started["done"]) == ("running", 0)
        assert [each["id"] for each in read(run("redrives", "--json"))] == [started["id"]]
        assert "is cancelled: 0 of 1 requeued, 1 left." in run("cancel", started["id"]).output
        assert isinstance(run("cancel", started["id"]).exception, Conflict)
        assert post.statuses() == ["pending"]

    def test_force_takes_those_whose_tries_are_used_up(self, post: Post, run: Run) -> None:
        (letter_id,) = post.fail()
        with post.db.begin() as session:
            letter = session.get_one(DeadLetter, letter_id)
            letter.status, letter.retry_count = DeadLetterStatus.REQUIRES_REVIEW, 2
        assert "force it" in run("requeue", letter_id, "--reason", "x").output
        assert "is tried again" in run("requeue", letter_id, "--reason", "x", "--force").output

    @pytest.mark.parametrize("arguments", [(), ("--all", "x"), ("x", "--late")])
    def test_is_refused_if_it_is_unclear_which(self, run: Run, arguments: tuple[str, ...]) -> None:
        result = run("requeue", *arguments, "--reason", "x")
        assert result.exit_code == 2
        assert "Usage" in result.output

    def test_of_nothing_is_refused(self, run: Run) -> None:
        assert isinstance(run("requeue", "--all", "--reason", "x", "--yes").exception, Refused)


class TestDecisions:
    def test_resolve_and_open_again(self, post: Post, run: Run) -> None:
        letter_id = post.fail_message()
        assert (
            run("resolve", letter_id, "--reason", "told them by phone").output
            == "1 dead letter is now resolved.\n"
        )
        assert post.letter(letter_id).resolved_by == "cli"
        result = run("resolve", letter_id, "--as", "reviewing", "--reason", "x")
        assert isinstance(result.exception, Conflict)

    def test_all_or_none(self, post: Post, run: Run) -> None:
        message, (erasure,) = post.fail_message(), post.fail()
        result = run("resolve", message, erasure, "--reason", "x")
        assert isinstance(result.exception, Conflict)
        assert set(post.statuses()) == {"pending"}

    @pytest.mark.parametrize("status", ["resolved", "rejected"])
    def test_a_correction_that_was_not_made_is_not_closed(self, post: Post, run: Run, status: str) -> None:
        letter_id = post.fail_correction()
        result = run("resolve", letter_id, "--as", status, "--reason", "x")
        assert isinstance(result.exception, Conflict)
        assert post.statuses() == ["pending"]

    def test_assign_to_nobody(self, post: Post, run: Run) -> None:
        (letter_id,) = post.fail()
        olga = post.officer()
        assert run("assign", letter_id, "--to", olga.email).output == "Changed 1.\n"
        assert "olga" in run("list").output
        assert run("assign", letter_id, "--nobody").output == "Changed 1.\n"
        assert run("assign", letter_id).exit_code == 2


class TestArchiveAndPurge:
    def settled(self, post: Post, number: int) -> list[UUID]:
        ids = [post.fail_message() for _ in range(number)]
        with post.db.begin() as session:
            for each in ids:
                letter = session.get_one(DeadLetter, each)
                letter.status, letter.resolved_at = DeadLetterStatus.RESOLVED, letter.created_at
        return ids

    def test_archive_named_ones_and_by_age(self, post: Post, run: Run) -> None:
        first, _ = self.settled(post, 2)
        (pending,) = post.fail()
        result = run("archive", first, pending)
        assert result.output == "Archived 1. Left alone because not settled: 1.\n"
        result = run("archive", "--older-than-days", "0", "--yes")
        assert result.output == "Archived 1.\n"
        assert sorted(post.statuses()) == ["archived", "archived", "pending"]

    def test_purge_previews_asks_and_removes(self, post: Post, run: Run) -> None:
        ids = self.settled(post, 2)
        run("archive", *ids)
        assert run("purge", "--older-than-days", "0", "--preview").output == "2 would be removed.\n"
        refused = run("purge", "--older-than-days", "0", "--reason", "old", answer="n\n")
        assert (refused.exit_code, len(post.letters())) == (1, 2)
        done = run("purge", "--older-than-days", "0", "--reason", "old", "--yes")
        assert done.output == "Removed 2.\n"
        assert post.letters() == []

    def test_purge_previews_named_ones_as_it_would_remove_them(self, post: Post, run: Run) -> None:
        (letter_id,), stranger = self.settled(post, 1), new_id()
        assert isinstance(run("purge", letter_id, "--preview").exception, Refused)
        run("archive", letter_id)
        assert run("purge", letter_id, stranger, "--preview").output == "1 would be removed.\n"
        assert run("purge", letter_id, stranger, "--reason", "old", "--yes").output == "Removed 1.\n"

    def test_evict_previews_asks_and_removes_the_oldest_archived(self, post: Post, run: Run) -> None:
        oldest, newest = self.settled(post, 2)
        (pending,) = post.fail()
        run("archive", oldest, newest)
        assert run("evict", "--count", "9", "--preview").output == "2 would be removed.\n"
        assert "--reason" in run("evict", "--count", "1", "--yes").output
        refused = run("evict", "--count", "1", "--reason", "old", answer="n\n")
        assert (refused.exit_code, len(post.letters())) == (1, 3)
        none = run("evict", "--count", "1", "--domain", "external_call", "--reason", "old", "--yes")
        assert none.output == "Removed 0. No more of them are archived.\n"
        assert run("evict", "--count", "1", "--reason", "old", "--yes").output == "Removed 1.\n"
        assert [each.id for each in post.by_age()] == [newest, pending]
        assert read(run("summaries", "--json"))["totals"]["letters"] == 0
        (action,) = post.events("DEAD_LETTERS_PURGED")
        assert (action.actor, action.payload["count"]) == ("cli", 1)
        assert "note_id" in action.payload

    def test_compressed_ones_leave_a_summary_that_can_be_listed_and_put_away(
        self, post: Post, run: Run
    ) -> None:
        assert run("summaries").output == "There are no summaries.\n"
        run("archive", *self.settled(post, 2))
        done = run("evict", "--count", "5", "--compress", "--reason", "old", "--yes")
        assert done.output == "Removed 2. No more of them are archived.\n"
        found = read(run("summaries", "--json", "--domain", "message", "--status", "active"))
        (summary,) = found["summaries"]
        assert (summary["error"], summary["code"], summary["count"]) == ("Refused", "http_400", 2)
        assert found["totals"]["by_domain"] == {"message": 2}
        shown = run("summaries").output
        assert summary["id"] in shown
        assert "stand for 2 removed dead letters." in shown
        assert run("summaries", "--status", "archived").output == "No summaries match.\n"
        marked = run("mark-summary", summary["id"], "archived")
        assert marked.output == "The summary is now archived.\n"
        for summary_id, status in ((summary["id"], "stale"), (new_id(), "stale"), ("x", "stale")):
            assert isinstance(run("mark-summary", summary_id, status).exception, NotFound)

    def test_purge_of_one_that_is_not_archived_removes_nothing(self, post: Post, run: Run) -> None:
        (pending,) = post.fail()
        result = run("purge", pending, "--reason", "x", "--yes")
        assert isinstance(result.exception, Refused)
        assert len(post.letters()) == 1

    @pytest.mark.parametrize("command", ["archive", "purge"])
    def test_without_a_choice_are_refused(self, run: Run, command: str) -> None:
        result = run(command)
        assert result.exit_code == 2
        assert "--older-than-days" in result.output

    def test_purge_without_a_reason_is_refused(self, run: Run) -> None:
        assert "--reason" in run("purge", "--older-than-days", "0", "--yes").output


@pytest.mark.parametrize(
    "command",
    [
        "list",
        "show",
        "stats",
        "requeue",
        "redrives",
        "cancel",
        "resolve",
        "assign",
        "note",
        "archive",
        "purge",
    ],
)
def test_every_command_has_help_that_says_what_it_does(run: Run, command: str) -> None:
    shown = run(command, "--help")
    assert shown.exit_code == 0
    assert len(shown.output.splitlines()) >= 5


def test_ctrl_c_cancels_a_set_where_it_is(post: Post, migrated_sqlite_url: str, tmp_path: Path) -> None:
    """A real process, told to stop in the middle: what was requeued stays so."""
    post.fail(4)
    command = ["requeue", "--all", "--yes", "--reason", "back", "--per-second", "0.03"]
    process = subprocess.Popen(
        [sys.executable, "-m", "effaced", "deadletter", *command],
        env={"PATH": "", "EFFACED_DATABASE_URL": migrated_sqlite_url, "EFFACED_KEYS": keys()},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        eventually(lambda: post.statuses().count("replaying") == 2, "two of four requeued")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait(30)
    assert process.returncode == 0, errors
    assert "is cancelled: 2 of 4 requeued, 2 left." in output
    assert sorted(post.statuses()) == ["pending", "pending", "replaying", "replaying"]
