"""`effaced officer` and `effaced apikey`, as typed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner, Result
from quick_database import open_quickly

from effaced.accounts.api_keys import authenticate
from effaced.accounts.sign_in import Attempt, sign_in
from effaced.cli.groups import apikey, officer
from effaced.core.config import Settings
from effaced.core.crypto import Keyring, new_key
from effaced.core.errors import Conflict, NotFound, Refused

Run = Callable[..., Result]
PASSWORD = "correct horse battery"
ADD_ADA = ("add", "ada@example.org", "--name", "Ada [admin]", "--password-stdin")


@pytest.fixture
def run(migrated_sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in [name for name in os.environ if name.startswith("EFFACED_")]:
        monkeypatch.delenv(name)
    settings = Settings(database_url=migrated_sqlite_url, keys=new_key())  # type: ignore[arg-type]

    def run(group: click.Group, *arguments: str, typed: str = "") -> Result:
        result = CliRunner().invoke(group, arguments, obj=settings, input=typed)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def may_sign_in(url: str, password: str) -> bool:
    attempt = Attempt("ada@example.org", password, address="192.0.2.1")
    return sign_in(open_quickly(url), Keyring.parse(new_key()), attempt).officer is not None


def test_an_added_officer_can_sign_in(run: Run, migrated_sqlite_url: str) -> None:
    assert run(officer, *ADD_ADA, typed=f"{PASSWORD}\n").exit_code == 0
    assert may_sign_in(migrated_sqlite_url, PASSWORD)


def test_the_password_is_asked_for_twice_and_not_shown(run: Run, migrated_sqlite_url: str) -> None:
    result = run(officer, *ADD_ADA[:-1], typed=f"{PASSWORD}\n{PASSWORD}\n")
    assert result.exit_code == 0
    assert PASSWORD not in result.output
    assert may_sign_in(migrated_sqlite_url, PASSWORD)


def test_a_short_password_is_refused_by_name(run: Run) -> None:
    with pytest.raises(Refused, match="password: must have 12 to 256 characters"):
        run(officer, *ADD_ADA, typed="short\n")


def test_an_address_is_added_once(run: Run) -> None:
    run(officer, *ADD_ADA, typed=PASSWORD)
    with pytest.raises(Conflict, match="e-mail"):
        run(officer, *ADD_ADA, typed=PASSWORD)


def test_officers_are_listed_for_people_and_for_programs(run: Run) -> None:
    assert "effaced officer add" in run(officer, "list").output
    assert json.loads(run(officer, "list", "--json").output) == []
    run(officer, *ADD_ADA, "--role", "admin", typed=PASSWORD)
    assert "Ada [admin]" in run(officer, "list").output
    (listed,) = json.loads(run(officer, "list", "--json").output)
    assert (listed["email"], listed["role"], listed["active"]) == ("ada@example.org", "admin", True)
    assert not any("hash" in name for name in listed)


def test_a_new_password_replaces_the_old_one(run: Run, migrated_sqlite_url: str) -> None:
    run(officer, *ADD_ADA, typed=PASSWORD)
    run(officer, "passwd", "Ada@example.org", "--password-stdin", typed="another good password")
    assert may_sign_in(migrated_sqlite_url, "another good password")
    assert not may_sign_in(migrated_sqlite_url, PASSWORD)


def test_a_deactivated_officer_is_listed_and_can_not_sign_in(run: Run, migrated_sqlite_url: str) -> None:
    run(officer, *ADD_ADA, typed=PASSWORD)
    run(officer, "deactivate", "ada@example.org")
    assert "deactivated" in run(officer, "list").output
    assert not may_sign_in(migrated_sqlite_url, PASSWORD)


@pytest.mark.parametrize("command", [("passwd", "--password-stdin"), ("deactivate",)])
def test_an_unknown_officer_is_not_found(run: Run, command: tuple[str, ...]) -> None:
    with pytest.raises(NotFound, match="effaced officer list"):
        run(officer, *command, "nobody@example.org", typed=PASSWORD)


def test_a_new_key_goes_to_standard_output_alone(run: Run, migrated_sqlite_url: str) -> None:
    result = run(apikey, "new", "--name", "web shop", "--approvals", "0")
    with open_quickly(migrated_sqlite_url).read() as session:
        key = authenticate(session, result.stdout.strip())
    assert key is not None
    assert (key.name, key.approvals_needed) == ("web shop", 0)
    assert "can't be shown again" in result.stderr


def test_other_numbers_of_approvals_are_refused(run: Run) -> None:
    result = run(apikey, "new", "--name", "web shop", "--approvals", "2")
    assert result.exit_code == 2
    assert "'0', '1'" in result.output


def test_keys_are_listed_without_their_secrets(run: Run) -> None:
    assert "effaced apikey new" in run(apikey, "list").output
    token = run(apikey, "new", "--name", "web shop").stdout.strip()
    secret = token.rsplit("_", 1)[1]
    for output in (run(apikey, "list").output, run(apikey, "list", "--json").output):
        assert "web shop" in output
        assert secret not in output
    (listed,) = json.loads(run(apikey, "list", "--json").output)
    assert token.startswith(f"eff_{listed['prefix']}_")
    assert listed["approvals_needed"] == 1


@pytest.mark.parametrize("by", ["name", "prefix"])
def test_a_revoked_key_is_no_good_any_more(run: Run, migrated_sqlite_url: str, by: str) -> None:
    token = run(apikey, "new", "--name", "web shop").stdout.strip()
    run(apikey, "revoke", "web shop" if by == "name" else token.rsplit("_", 1)[0])
    with open_quickly(migrated_sqlite_url).read() as session:
        assert authenticate(session, token) is None
    assert "revoked" in run(apikey, "list").output


def test_an_unknown_key_is_not_found(run: Run) -> None:
    with pytest.raises(NotFound, match="effaced apikey list"):
        run(apikey, "revoke", "nothing")


def add_officer(run: Run, email: str, role: str = "officer") -> None:
    run(officer, "add", email, "--name", "Mara", "--role", role, "--password-stdin", typed=f"{PASSWORD}\n")


def test_a_key_for_an_officer_stops_with_the_officer(run: Run, migrated_sqlite_url: str) -> None:
    add_officer(run, "mara@example.org")
    arguments = ("--name", "desk", "--scope", "decide:approve", "--officer", " MARA@example.org")
    token = run(apikey, "new", *arguments).stdout.strip()
    (listed,) = json.loads(run(apikey, "list", "--json").output)
    assert (listed["officer"], listed["state"]) == ("mara@example.org", "active")
    run(officer, "deactivate", "mara@example.org")
    with open_quickly(migrated_sqlite_url).read() as session:
        assert authenticate(session, token) is None
    (listed,) = json.loads(run(apikey, "list", "--json").output)
    assert listed["state"] == "stopped: its officer may not decide"


def test_a_key_says_that_it_is_for_trying_out_and_what_it_declares(run: Run) -> None:
    run(apikey, "new", "--name", "trial", "--sandbox", "--metadata", "ticket", "--metadata", "order")
    (listed,) = json.loads(run(apikey, "list", "--json").output)
    assert (listed["sandbox"], listed["metadata_keys"]) == (True, ["order", "ticket"])
    assert listed["state"] == "sandbox"
    assert (listed["officer"], listed["officer_id"]) == (None, None)


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        (("--scope", "decide:approve"), {"officer_id"}),
        (("--officer", "mara@example.org"), {"scopes"}),
        (("--officer", "ada@example.org", "--scope", "decide:read"), {"officer_id"}),
        (("--sandbox", "--scope", "operate:read"), {"scopes"}),
        (("--sandbox", "--scope", "decide:read", "--officer", "mara@example.org"), {"scopes"}),
        (("--metadata", "e-mail"), {"metadata_keys"}),
        (("--metadata", "a\nb"), {"metadata_keys"}),
    ],
)
def test_a_key_that_breaks_the_rules_is_refused_by_field(
    run: Run, arguments: tuple[str, ...], fields: set[str]
) -> None:
    add_officer(run, "mara@example.org")
    add_officer(run, "ada@example.org", "auditor")
    with pytest.raises(Refused) as refused:
        run(apikey, "new", "--name", "desk", *arguments)
    assert {each.where for each in refused.value.problems} == fields
    assert json.loads(run(apikey, "list", "--json").output or "[]") == []


def test_a_key_for_nobody_is_not_found(run: Run) -> None:
    with pytest.raises(NotFound, match="effaced officer list"):
        run(apikey, "new", "--name", "desk", "--scope", "decide:read", "--officer", "x@example.org")
