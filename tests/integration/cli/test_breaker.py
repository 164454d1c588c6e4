"""P6, P7 and P8 as typed: `effaced breaker ...`, in this process and seen from another one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from attempts_cast import Try, write
from click.testing import CliRunner, Result
from sqlalchemy import select, text

from effaced import doorbell
from effaced.audit.notes import read_notes
from effaced.audit.tables import AuditEvent, Note
from effaced.breakers.model import BreakerState
from effaced.breakers.outcomes import Outcome, OutcomeKind
from effaced.cli.groups import breaker
from effaced.cli.serve import drain
from effaced.core import clock
from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.core.errors import ConfigurationError, Conflict, NotFound, Refused
from effaced.core.servers import Valkey
from effaced.model import AttemptOutcome, SubjectRef, new_id
from effaced.outbox.enqueue import Call, enqueue
from effaced.outbox.flow import pause
from effaced.retries.tables import policies
from effaced.runtime import Runtime

DATAMAP = """
version: 1
subject: {table: customers, key: id}
identifiers: {email: email}
refs: {person: {column: crm_ref}}
tables:
  customers: {columns: {id: delete, email: delete, crm_ref: delete}}
"""
RESOLVERS = """
version: 1
resolvers:
  crm:
    kind: http
    ref: person
    base_url: https://api.example
    rate_per_second: 10
    erase: {method: DELETE, path: "/people/{ref}"}
    gone: [404]
  mail: {kind: noop, ref: person}
