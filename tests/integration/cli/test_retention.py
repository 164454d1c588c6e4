"""`effaced retention ...`, as typed."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from quick_database import open_quickly
from retention_cast import ERASED, INVOICE_DUE, LAST_DUE, LINE_DUE, Shop, on

from effaced.cli.groups import retention
from effaced.core.config import Settings
from effaced.core.errors import NotFound, Refused
from effaced.runtime import Runtime

Run = Callable[..., Result]


@pytest.fixture
def shop(migrated_sqlite_url: str, tmp_path: Path) -> Iterator[Shop]:
    database = open_quickly(migrated_sqlite_url)
    yield Shop(database, tmp_path)
    database.dispose()


def settings_of(shop: Shop, **more: object) -> Settings:
    keys = ",".join(f"{name}:{base64.b64encode(key).decode()}" for name, key in shop.keyring.keys)
    url = shop.db.engine.url.render_as_string(hide_password=False)
    (shop.folder / "resolvers.yaml").write_text("version: 1\nresolvers: {}\n")
    return Settings(
        database_url=url,
        keys=keys,
        datamap=shop.folder / "datamap.yaml",
        resolvers=shop.folder / "resolvers.yaml",
        **more,
    )


@pytest.fixture
def run(shop: Shop) -> Run:
    settings = settings_of(shop)

    def typed(day: date, *arguments: str, answer: str | None = None) -> Result:
        with on(day):
            return CliRunner().invoke(retention, list(arguments), obj=settings, input=answer)

    return typed


def test_list_says_what_is_kept_why_and_until_when(shop: Shop, run: Run) -> None:
    shop.erase()
    output = run(ERASED, "list").output
    assert all(word in output for word in ("invoices", "tax law", "issued_on + 10 years", "2026-03-02"))


def test_list_for_programs(shop: Shop, run: Run) -> None:
    request_id = shop.erase("2")
    assert json.loads(run(ERASED, "list", "--json").stdout) == [
        {
            "request": shop.request(request_id).ref,
            "table": "invoices",
            "retained": [{"basis": "tax law", "until": "issued_on + 10 years"}],
            "first_due": INVOICE_DUE.isoformat(),
            "rows": 1,
            "rows_without_a_date": 0,
            "error": None,
        }
    ]


def test_due_reports_and_changes_nothing(shop: Shop, run: Run) -> None:
    shop.erase("2")
    result = run(INVOICE_DUE, "due", "--json")
    (line,) = json.loads(result.stdout)
    assert (result.exit_code, line["standing"], line["due"]["deleted"]) == (0, "due", 1)
    assert len(shop.rows("SELECT * FROM invoices")) == 3


def test_due_says_so_if_nothing_is(shop: Shop, run: Run) -> None:
    shop.erase("2")
    result = run(ERASED, "due")
    assert (result.exit_code, result.output) == (0, "Nothing has come due.\n")


def test_erase_asks_with_the_counts_and_a_no_changes_nothing(shop: Shop, run: Run) -> None:
    shop.erase("2")
    result = run(INVOICE_DUE, "erase", "--all-due", "--reason", "over", answer="n\n")
    assert "Of 1 request 1 rows will be deleted and 0 anonymised." in result.output
    assert len(shop.rows("SELECT * FROM invoices")) == 3


def test_erase_of_one_request_leaves_the_others(shop: Shop, run: Run) -> None:
    one, _ = shop.request(shop.erase("1")), shop.erase("2")
    result = run(LINE_DUE, "erase", "--request", one.ref.lower(), "--reason", "over", "--yes")
    assert result.output == f"{one.ref}: lines: 1 deleted, 0 anonymised, invoices: 1 deleted, 0 anonymised\n"
    assert shop.rows("SELECT id FROM invoices ORDER BY id") == [(11,), (20,)]


def test_erase_of_all_that_is_due(shop: Shop, run: Run) -> None:
    for person in ("1", "2"):
        shop.erase(person)
    results = json.loads(run(LAST_DUE, "erase", "--all-due", "--reason", "over", "--yes", "--json").stdout)
    assert [each["error"] for each in results] == [None, None]
    assert shop.rows("SELECT id FROM invoices") == []


@pytest.mark.parametrize("arguments", [[], ["--all-due", "--request", "ER-1"]])
def test_erase_wants_a_request_or_all(run: Run, arguments: list[str]) -> None:
    result = run(LAST_DUE, "erase", "--reason", "over", *arguments)
    assert result.exit_code == 2
    assert "Say --request and a ref, or --all-due." in result.output


def test_a_ref_that_nobody_has_is_refused(run: Run) -> None:
    assert isinstance(run(LAST_DUE, "erase", "--request", "ER-NO", "--reason", "x").exception, NotFound)


def test_an_empty_reason_is_refused_before_anything_goes(shop: Shop, run: Run) -> None:
    shop.erase("2")
    result = run(LAST_DUE, "erase", "--all-due", "--reason", " ", "--yes")
    assert isinstance(result.exception, Refused)
    assert len(shop.rows("SELECT * FROM invoices")) == 3


def test_one_that_fails_is_said_and_told_by_the_exit_code(shop: Shop, run: Run) -> None:
    shop.erase("2")
    shop.run("UPDATE customers SET name = 'back' WHERE id = 2")
    result = run(LAST_DUE, "erase", "--all-due", "--reason", "over", "--yes")
    assert result.exit_code == 1
    assert "key is in use again" in result.output


class TestHousekeeping:
    """The same by the scheduler, and by `effaced drain`."""

    def test_by_officer_nothing_goes_by_itself(self, shop: Shop) -> None:
        shop.erase("2")
        with on(LAST_DUE):
            Runtime(settings_of(shop), database=shop.db).end_retentions()
        assert len(shop.rows("SELECT * FROM invoices")) == 3

    def test_on_schedule_what_is_due_goes_and_the_trail_names_the_system(self, shop: Shop) -> None:
        shop.erase("1")
        with on(LINE_DUE):
            Runtime(settings_of(shop, retention_erase="on_schedule"), database=shop.db).end_retentions()
        assert shop.rows("SELECT id FROM invoices ORDER BY id") == [(11,), (20,)]
        assert {(each.actor, each.payload.get("note_id")) for each in shop.events("RETENTION_ENDED")} == {
            ("system", None)
        }


def test_how_far_a_long_one_is_is_said_while_it_lasts(shop: Shop) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 1239)"
    shop.run(f"INSERT INTO invoices {numbers} SELECT i, 2, 'B', '2016-03-01' FROM n")
    ref = shop.request(shop.erase("2")).ref
    arguments = ["erase", "--all-due", "--reason", "over", "--yes", "--json"]
    with on(LAST_DUE):
        result = CliRunner().invoke(retention, arguments, obj=settings_of(shop, batch_rows=100))
    assert [json.loads(line) for line in result.stderr.splitlines()] == [
        {"request": ref, "rows": 100, "of": 241},
        {"request": ref, "rows": 200, "of": 241},
    ]
    (told,) = json.loads(result.stdout)
    assert told["tables"] == [{"table": "invoices", "deleted": 241, "anonymised": 0}]
