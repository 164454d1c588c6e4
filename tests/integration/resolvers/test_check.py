"""`effaced resolver check` and `list`, against the demo's vendors and its resolvers.yaml."""

from __future__ import annotations

import asyncio
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner
from quick_database import open_quickly
from sqlalchemy import text

from effaced.cli.groups import resolver as group
from effaced.core.config import load_settings
from effaced.core.crypto import new_key
from effaced.core.errors import ConfigurationError, NotFound, Refused
from effaced.demo.vendors import VENDORS, Vendors
from effaced.model import CheckReason, ReadBackProof
from effaced.resolvers.check import Checked, check, check_all, invent_reference
from effaced.resolvers.load import load_registry
from effaced.resolvers.protocols import Rectified
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
    by_hand = {"archive": ReadBackProof.UNPROVEN}  # there is nobody to ask
    found = {name: each.proof for name, each in check_demo().items()}
    assert dict.fromkeys(VENDORS, ReadBackProof.PROVEN) | by_hand == found


def test_a_check_deletes_nothing(vendors, check_demo):
    vendors.seed("payment", {"cus_1": {}})
    check_demo()
    assert {"GET"} == {call.method for call in vendors.calls}


def test_only_the_named_ones_are_checked(check_demo):
    assert list(check_demo("crm")) == ["crm"]


def test_a_mistyped_path_that_answers_404_to_everybody_is_found(check_demo):
    found = check_demo("payment", replace=("/v1/customers/", "/v1/custommers/"))["payment"]
    assert ReadBackProof.FAILED is found.proof
    assert "canary is absent" in found.sentence


def test_a_canary_that_is_gone_is_found(vendors, check_demo):
    vendors.store.delete("payment", ["cus_canary"])
    assert ReadBackProof.FAILED is check_demo("payment")["payment"].proof


def test_a_read_back_that_finds_everybody_present_is_found(check_demo):
    everybody = ("absent: [404], present: [200]", "absent: [410], present: [200, 404]")
    found = check_demo("crm", replace=everybody)["crm"]
    assert ReadBackProof.FAILED is found.proof
    assert "An invented reference is present" in found.sentence


def test_refused_credentials_point_at_auth(vendors, check_demo):
    vendors.fault("crm", "unauthorised")
    found = check_demo("crm")["crm"]
    assert (found.proof, "check `auth`" in found.sentence) == (ReadBackProof.FAILED, True)


@pytest.mark.parametrize("how", ["close", "503"])
def test_a_system_that_is_down_is_a_problem(vendors, check_demo, how):
    vendors.fault("crm", "down", how=how)
    found = check_demo("crm")["crm"]
    assert (found.proof, "no useful answer" in found.sentence) == (ReadBackProof.FAILED, True)


def test_an_answer_nobody_declared_is_a_problem(vendors, check_demo):
    vendors.fault("crm", "rejects", status=418)
    found = check_demo("crm")["crm"]
    assert (found.proof, "http_418" in found.sentence) == (ReadBackProof.FAILED, True)


def test_a_system_without_a_canary_is_unproven(check_demo):
    found = check_demo("crm", replace=("    canary: con_canary\n", ""))["crm"]
    assert (found.proof, "set `canary`" in found.sentence) == (ReadBackProof.UNPROVEN, True)


class Plain:
    async def erase_subject(self, ref, *, key):
        raise AssertionError("a check must not erase")


class Odd(Plain):
    async def verify_absent(self, ref, *, key):
        raise KeyError("anna@people.example")


def test_a_resolver_without_read_back_is_not_called():
    found = asyncio.run(check(Registered("plain", "person", Plain(), canary="1")))
    assert ReadBackProof.UNPROVEN is found.proof


def test_whatever_a_resolver_raises_is_told_by_class_name_only():
    found = asyncio.run(check(Registered("odd", "person", Odd(), canary="1")))
    said = "The canary: the resolver failed (KeyError)."
    assert Checked("odd", CheckReason.CANARY_UNANSWERED, said) == found


