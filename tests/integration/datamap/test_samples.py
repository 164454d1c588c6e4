"""A dry run with masked samples: what would be touched, shown without anything that names the person."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import text

from effaced.cli.groups import datamap
from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.datamap.run.samples import sample
from tests.integration.datamap.conftest import Company

MAP = """
    version: 1
    subjects:
      customer: {table: customers, key: id, refs: {crm: crm_ref, files: {template: "c/{id}"}}}
      employee: {table: staff, key: no}
    tables:
      customers:
        mentions: {to: customers, on: {referred_by: id}, columns: {referred_by: {anonymise: null}}}
        columns:
          id: not_personal
          name: {anonymise: fixed_text}
          email: delete
          born: delete
          crm_ref: delete
          referred_by: {anonymise: null}
      staff: {columns: {no: not_personal, name: {anonymise: null}}}
      notes:
        link: {to: customers, on: {customer: id}}
        columns: {id: not_personal, customer: delete, body: delete}
      letters:
        link: {to: customers, on: {customer: id}}
        columns: {customer: {retain: post}, body: {scrub: [name]}}
      invoices:
        link: {to: customers, on: {customer: id}}
        columns: {customer: {retain: trade law}, number: {retain: {basis: tax law, until: 2036-12-31}}}
"""
TABLES = (
    "CREATE TABLE customers (id integer PRIMARY KEY, name text, email text, born date, crm_ref text,"
    " referred_by integer)",
    "CREATE TABLE staff (no integer PRIMARY KEY, name text)",
    "CREATE TABLE notes (id integer PRIMARY KEY, customer integer, body text)",
    "CREATE TABLE invoices (customer integer, number text)",
    "CREATE TABLE letters (customer integer, body text)",
    "INSERT INTO letters VALUES (1, 'Dear Ada Okafor'), (1, 'Dear all')",
    "INSERT INTO customers VALUES (1, 'Ada Okafor', 'ada@example.org', '1990-05-17', NULL, NULL),"
    " (2, 'Ben Lind', NULL, NULL, 'crm-2', 1)",
    "INSERT INTO staff VALUES (1, 'Cleo Marin')",
    "INSERT INTO notes VALUES (1, 1, 'called twice'), (2, 1, 'wrote once'), (3, 1, 'came over'),"
    " (4, 1, 'went away'), (5, 2, 'another person')",
    "INSERT INTO invoices VALUES (1, 'A-1')",
)


def test_samples_are_up_to_three_masked_rows_per_step(company: Company) -> None:
    company.run(*TABLES)
    plan = company.plan(MAP)
    found = dict(
        zip(
            ((step.name, step.action.value) for step in plan.reported_steps),
            sample(company.session, plan, "1"),
            strict=True,
        )
    )
    assert found["customers", "anonymised"] == [
        {"name": "A•••• O••••", "email": "a••••@e••••.org", "born": "••••-••-••"}
    ]
    assert found["customers", "detached"] == [{"referred_by": "•"}]
    assert len(found["notes", "deleted"]) == 3
    assert found["notes", "deleted"][0].keys() == {"customer", "body"}
    assert found["letters", "anonymised"] == [{"customer": "•", "body": "D•••• A•••• O••••"}]
    assert found["invoices", "retained"] == [{"customer": "•", "number": "••••-•"}]


@pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)
def test_an_enum_is_hidden_whole(company: Company) -> None:
    company.run("CREATE TYPE mood AS ENUM ('contented', 'miserable')")
    company.run("CREATE TABLE people (id integer PRIMARY KEY, mood mood)")
    company.run("INSERT INTO people VALUES (1, 'miserable')")
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables: {people: {columns: {id: not_personal, mood: delete}}}
    """)
    assert sample(company.session, plan, "1") == [[{"mood": "••••"}]]


@pytest.fixture
def run(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("COLUMNS", "200")
    database = Database(database_url)
    with database.begin() as session:
        for statement in TABLES:
            session.execute(text(statement))
    database.dispose()
    (tmp_path / "datamap.yaml").write_text(MAP)
    (tmp_path / "resolvers.yaml").write_text(
        "version: 1\nresolvers:\n  crm: {kind: noop, ref: crm}\n  files: {kind: noop, ref: files}\n"
    )
    settings = Settings(
        database_url=database_url,
        datamap=tmp_path / "datamap.yaml",
        resolvers=tmp_path / "resolvers.yaml",
        keys=new_key(),
    )
    return lambda *words: CliRunner().invoke(datamap, words, obj=settings)


def test_a_dry_run_tells_programs_rows_reasons_and_systems(run: Callable[..., Result]) -> None:
    answer = run("show", "--subject", "1", "--json")
    assert answer.exit_code == 0
    told = json.loads(answer.output)
    assert told["type"] == "customer"
    assert {(each["table"], each["action"]): each["rows"] for each in told["tables"]} == {
        ("customers", "anonymised"): 1,
        ("customers", "detached"): 1,
        ("notes", "deleted"): 4,
        ("letters", "anonymised"): 1,
        ("invoices", "retained"): 1,
    }
    [invoices] = [each for each in told["tables"] if each["table"] == "invoices"]
    assert invoices["retained"] == [
        {"column": "customer", "basis": "trade law", "until": None},
        {"column": "number", "basis": "tax law", "until": "2036-12-31"},
    ]
    [letters] = [each for each in told["tables"] if each["table"] == "letters"]
    assert letters["scrubbed"] == {"body": 1}
    assert told["systems"] == {"called": ["files"], "without_reference": ["crm"]}
    assert "samples" not in invoices


def test_a_dry_run_shows_people_masked_samples_and_what_lets_go(run: Callable[..., Result]) -> None:
    answer = run("show", "--subject", "1", "--samples")
    assert answer.exit_code == 0
    for said in (
        "detached",
        "customers, detached: 1, masked\n  referred_by: •\n",
        "notes, deleted: 3 of 4, masked",
        "number: tax law, until 2036-12-31",
        "Systems that would be called: files\n",
        "Without a reference to this person: crm\n",
    ):
        assert said in answer.output
    for secret in ("Okafor", "ada@", "example.org", "1990", "twice"):
        assert secret not in answer.output


def test_a_dry_run_asks_for_the_kind_of_people(run: Callable[..., Result]) -> None:
    told = json.loads(run("show", "--subject", "1", "--type", "employee", "--samples", "--json").output)
    assert told["tables"] == [
        {
            "table": "staff",
            "action": "anonymised",
            "rows": 1,
            "rows_kept": 0,
            "retained": [],
            "scrubbed": {},
            "samples": [{"name": "C•••• M••••"}],
        }
    ]
    unknown = run("show", "--subject", "1", "--type", "ghost")
    assert unknown.exit_code == 2
    assert "must be customer or employee" in unknown.output
