"""The data map over HTTP, and whether it fits the database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from quick_app import make_app
from sqlalchemy import text

from effaced.accounts.api_keys import create_api_key
from effaced.accounts.key_rules import NewApiKey
from effaced.accounts.scopes import Scope
from effaced.runtime import Runtime

from .conftest import Api

PATH = "/api/v1/datamap"
TABLES = (
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, issued_on DATE, profile TEXT,"
    " card VARCHAR(20), note VARCHAR(99))",
    "CREATE TABLE invitations (id INTEGER PRIMARY KEY, invited_by INTEGER, state VARCHAR(9))",
    "CREATE TABLE countries (code VARCHAR(2) PRIMARY KEY)",
)
MAP = """
version: 1
subject: {table: customers, key: id}
identifiers: {email: email}
refs: {crm_contact: {template: "cus-{crm_ref}"}}
tables:
  customers:
    columns:
      id: not_personal
      email: {anonymise: random_email}
      crm_ref: delete
      name: {anonymise: fixed_text, text: Nobody}
      phone: delete
      born: {anonymise: truncated_date, to: year}
      points: not_personal
      member: not_personal
      salutation: delete
  orders:
    link: {to: customers, on: {customer_id: id}}
    columns:
      id: not_personal
      customer_id: not_personal
      issued_on: not_personal
      profile: delete
      card: {retain: {basis: tax law, until: issued_on + 10 years}}
      note: {scrub: [email]}
  invitations:
    mentions: {to: customers, on: {invited_by: id}, columns: {invited_by: {anonymise: "null"}}}
    columns: {id: not_personal, invited_by: not_personal, state: not_personal}
not_personal: [countries]
rectify: {email: customers.email, phone: customers.phone}
"""


@pytest.fixture
def api(make_api: Callable[..., Api], migrated_url: str) -> Api:
    made = make_api(migrated_url)
    with made.runtime.db.begin() as session:
        for statement in TABLES:
            session.execute(text(statement))
        key, token = create_api_key(
            session, NewApiKey(name="operator", approvals_needed=1, scopes=[Scope.OPERATE_READ]), actor="cli"
        )
    return replace(made, key=key, token=token)


def with_map(api: Api, said: str) -> Api:
    """The same caller of a process that begins with this map."""
    file = map_file(api)
    file.write_text(said)
    runtime = Runtime(api.runtime.settings, database=api.runtime.db)
    return replace(api, app=make_app(runtime), runtime=runtime)


def map_file(api: Api) -> Path:
    return api.runtime.settings.datamap


def by_name(found: list[dict[str, Any]], name: str) -> dict[str, dict[str, Any]]:
    return {each[name]: each for each in found}


class TestTheMap:
    @pytest.fixture
    def found(self, api: Api) -> dict[str, Any]:
        found = with_map(api, MAP).get(PATH).get_json()
        assert isinstance(found, dict)
        return found

    def test_people_are_found_and_known_by(self, found: dict[str, Any]) -> None:
        assert found["people"] == [
            {
                "type": "customers",
                "table": "customers",
                "key": ["id"],
                "identifiers": [{"kind": "email", "column": "email"}],
                "refs": [{"kind": "crm_contact", "template": "cus-{crm_ref}", "columns": ["crm_ref"]}],
            }
        ]

    def test_every_column_says_what_happens_to_it(self, found: dict[str, Any]) -> None:
        tables = by_name(found["tables"], "table")
        customers = by_name(tables["customers"]["columns"], "column")
        assert (tables["customers"]["action"], tables["customers"]["people"]) == ("anonymised", ["customers"])
        assert (customers["phone"]["strategy"], customers["email"]["surrogate"]) == ("delete", "random_email")
        assert (customers["name"]["fixed"], customers["born"]["truncated_to"]) == ("Nobody", "year")
        orders = by_name(tables["orders"]["columns"], "column")
        card = orders["card"]
        assert (card["strategy"], card["basis"], card["until"]) == (
            "retain", "tax law", "issued_on + 10 years",
        )  # fmt: skip
        assert (card["then"]["strategy"], orders["note"]["scrubbed"]) == ("delete", ["email"])
        assert card["description"] == "retain (tax law; until issued_on + 10 years; then delete)"

    def test_links_and_mentions_say_how_rows_belong_to_people(self, found: dict[str, Any]) -> None:
        tables = by_name(found["tables"], "table")
        (link,) = tables["orders"]["links"]
        assert (link["to"], link["on"]) == ("customers", [{"column": "customer_id", "other": "id"}])
        assert (link["pointed_at"], link["where"], link["as_text"]) == (False, [], False)
        (mention,) = tables["invitations"]["mentions"]
        assert tables["invitations"]["action"] is None
        assert (mention["columns"][0]["column"], mention["columns"][0]["surrogate"]) == ("invited_by", "null")

    def test_the_rest_is_there_too(self, api: Api, found: dict[str, Any]) -> None:
        assert found["not_personal"] == ["countries"]
        assert by_name(found["rectify"], "category")["phone"]["columns"] == [
            {"table": "customers", "column": "phone"}
        ]
        assert found["datamap_hash"] == with_map(api, MAP).runtime.datamap.hash


class TestTheCheck:
    def test_a_map_that_fits_has_no_problems(self, api: Api) -> None:
        found = with_map(api, MAP).get(f"{PATH}/check").get_json()
        assert (found["fits"], found["problems"], found["file_differs"]) == (True, [], False)
        assert any("no index begins with customer_id" in each["message"] for each in found["notes"])

    def test_problems_are_an_answer_with_the_lines_and_without_the_file_s_path(self, api: Api) -> None:
        here = with_map(api, MAP)
        with here.runtime.db.begin() as session:
            session.execute(text("ALTER TABLE orders ADD COLUMN shipped_to VARCHAR(99)"))
        answer = here.get(f"{PATH}/check")
        found = answer.get_json()
        line = next(n for n, each in enumerate(MAP.splitlines(), 1) if each == "  orders:")
        assert (answer.status_code, found["fits"], found["notes"]) == (200, False, [])
        assert found["problems"] == [
            {"line": line, "message": "orders.shipped_to: the column is not declared"}
        ]
        assert str(map_file(here).parent) not in answer.text

    def test_a_file_that_was_changed_since_is_told(self, api: Api) -> None:
        here = with_map(api, MAP)
        assert here.get(PATH).status_code == 200
        map_file(here).write_text(MAP.replace("phone: delete", "phone: not_personal"))
        assert here.get(f"{PATH}/check").get_json()["file_differs"] is True
        map_file(here).write_text("version: 2")
        assert here.get(f"{PATH}/check").get_json()["file_differs"] is True

    def test_a_map_that_can_not_be_read_is_a_problem_of_the_check_and_no_map(self, api: Api) -> None:
        here = with_map(api, "version: 1\nsubject: {}\n")
        answer = here.get(f"{PATH}/check")
        found = answer.get_json()
        assert (answer.status_code, found["fits"], found["datamap_hash"]) == (200, False, None)
        assert found["problems"]
        assert str(map_file(here).parent) not in answer.text
        assert here.get(PATH).status_code == 503

    def test_looking_changes_nothing(self, api: Api) -> None:
        here = with_map(api, MAP)
        before = here.rows()
        assert [here.get(path).status_code for path in (PATH, f"{PATH}/check")] == [200, 200]
        assert here.rows() == before


def test_it_is_for_operators(api: Api) -> None:
    sends = api.new_key("another shop")
    assert [api.get(path, token=sends).status_code for path in (PATH, f"{PATH}/check")] == [403, 403]
