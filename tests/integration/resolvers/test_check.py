"""`effaced resolver check` and `list`, against the demo's vendors and its resolvers.yaml."""

from __future__ import annotations

import asyncio
import json
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

from effaced.cli.resolver import resolver as group
from effaced.config import load_settings
from effaced.crypto import new_key
from effaced.demo.vendors import VENDORS, Vendors
from effaced.errors import ConfigurationError, NotFound
from effaced.resolvers.check import Checked, Finding, check, check_all, made_up
from effaced.resolvers.load import load_registry
from effaced.resolvers.registry import Registered, ResolverRegistry

DEMO = Path(str(files("effaced.demo") / "resolvers.yaml"))


@pytest.fixture
def vendors():
    with Vendors() as running:
        yield running


@pytest.fixture
def environ(vendors):
    return vendors.environ


@pytest.fixture
def check_demo(environ, tmp_path):
    """Check the demo's resolvers, after changing the text of their file if need be."""

    def run(*names: str, replace: tuple[str, str] = ("", "")) -> dict[str, Checked]:
        path = tmp_path / "resolvers.yaml"
        path.write_text(DEMO.read_text().replace(*replace) if replace[0] else DEMO.read_text())
        checked = asyncio.run(check_all(load_registry(path, environ), names))
        return {each.name: each for each in checked}

    return run


def test_the_demo_is_in_order(check_demo):
    by_hand = {"archive": Finding.UNSURE}  # there is nobody to ask
    found = {name: each.finding for name, each in check_demo().items()}
    assert dict.fromkeys(VENDORS, Finding.OK) | by_hand == found


def test_a_check_deletes_nothing(vendors, check_demo):
    vendors.seed("payment", {"cus_1": {}})
    check_demo()
    assert {"GET"} == {call.method for call in vendors.calls}


def test_only_the_named_ones_are_checked(check_demo):
    assert list(check_demo("crm")) == ["crm"]


def test_a_mistyped_path_that_answers_404_to_everybody_is_found(check_demo):
    found = check_demo("payment", replace=("/v1/customers/", "/v1/custommers/"))["payment"]
    assert Finding.PROBLEM is found.finding
    assert "canary is absent" in found.sentence


def test_a_canary_that_is_gone_is_found(vendors, check_demo):
    vendors.store.delete("payment", ["cus_canary"])
    assert Finding.PROBLEM is check_demo("payment")["payment"].finding


def test_a_read_back_that_finds_everybody_present_is_found(check_demo):
    everybody = ("absent: [404], present: [200]", "absent: [410], present: [200, 404]")
    found = check_demo("crm", replace=everybody)["crm"]
    assert Finding.PROBLEM is found.finding
    assert "A made-up reference is present" in found.sentence


def test_refused_credentials_point_at_auth(vendors, check_demo):
    vendors.fault("crm", "unauthorised")
    found = check_demo("crm")["crm"]
    assert (found.finding, "look at `auth`" in found.sentence) == (Finding.PROBLEM, True)


@pytest.mark.parametrize("how", ["close", "503"])
def test_a_system_that_is_down_is_a_problem(vendors, check_demo, how):
    vendors.fault("crm", "down", how=how)
    found = check_demo("crm")["crm"]
    assert (found.finding, "no useful answer" in found.sentence) == (Finding.PROBLEM, True)


def test_an_answer_nobody_declared_is_a_problem(vendors, check_demo):
    vendors.fault("crm", "rejects", status=418)
    found = check_demo("crm")["crm"]
    assert (found.finding, "http_418" in found.sentence) == (Finding.PROBLEM, True)


def test_without_a_canary_the_result_is_unsure(check_demo):
    found = check_demo("crm", replace=("    canary: con_canary\n", ""))["crm"]
    assert (found.finding, "set `canary`" in found.sentence) == (Finding.UNSURE, True)


class Plain:
    async def erase_subject(self, ref, *, key):
        raise AssertionError("a check must not erase")


class Odd(Plain):
    async def verify_absent(self, ref, *, key):
        raise KeyError("anna@people.example")


def test_a_resolver_without_read_back_is_not_called():
    found = asyncio.run(check(Registered("plain", "person", Plain(), canary="1")))
    assert Finding.UNSURE is found.finding


def test_whatever_a_resolver_raises_is_told_by_class_name_only():
    found = asyncio.run(check(Registered("odd", "person", Odd(), canary="1")))
    assert Checked("odd", Finding.PROBLEM, "The canary: the resolver failed (KeyError).") == found


def test_a_made_up_reference_is_never_the_same_and_looks_like_the_canary():
    assert made_up("a@b.example") != made_up("a@b.example")
    assert made_up("a@b.example").endswith("@b.example")
    assert "@" not in made_up("cus_1")


# --- the command -------------------------------------------------------------------------------------


@pytest.fixture
def run(environ, monkeypatch, migrated_sqlite_url):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    def invoke(*arguments: str, path: Path = DEMO):
        settings = load_settings(keys=new_key(), resolvers=path, database_url=migrated_sqlite_url)
        return CliRunner(env={"COLUMNS": "200"}).invoke(group, list(arguments), obj=settings)

    return invoke


def test_check_prints_one_line_per_resolver_and_exits_with_0(run):
    result = run("check")
    assert (result.exit_code, result.output.count(" ok ")) == (0, 4)


def test_check_exits_with_1_if_there_is_a_problem(run, vendors):
    vendors.fault("files", "unauthorised")
    result = run("check")
    assert (result.exit_code, result.output.count(" ok "), result.output.count(" problem ")) == (1, 3, 1)


def test_check_of_one_names_only_that_one(run):
    result = run("check", "crm")
    assert (result.exit_code, result.output.count(" ok ")) == (0, 1)


def test_check_of_an_unknown_name_says_which_are_known(run):
    result = run("check", "cmr")
    assert isinstance(result.exception, NotFound)
    assert str(result.exception) == "No resolver is named 'cmr'; did you mean 'crm'?"


def test_a_missing_variable_is_named(run, monkeypatch):
    monkeypatch.delenv("EFFACED_DEMO_TOKEN")
    result = run("check")
    assert isinstance(result.exception, ConfigurationError)
    assert "EFFACED_DEMO_TOKEN is not set" in str(result.exception)


def test_list_shows_what_each_can_do(run):
    result = run("list")
    assert result.exit_code == 0
    can = {each["name"]: each["can"] for each in json.loads(run("list", "--json").output)}
    assert can == {
        "payment": ["erase", "rectify", "verify"],
        "crm": ["erase", "rectify", "verify"],
        "mailing": ["erase", "verify"],
        "files": ["erase", "verify"],
        "archive": ["by hand"],
    }


@pytest.mark.parametrize("command", ["list", "check"])
def test_no_resolvers_is_said_in_a_sentence(run, tmp_path, command):
    path = tmp_path / "empty.yaml"
    path.write_text("version: 1\nresolvers: {}\n")
    result = run(command, path=path)
    assert result.exit_code == 0
    assert result.output.startswith("No resolvers in ")


def test_check_all_refuses_unknown_names():
    registry = ResolverRegistry((Registered("one", "person", Plain()),))
    assert isinstance(asyncio.run(check_all(registry, ["one"]))[0], Checked)
    with pytest.raises(Exception, match="No resolver is named 'two'"):
        asyncio.run(check_all(registry, ["two"]))