"""
Run = Callable[..., Result]
WHY = ("--reason", "the vendor told us so")


@pytest.fixture
def settings(migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in [name for name in os.environ if name.startswith("EFFACED_")]:
        monkeypatch.delenv(name)
    files = {"datamap": tmp_path / "datamap.yaml", "resolvers": tmp_path / "resolvers.yaml"}
    files["datamap"].write_text(DATAMAP)
    files["resolvers"].write_text(RESOLVERS)
    return Settings(database_url=migrated_url, keys=new_key(), **files)  # type: ignore[arg-type]


@pytest.fixture
def runtime(settings: Settings) -> Iterator[Runtime]:
    made = Runtime(settings)
    yield made
    made.db.dispose()


@pytest.fixture
def database(runtime: Runtime) -> Database:
    return runtime.db


@pytest.fixture
def run(settings: Settings) -> Run:
    def run(*arguments: str, width: str = "250") -> Result:
        result = CliRunner(env={"COLUMNS": width}).invoke(breaker, arguments, obj=settings)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def shown(run: Run, *arguments: str) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in json.loads(run("show", "--json", *arguments).output)}


def changed(database: Database) -> list[tuple[str, str, dict[str, Any]]]:
    with database.read() as session:
        rows = session.execute(
            select(policies.c.kind, policies.c.key, policies.c.body).order_by(policies.c.key)
        )
        return [(row.kind.value, row.key, row.body) for row in rows]


def events(database: Database) -> list[tuple[str, str]]:
    with database.read() as session:
        found = select(AuditEvent.type, AuditEvent.actor).order_by(AuditEvent.id)
        return [(row.type, row.actor) for row in session.execute(found)]


def notes(database: Database, settings: Settings) -> list[str]:
    with database.read() as session:
        ids = list(session.scalars(select(Note.id)))
        return list(read_notes(session, settings.keyring, ids).values())


def too_fast(database: Database, resolver: str = "crm") -> None:
    """25 of 100 answers of the last minutes were 429."""
    now = clock.now()
    tries = [
        Try(now - timedelta(seconds=n + 1), resolver=resolver, status_code=429 if n % 4 == 0 else 200)
        for n in range(100)
    ]
    write(database, tries)


class TestShow:
    def test_has_the_breaker_of_every_resolver_and_host(self, run: Run) -> None:
        assert list(shown(run)) == ["resolver:crm", "resolver:mail", "host:api.example"]
        assert shown(run)["host:api.example"]["resolvers"] == ["crm"]
        output = run("show").output
        assert all(word in output for word in ("resolver:crm", "host:api.example", "closed", "now"))

    def test_of_a_resolver_or_a_host_alone(self, run: Run) -> None:
        assert list(shown(run, "--resolver", "crm")) == ["resolver:crm"]
        assert list(shown(run, "--host", "API.example")) == ["host:api.example"]

    def test_says_who_pinned_it_until_when_and_why(self, run: Run) -> None:
        run("open", "crm", "--seconds", "60", *WHY)
        found = shown(run)["resolver:crm"]
        assert (found["state"], found["blocked_by"]) == ("open", "pinned")
        assert (found["pin"]["by"], found["pin"]["reason"]) == ("cli", WHY[1])
        assert WHY[1] in run("show").output

    def test_has_the_failures_in_a_row_and_how_many_open_it(self, run: Run, runtime: Runtime) -> None:
        calls = runtime.breakers
        calls.settle(calls.admit("mail", most=2), [Outcome(OutcomeKind.FAILURE)] * 2)
        (line,) = [line for line in run("show").output.splitlines() if "resolver:mail" in line]
        assert "2 of 5" in line

    def test_nothing_is_cut_off_when_it_is_piped(self, run: Run) -> None:
        output = run("show", width="20").output
        assert all(name in output for name in ("resolver:crm", "resolver:mail", "host:api.example"))


class TestPolicy:
    def test_shows_each_role_the_rate_in_force_and_what_was_changed(self, run: Run) -> None:
        run("set", "crm", "fail_max=3", "--rate", "4", *WHY)
        run("set", "defaults", "jitter_ms=9", *WHY)
        found = json.loads(run("policy", "crm", "--json").output)
        assert {role: each["fail_max"] for role, each in found["roles"].items()} == {
            "erase": 3, "rectify": 3, "verify": 3,
        }  # fmt: skip
        assert (found["roles"]["erase"]["jitter_ms"], found["rate_per_second"]) == (9, 4)
        assert found["overrides"] == {"breaker": {"fail_max": 3}, "rate": {"rate_per_second": 4}}
        assert "Rate limit in force: 4 calls per second (changed here)." in run("policy", "crm").output

    def test_has_the_rate_of_the_file_where_nobody_changed_it_and_none_for_a_host(self, run: Run) -> None:
        assert "Rate limit in force: 10 calls per second." in run("policy", "crm").output
        assert "Rate limit in force: none." in run("policy", "host:api.example").output
        assert json.loads(run("policy", "defaults", "--json").output)["rate_per_second"] is None


class TestSteering:
    def test_open_lets_nothing_through_for_so_long(self, run: Run, runtime: Runtime) -> None:
        before = clock.now()
        run("open", "crm", "--seconds", "600", *WHY)
        until = runtime.breakers.retry_at("crm", "api.example")
        assert until is not None
        assert timedelta(seconds=595) < until - before < timedelta(seconds=630)

    def test_close_lets_everything_through(self, run: Run, runtime: Runtime) -> None:
        run("open", "crm", "--seconds", "600", *WHY)
        run("close", "crm", *WHY)
        assert runtime.breakers.current_state("api.example", "crm") is BreakerState.CLOSED
        assert shown(run)["resolver:crm"]["pin"]["state"] == "closed"

    def test_reset_begins_anew(self, run: Run) -> None:
        run("open", "host:api.example", "--seconds", "600", *WHY)
        run("reset", "host:api.example", *WHY)
        found = shown(run)["host:api.example"]
        assert (found["state"], found["pin"]) == ("closed", None)

    def test_each_is_in_the_trail_with_its_reason_in_a_sealed_note(
        self, run: Run, database: Database, settings: Settings
    ) -> None:
        for command in (("open", "crm", "--seconds", "5"), ("close", "crm"), ("reset", "crm")):
            run(*command, *WHY)
        told = ["BREAKER_FORCED_OPEN", "BREAKER_FORCED_CLOSED", "BREAKER_RESET"]
        assert events(database) == [(each, "cli") for each in told]
        assert notes(database, settings) == [WHY[1]] * 3

    @pytest.mark.parametrize("command", ["close", "reset"])
    def test_who_has_waited_is_rung_for(self, run: Run, command: str) -> None:
        rung: list[frozenset[str]] = []
        doorbell.install(rung.append)
        try:
            run("open", "host:api.example", "--seconds", "60", *WHY)
            assert rung == []
            run(command, "host:api.example", *WHY)
        finally:
            doorbell.install(None)
        assert rung == [frozenset({"crm"})]

    def test_another_process_sees_it_at_once(
        self, run: Run, runtime: Runtime, settings: Settings, tmp_path: Path
    ) -> None:
        environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("EFFACED_")},
            "EFFACED_DATABASE_URL": str(settings.database_url),
            "EFFACED_KEYS": settings.keys.get_secret_value(),
            "EFFACED_DATAMAP": str(settings.datamap),
            "EFFACED_RESOLVERS": str(settings.resolvers),
        }
        assert runtime.breakers.blocked([("crm", "api.example")]) == {}  # it has looked before
        command = [sys.executable, "-m", "effaced", "breaker", "open", "crm", "--seconds", "60", *WHY]
        done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert "pinned open until" in done.stdout
        assert list(runtime.breakers.blocked([("crm", "api.example")])) == ["crm"]
        assert not runtime.breakers.admit("crm", "api.example").granted


class TestAHostThatBlocksToo:
    @pytest.fixture(autouse=True)
    def failing(self, runtime: Runtime) -> None:
        for _ in range(5):
            runtime.breakers.on_failure(runtime.breakers.allow("api.example", "crm"), status=503)

    def test_reset_says_that_the_host_still_blocks_and_so_does_show(self, run: Run) -> None:
        said = run("reset", "crm", *WHY).output
        assert "host:api.example still blocks its calls" in said
        (crm,) = json.loads(run("show", "--resolver", "crm", "--json").output)
        assert (crm["state"], crm["blocked_by_host"]) == ("closed", "host:api.example")
        assert crm["blocked_until"] is not None
        assert "host:api.example" in run("show", "--resolver", "crm").output

    def test_reset_can_include_it(self, run: Run, runtime: Runtime) -> None:
        said = run("reset", "crm", "--include-host", *WHY).output
        assert "still blocks" not in said
        assert runtime.breakers.blocked([("crm", "api.example")]) == {}


class TestNewVerbs:
    def test_unpin_keeps_the_state(self, run: Run, runtime: Runtime) -> None:
        run("open", "crm", "--seconds", "600", *WHY)
        assert "unpinned and open" in run("unpin", "crm", *WHY).output
        assert runtime.breakers.admit("crm").trial
        with pytest.raises(Conflict):
            run("unpin", "crm", *WHY)

    def test_delete_is_for_systems_that_are_gone(self, run: Run, runtime: Runtime) -> None:
        runtime.breakers.force_open("resolver:former", seconds=60, actor="cli")
        run("delete", "resolver:former", *WHY)
        assert runtime.breakers.store.load(["resolver:former"]) == {}
        with pytest.raises(Conflict, match="still configured"):
            run("delete", "crm", *WHY)

    def test_set_changes_policy_and_rate_for_one_or_for_all(self, run: Run, runtime: Runtime) -> None:
        run("set", "crm", "fail_max=3", "rolling.enabled=true", "--rate", "5", *WHY)
        run("set", "defaults", "reset_timeout_s=90", *WHY)
        with runtime.db.read() as session:
            policies = runtime.breaker_policies_in_force(session)
            assert runtime.rate_in_force(session, "resolver:crm") == 5
        crm = policies.for_resolver("crm")
        assert (crm.fail_max, crm.rolling.enabled, crm.reset_timeout_s) == (3, True, 90)
        assert policies.for_resolver("mail").reset_timeout_s == 90

    def test_set_for_all_roles_ends_what_was_set_for_a_role_and_says_so(self, run: Run) -> None:
        run("set", "crm", "roles.erase.fail_max=5", "roles.verify.jitter_ms=3", *WHY)
        run("set", "crm", "roles.verify.fail_max=2", *WHY)
        assert "verify 2" in run("policy", "crm").output
        output = run("set", "crm", "fail_max=4", *WHY).output
        assert "what was changed as roles.erase.fail_max, roles.verify.fail_max ends" in output
        roles = json.loads(run("policy", "crm", "--json").output)["roles"]
        assert {each["fail_max"] for each in roles.values()} == {4}
        assert roles["verify"]["jitter_ms"] == 3
        run("undo", "crm", *WHY)
        roles = json.loads(run("policy", "crm", "--json").output)["roles"]
        assert {role: each["fail_max"] for role, each in roles.items()} == {
            "erase": 5, "rectify": 5, "verify": 2,
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("field", "where"),
        [
            ("nonsense=3", "nonsense"),
            ("fail_max", "fail_max"),
            ("roles.erasing.fail_max=3", "roles.erasing.fail_max"),
        ],
    )
    def test_set_names_a_field_as_it_was_typed(self, run: Run, field: str, where: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            run("set", "crm", field, *WHY)
        assert [each.where for each in caught.value.problems] == [where]

    def test_set_refuses_what_would_open_too_late_or_is_no_field(self, run: Run, runtime: Runtime) -> None:
        with pytest.raises(Refused) as caught:
            run("set", "crm", "fail_max=8", *WHY)
        assert [each.where for each in caught.value.problems] == ["resolvers.crm.fail_max"]
        with pytest.raises(ConfigurationError, match="fail_max"):
            run("set", "crm", "failmax=3", *WHY)
        assert runtime.breakers.policy("resolver:crm").fail_max == 5

    def test_the_half_open_budget_is_shown(self, run: Run, runtime: Runtime) -> None:
        runtime.breakers.repository.update_state("resolver:crm", "half_open")
        assert runtime.breakers.admit("crm").trial
        (crm,) = json.loads(run("show", "--resolver", "crm", "--json").output)
        assert crm["trial_budget"]["erase"] == {"limit": 1, "free": 0}
        assert crm["trial_budget"]["verify"] == {"limit": 1, "free": 1}

    def test_outages_are_told(self, run: Run) -> None:
        assert "No outage" in run("outages").output


def test_while_redis_is_away_show_says_that_these_are_the_last_known_states(
    settings: Settings, own_valkey: Valkey
) -> None:
    redis = settings.model_copy(update={"breaker_store": "redis", "breaker_redis_url": own_valkey.url})
    runtime = Runtime(redis)
    runtime.breakers.force_open("resolver:crm", seconds=600, actor="cli")
    own_valkey.stop()
    shown = CliRunner().invoke(breaker, ["show"], obj=redis, catch_exceptions=False)
    assert "does not answer" in shown.output
    (crm,) = json.loads(
        CliRunner().invoke(breaker, ["show", "--resolver", "crm", "--json"], obj=redis).output
    )
    assert (crm["state"], crm["last_known"]) == ("open", True)
    runtime.db.dispose()


class TestMistakes:
    @pytest.fixture
    def migrated_url(self, migrated_sqlite_url: str) -> str:
        """No database has a say in this, so one is enough."""
        return migrated_sqlite_url

    @pytest.mark.parametrize(
        "command", [("open", "crn", "--seconds", "5"), ("close", "crn"), ("reset", "crn"), ("undo", "crn")]
    )
    def test_a_name_nobody_knows_is_refused_with_the_closest(
        self, run: Run, command: tuple[str, ...]
    ) -> None:
        with pytest.raises(NotFound, match="No breaker has this name; did you mean 'crm'"):
            run(*command, *WHY)

    @pytest.mark.parametrize("option", ["--resolver", "--host"])
    def test_so_is_one_to_be_shown(self, run: Run, option: str) -> None:
        with pytest.raises(NotFound, match="No breaker has this name"):
            run("show", option, "nobody")

    @pytest.mark.parametrize("seconds", ["nan", "inf"])
    def test_a_time_that_is_not_finite_is_no_number(self, run: Run, database: Database, seconds: str) -> None:
        result = run("open", "crm", "--seconds", seconds, *WHY)
        assert (result.exit_code, "is not a finite number" in result.output) == (2, True)
        assert events(database) == []

    @pytest.mark.parametrize("seconds", ["0", "-1", "2592001"])
    def test_a_time_that_can_not_be_is_refused_and_changes_nothing(
        self, run: Run, database: Database, seconds: str
    ) -> None:
        with pytest.raises(Refused, match="seconds must be over 0"):
            run("open", "crm", "--seconds", seconds, *WHY)
        assert events(database) == []

    @pytest.mark.parametrize(
        "arguments",
        [
            ("open", "crm", "--seconds", "soon", *WHY),
            ("open", "crm", *WHY),
            ("open", "crm", "--seconds", "5"),
            ("close", "crm"),
            ("reset", "crm"),
            ("undo", "crm"),
            ("advise", "--enforce"),
            ("open", *WHY),
        ],
        ids=" ".join,
    )
    def test_what_is_missing_or_no_number_ends_with_a_sentence(
        self, run: Run, arguments: tuple[str, ...]
    ) -> None:
        result = run(*arguments)
        assert result.exit_code == 2
        assert "Error: " in result.output

    def test_a_reason_of_nothing_is_refused(self, run: Run, database: Database) -> None:
        with pytest.raises(Refused, match="reason is missing"):
            run("reset", "crm", "--reason", "  ")
        assert events(database) == []

    @pytest.mark.parametrize("command", ["advise", "summary"])
    def test_a_window_that_can_not_be_is_refused(self, run: Run, command: str) -> None:
        with pytest.raises(Refused, match="between 60 and 86400"):
            run(command, "--window-s", "59")


class TestAdvice:
    def test_advise_explains_and_changes_nothing(self, run: Run, database: Database) -> None:
        too_fast(database)
        (plan,) = json.loads(run("advise", "--json").output)["plans"]
        (change,) = plan["changes"]
        assert (plan["breaker"], change["field"], change["from"], change["to"]) == (
            "resolver:crm", "rate_per_second", 10, 8,
        )  # fmt: skip
        assert "25 of 100 calls (25%)" in change["why"]
        output = run("advise").output
        assert "rate_per_second" in output
        assert "Nothing was changed" in output
        assert (changed(database), events(database)) == ([], [])

    def test_enforce_changes_the_rate_and_is_audited(
        self, run: Run, database: Database, settings: Settings
    ) -> None:
        too_fast(database)
        run("advise", "--enforce", *WHY)
        assert changed(database) == [("rate", "crm", {"rate_per_second": 8.0})]
        assert events(database) == [("POLICY_CHANGED", "cli")]
        assert notes(database, settings) == [WHY[1]]

    def test_what_was_before_a_change_says_nothing_about_what_is_in_force(
        self, run: Run, database: Database
    ) -> None:
        too_fast(database)
        run("advise", "--enforce", *WHY)
        assert json.loads(run("advise", "--json").output)["plans"] == []

    def test_enforce_changes_the_policy_in_force_in_every_process(
        self, run: Run, database: Database, runtime: Runtime
    ) -> None:
        now = clock.now()
        waits = [
            Try(now - timedelta(seconds=n), status_code=503, retry_after_s=120, resolver="mail")
            for n in (1, 2)
        ]
        write(database, waits)
        run("advise", "--enforce", *WHY)
        assert changed(database) == [("breaker", "mail", {"reset_timeout_s": 120.0})]
        assert runtime.breakers.policy("resolver:mail").reset_timeout_s == 120
        assert runtime.breakers.policy("resolver:crm").reset_timeout_s == 60

    def test_what_is_enforced_is_in_force_for_roles_that_were_changed_before(
        self, run: Run, runtime: Runtime
    ) -> None:
        run("set", "crm", "roles.erase.fail_max=5", *WHY)
        for _ in range(3):
            runtime.breakers.repository.record_failure_with_open_check("resolver:crm", 1)
            runtime.breakers.reset("resolver:crm", actor="cli")
        (plan,) = json.loads(run("advise", "--json").output)["plans"]
        (change,) = plan["changes"]
        assert (change["from"], change["to"]) == (5, 4)
        assert "what was changed as roles.erase.fail_max ends" in change["why"]
        run("advise", "--enforce", *WHY)
        roles = json.loads(run("policy", "crm", "--json").output)["roles"]
        assert {role: each["fail_max"] for role, each in roles.items()} == {
            "erase": 4, "rectify": 4, "verify": 4,
        }  # fmt: skip

    def test_undo_goes_back_and_is_audited(self, run: Run, database: Database) -> None:
        too_fast(database)
        run("advise", "--enforce", *WHY)
        assert "nothing" in run("undo", "crm", *WHY).output
        assert changed(database) == [("rate", "crm", {})]
        assert [type_ for type_, _ in events(database)] == ["POLICY_CHANGED", "POLICY_UNDONE"]

    def test_undo_of_nothing_is_refused(self, run: Run) -> None:
        with pytest.raises(Conflict, match="Nothing was changed"):
            run("undo", "crm", "--what", "rate", *WHY)

    def test_with_nothing_seen_nothing_is_suggested(self, run: Run) -> None:
        assert "nothing to change" in run("advise").output


def test_summary_shows_each_breaker(run: Run, database: Database) -> None:
    write(database, [Try(clock.now() - timedelta(seconds=5), outcome=AttemptOutcome.FAILURE)])
    run("open", "crm", "--seconds", "60", *WHY)
    found = {each["breaker"]: each for each in json.loads(run("summary", "--json").output)}
    assert (found["resolver:crm"]["opens"], found["resolver:crm"]["reasons"]) == (1, {"forced_open": 1})
    output = run("summary").output
    assert all(word in output for word in ("resolver:crm", "host:api.example", "forced open 1", "(est.)"))


def test_a_drain_says_what_waits_and_for_whom(run: Run, settings: Settings, runtime: Runtime) -> None:
    with runtime.db.begin() as session:
        session.execute(text("CREATE TABLE customers (id integer PRIMARY KEY, email text, crm_ref text)"))
        calls = [Call("crm", SubjectRef("person", "1"))]
        enqueue(session, runtime.keyring, new_id(), runtime.keyring.subject_key("1"), calls)
        pause(session, "mail", actor="cli")
    run("open", "crm", "--seconds", "600", *WHY)
    assert CliRunner().invoke(drain, [], obj=settings).output == (
        "Executed 0 requests and settled 0 external calls. Paused: mail. Held back by a breaker: crm.\n"
    )


class TestPoliciesOfACommand:
    @pytest.fixture
    def migrated_url(self, migrated_sqlite_url: str) -> str:
        """No database has a say in this, so one is enough."""
        return migrated_sqlite_url

    def test_of_the_command_line_win(self, settings: Settings, tmp_path: Path) -> None:
        """P5."""
        file = tmp_path / "breakers.yaml"
        file.write_text("version: 1\ndefaults: {fail_max: 3, success_threshold: 3, trial_calls: 3}\n")
        environment = "defaults.fail_max=4, defaults.success_threshold=2"
        mine = settings.model_copy(update={"breakers": file, "breaker_overrides": environment})
        runtime = Runtime(mine, breaker_overrides=["defaults.fail_max=2"])
        found = runtime.breaker_policies.for_resolver("crm")
        runtime.db.dispose()
        assert (found.fail_max, found.success_threshold, found.trial_calls) == (2, 2, 3)

    @pytest.mark.parametrize("wrong", ["defaults.fail_maxx=3", "defaults.fail_max", "defaults.fail_max=0"])
    def test_a_wrong_one_is_refused_by_its_name(self, run: Run, settings: Settings, wrong: str) -> None:
        with pytest.raises(ConfigurationError, match="fail_max"):
            run("--breaker", wrong, "show")
        result = CliRunner().invoke(drain, ["--breaker", wrong], obj=settings)
        assert isinstance(result.exception, ConfigurationError)