class Vague(Plain):
    async def verify_absent(self, ref, *, key):
        return None


def test_an_answer_that_is_neither_true_nor_false_proves_nothing():
    found = asyncio.run(check(Registered("vague", "person", Vague(), canary="1")))
    assert CheckReason.CANARY_UNANSWERED is found.reason


class Stopping(Plain):
    """Sees the canary, and raises for everybody else."""

    def __init__(self, error):
        self.error = error

    async def verify_absent(self, ref, *, key):
        if ref.value == "1":
            return False
        raise self.error


@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit, BaseException, asyncio.TimeoutError])
def test_whatever_stops_a_resolver_fails_its_check_and_no_other(error):
    registry = ResolverRegistry(
        (
            Registered("stopping", "person", Stopping(error()), canary="1"),
            Registered("plain", "person", Plain()),
        )
    )
    first, second = asyncio.run(check_all(registry))
    assert (first.proof, first.reason) == (ReadBackProof.FAILED, CheckReason.INVENTED_UNANSWERED)
    assert second.reason is CheckReason.NO_READ_BACK


def test_a_check_that_is_cancelled_ends():
    class Waiting(Plain):
        async def verify_absent(self, ref, *, key):
            await asyncio.Event().wait()

    async def cancelled():
        task = asyncio.create_task(check(Registered("waiting", "person", Waiting(), canary="1")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())


@pytest.mark.parametrize(
    ("canary", "shape"),
    [
        (None, r"effaced-check-\w{16}"),
        ("cus_1", r"effaced-check-\w{16}"),
        ("a@b.example", r"effaced-check-\w{16}@b\.example"),
        ("7", r"1\d{8}"),
        ("123456789012", r"1\d{11}"),
        ("0b5f4a7e-95d5-4a0f-8b5c-3b0a3b2c1d0e", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
        ("c3fcd3d76192e4007dfb496cca67e13b", r"[0-9a-f]{32}"),
        ("C3FCD3D76192E4007DFB496CCA67E13B", r"[0-9A-F]{32}"),
    ],
)
def test_an_invented_reference_has_the_canary_s_shape_and_is_another_each_time(canary, shape):
    first, second = invent_reference(canary), invent_reference(canary)
    assert re.fullmatch(shape, first)
    assert len({first, second, canary}) == 3


# --- erasing the canary ------------------------------------------------------------------------------


@pytest.fixture
def erase_canary(environ, tmp_path):
    """Check one of the demo's resolvers, allowed to erase its canary."""

    def run(name: str, replace: tuple[str, str] = ("", "")) -> Checked:
        path = tmp_path / "resolvers.yaml"
        path.write_text(DEMO.read_text().replace(*replace) if replace[0] else DEMO.read_text())
        return asyncio.run(check_all(load_registry(path, environ), [name], erase=True))[0]

    return run


def test_a_canary_that_is_erased_and_absent_afterwards_proves_the_whole_way(vendors, erase_canary):
    found = erase_canary("crm")
    assert (found.reason, found.erased) == (CheckReason.CANARY_ERASED, True)
    assert not vendors.store.find("crm", "con_canary")


def test_a_system_that_says_deleted_and_keeps_the_record_retrievable_is_found(vendors, erase_canary):
    vendors.fault("crm", "lies")
    found = erase_canary("crm")
    assert (found.proof, found.reason) == (ReadBackProof.FAILED, CheckReason.STILL_PRESENT)


def test_an_erase_call_that_reaches_nobody_is_found(erase_canary):
    mistyped = (
        'erase: {method: DELETE, path: "/contacts/{ref}"}',
        'erase: {method: DELETE, path: "/c/{ref}"}',
    )
    assert erase_canary("crm", mistyped).reason is CheckReason.STILL_PRESENT


def test_a_canary_that_goes_later_proves_the_read_back_and_says_that_the_rest_is_open(erase_canary):
    found = erase_canary("mailing")
    assert (found.proof, found.reason) == (ReadBackProof.PROVEN, CheckReason.CANARY_NOT_ERASED_YET)


def test_a_canary_that_was_not_seen_is_not_erased(vendors, erase_canary):
    vendors.store.delete("crm", ["con_canary"])
    found = erase_canary("crm")
    assert (found.reason, found.erased) == (CheckReason.CANARY_ABSENT, False)
    assert {"GET"} == {call.method for call in vendors.calls}


def test_a_system_that_fails_to_erase_the_canary_has_failed(vendors, erase_canary):
    mistyped = (
        'erase: {method: DELETE, path: "/contacts/{ref}"}\n    gone: [404]',
        'erase: {method: DELETE, path: "/c/{ref}"}',
    )
    found = erase_canary("crm", mistyped)
    assert (found.proof, found.reason) == (ReadBackProof.FAILED, CheckReason.ERASE_FAILED)


class Answering:
    """Erases, and answers what it was made with; or raises it."""

    def __init__(self, answer):
        self.answer, self.there = answer, True

    async def erase_subject(self, ref, *, key):
        self.there = False
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def verify_absent(self, ref, *, key):
        return not (self.there and ref.value == "1")


@pytest.mark.parametrize(
    "answer", [None, True, "erased", Rectified(), asyncio.CancelledError(), SystemExit(0)]
)
def test_an_erasure_without_an_answer_that_effaced_knows_has_failed(answer):
    found = asyncio.run(check(Registered("odd", "person", Answering(answer), canary="1"), erase=True))
    assert (found.proof, found.reason) == (ReadBackProof.FAILED, CheckReason.ERASE_FAILED)
    assert found.erased


# --- the command -------------------------------------------------------------------------------------


@pytest.fixture
def run(environ, monkeypatch, migrated_sqlite_url):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    keys = new_key()

    def invoke(*arguments: str, path: Path = DEMO):
        settings = load_settings(keys=keys, resolvers=path, database_url=migrated_sqlite_url)
        return CliRunner(env={"COLUMNS": "200"}).invoke(group, list(arguments), obj=settings)

    return invoke


def test_check_prints_one_line_per_resolver_and_exits_with_0(run):
    result = run("check")
    assert (result.exit_code, result.output.count(" proven ")) == (0, 4)


def test_check_exits_with_1_if_one_has_failed(run, vendors):
    vendors.fault("files", "unauthorised")
    result = run("check")
    assert (result.exit_code, result.output.count(" proven "), result.output.count(" failed ")) == (1, 3, 1)


def test_check_of_one_names_only_that_one(run):
    result = run("check", "crm")
    assert (result.exit_code, result.output.count(" proven ")) == (0, 1)


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


# --- the canary on the command line, and what is kept ------------------------------------------------


def proofs(run):
    return {each["name"]: each["read_back"] for each in json.loads(run("list", "--json").output)}


def test_before_a_check_every_read_back_is_unproven(run):
    found = proofs(run)
    assert found.pop("archive") is None
    assert {"never_checked"} == {each["reason"] for each in found.values()}


def test_a_check_is_kept_and_listed(run):
    run("check", "crm")
    found = proofs(run)
    assert (found["crm"]["proof"], found["files"]["proof"]) == ("proven", "unproven")


def test_without_effaced_s_tables_the_result_is_shown_and_not_kept(environ, monkeypatch, tmp_path):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    settings = load_settings(keys=new_key(), resolvers=DEMO, database_url=f"sqlite:///{tmp_path / 'new.db'}")
    result = CliRunner(env={"COLUMNS": "200"}).invoke(group, ["check", "crm"], obj=settings)
    assert (result.exit_code, result.output.count(" proven ")) == (0, 1)
    assert "The result was not kept." in result.output


def test_a_canary_of_the_command_line_stands_for_that_of_the_file(run, vendors):
    vendors.seed("crm", {"con_7": {}})
    vendors.store.delete("crm", ["con_canary"])
    assert run("check", "crm").exit_code == 1
    result = run("check", "crm", "--canary", "con_7")
    assert (result.exit_code, proofs(run)["crm"]["proof"]) == (0, "proven")


def test_a_canary_of_the_command_line_is_shown_nowhere(run):
    result = run("check", "crm", "--canary", "anna@people.example")
    assert (result.exit_code, "anna" in result.output) == (1, False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--canary", "con_7"),
        ("crm", "files", "--erase-canary"),
        ("crm", "--canary", "con_7", "--person", "7"),
        ("crm", "--erase-canary", "--person", "7"),
    ],
)
def test_options_for_one_canary_are_refused_without_exactly_one_resolver_and_one_meaning(
    run, vendors, arguments
):
    assert (run("check", *arguments).exit_code, len(vendors.calls)) == (2, 0)


def test_nothing_is_erased_unless_it_is_confirmed(run, vendors):
    result = run("check", "crm", "--erase-canary")
    assert (result.exit_code, len(vendors.calls)) == (1, 0)


def test_a_confirmed_check_erases_the_canary(run, vendors):
    result = run("check", "crm", "--erase-canary", "--yes")
    assert (result.exit_code, "Create the canary again" in result.output) == (0, True)
    assert not vendors.store.find("crm", "con_canary")


def test_a_system_that_cannot_be_told_to_delete_has_no_canary_to_erase(run, vendors):
    result = run("check", "archive", "--erase-canary", "--yes")
    assert isinstance(result.exception, Refused)


# --- a person of the company's own database ----------------------------------------------------------


@pytest.fixture
def hashed(environ, tmp_path, migrated_sqlite_url, monkeypatch):
    """A company whose map knows people at the CRM by a hash of their address, kept as it was typed."""
    database = open_quickly(migrated_sqlite_url)
    with database.begin() as session:
        session.execute(text("CREATE TABLE customers (id INTEGER PRIMARY KEY, hash TEXT)"))
        session.execute(text(f"INSERT INTO customers VALUES (1, '{AS_TYPED}'), (2, '{LOWERED}'), (3, NULL)"))
    database.dispose()
    (tmp_path / "datamap.yaml").write_text(MAP)
    (tmp_path / "resolvers.yaml").write_text(DEMO.read_text().replace("con_canary", LOWERED))
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    settings = load_settings(
        keys=new_key(),
        resolvers=tmp_path / "resolvers.yaml",
        datamap=tmp_path / "datamap.yaml",
        database_url=migrated_sqlite_url,
    )
    return lambda *arguments: CliRunner(env={"COLUMNS": "200"}).invoke(group, list(arguments), obj=settings)


LOWERED, AS_TYPED = "c3fcd3d76192e4007dfb496cca67e13b", "6B1B36CBB04B41490BFC0AB2BFA26F86"
MAP = """
version: 1
subject: {table: customers, key: id}
refs:
  crm_contact: {column: hash}
  payment_customer: {column: hash}
  mailing_subscriber: {column: hash}
  file_prefix: {column: hash}
  paper_file: {column: hash}
tables:
  customers:
    columns: {id: not_personal, hash: {anonymise: null}}
"""


def test_a_person_known_by_a_hash_that_was_not_lowered_is_found_out(hashed, vendors):
    """With the canary of the file alone the check would pass, and every real person would be absent."""
    vendors.seed("crm", {LOWERED: {}})
    assert hashed("check", "crm").exit_code == 0
    result = hashed("check", "crm", "--person", "1")
    assert (result.exit_code, "The canary is absent" in result.output) == (1, True)


def test_a_person_known_by_the_right_reference_proves_the_read_back(hashed, vendors):
    vendors.seed("crm", {LOWERED: {}})
    assert hashed("check", "crm", "--person", "2").exit_code == 0


@pytest.mark.parametrize("person", ["3", "4711"])
def test_a_person_without_a_reference_is_refused(hashed, vendors, person):
    result = hashed("check", "crm", "--person", person)
    assert isinstance(result.exception, Refused)
    assert len(vendors.calls) == 0


def test_a_person_needs_the_data_map(run):
    assert isinstance(run("check", "crm", "--person", "1").exception, Refused)
