"""`effaced datamap check`, `show`, `diff` and `picture`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from xml.etree import ElementTree as Xml

import pytest
from click.testing import CliRunner
from quick_database import open_quickly
from sqlalchemy import text

from effaced.cli.groups import datamap
from effaced.core import clock
from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.core.errors import ConfigurationError, NotFound

MAP = """\
version: 1
subject: {table: people, key: id}
tables:
  people: {columns: {id: not_personal, name: {anonymise: fixed_text}}}
  invoices:
    link: {to: people, on: {person: id}}
    columns: {person: {retain: tax law}, number: {retain: {basis: "tax law, ten years", until: 2031-12-31}}}
  lines:
    link: {to: invoices, on: {invoice: number}}
    columns: {invoice: delete, "text[x]": delete}
not_personal: [products]
"""


@pytest.fixture
def settings(tmp_path, fresh_sqlite_url) -> Settings:
    database = open_quickly(fresh_sqlite_url)
    with database.begin() as session:
        for statement in (
            "CREATE TABLE people (id integer PRIMARY KEY, name text)",
            "CREATE TABLE invoices (person integer, number text UNIQUE)",
            'CREATE TABLE lines (invoice text, "text[x]" text)',
            "CREATE TABLE products (id integer)",
            "CREATE INDEX by_person ON invoices (person)",
            "CREATE INDEX by_invoice ON lines (invoice)",
            "INSERT INTO people VALUES (1, 'Alice')",
            "INSERT INTO invoices VALUES (1, 'A-1'), (1, 'A-2')",
            "INSERT INTO lines VALUES ('A-1', 'socks'), ('A-1', 'hat'), ('A-2', 'tea')",
        ):
            session.execute(text(statement))
    database.dispose()
    (tmp_path / "datamap.yaml").write_text(MAP)
    return Settings(database_url=fresh_sqlite_url, datamap=tmp_path / "datamap.yaml", keys=new_key())


@pytest.fixture
def run(settings, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *words: CliRunner().invoke(datamap, words, obj=settings)


def test_check_says_in_one_sentence_that_the_map_fits(run, settings):
    answer = run("check")
    assert answer.exit_code == 0
    assert answer.output == (
        f"{settings.datamap} fits the database: 3 tables with 6 columns declared,"
        " 1 table without personal data.\n"
    )


def test_check_tells_of_a_retention_that_has_ended(run):
    with clock.pretend(datetime(2032, 1, 1, tzinfo=UTC)):
        answer = run("check")
    assert answer.exit_code == 0
    assert "The retention of invoices.number has ended" in answer.output


def test_notes_fail_a_check_only_when_it_is_strict(run):
    with clock.pretend(datetime(2032, 1, 1, tzinfo=UTC)):
        assert run("check").exit_code == 0
        assert run("check", "--strict").exit_code == 1
    assert run("check", "--strict").exit_code == 0


def test_check_tells_programs_problems_and_notes(run, settings, tmp_path):
    with clock.pretend(datetime(2032, 1, 1, tzinfo=UTC)):
        fits = json.loads(run("check", "--json").output)
    ended = "The retention of invoices.number has ended; `effaced retention due` says whose rows those are"
    note = {"where": f"{settings.datamap}:7", "message": ended}
    assert fits == {"map": str(settings.datamap), "fits": True, "problems": [], "notes": [note]}
    other = tmp_path / "other.yaml"
    other.write_text(MAP.replace("[products]", "[]"))
    answer = run("check", "--json", "--map", str(other))
    assert answer.exit_code == 1
    told = json.loads(answer.output)
    assert not told["fits"]
    assert [each["where"] for each in told["problems"]] == [f"{other}:3"]


def test_a_map_that_cannot_be_read_is_a_problem_for_programs_too(run, tmp_path):
    answer = run("check", "--json", "--map", str(tmp_path / "none.yaml"))
    assert answer.exit_code == 1
    assert len(json.loads(answer.output)["problems"]) == 1


def test_check_lists_every_problem_and_fails(run, tmp_path):
    other = tmp_path / "other.yaml"
    renamed = MAP.replace("name: {anonymise: fixed_text}", "nam: {retain: law}")
    other.write_text(renamed.replace("[products]", "[]"))
    answer = run("check", "--map", str(other))
    assert answer.exit_code == 1
    assert answer.output.splitlines() == [
        "The data map does not fit the database; 3 problems:",
        f"  {other}:3: products: the table is not declared; put it under tables or not_personal",
        f"  {other}:4: people.nam: the table has no such column; did you mean 'name'?",
        f"  {other}:4: people.name: the column is not declared",
    ]


def test_check_lists_the_mistakes_in_a_map_that_cannot_be_read(run, tmp_path):
    (tmp_path / "datamap.yaml").write_text("version: 1\n")
    answer = run("check")
    assert answer.exit_code == 1
    assert "needs either 'subject' or 'subjects'" in answer.output
    assert "'tables' is missing" in answer.output


def test_show_has_table_path_action_columns_and_basis(run):
    answer = run("show")
    assert answer.exit_code == 0
    lines = answer.output.splitlines()
    [row] = [line for line in lines if "lines" in line]
    assert [cell.strip() for cell in row.split("│")[1:-1]] == [
        "lines",
        "to invoices by invoice = number",
        "deleted",
        "delete: invoice, text[x]",
    ]
    assert "retain (tax law): person" in answer.output
    assert "retain (tax law, ten years; until 2031-12-31; then delete): number" in answer.output
    assert "anonymise (fixed_text 'erased'): name" in answer.output
    assert any("products" in line and "not personal" in line for line in lines)


def test_show_with_a_subject_counts_their_rows_in_the_order_of_erasure(run):
    answer = run("show", "--subject", "1")
    assert answer.exit_code == 0
    rows = [[cell.strip() for cell in line.split("│")] for line in answer.output.splitlines()]
    assert [(row[1], row[2]) for row in rows if len(row) > 5 and row[1]] == [
        ("lines", "3"),
        ("invoices", "2"),
        ("people", "1"),
    ]


@pytest.mark.parametrize("unknown", ["2", "x"])
def test_show_says_that_a_person_is_not_there(run, unknown):
    answer = run("show", "--subject", unknown)
    assert isinstance(answer.exception, NotFound)
    assert str(answer.exception) == "--subject: table 'people' has no such person."


def test_show_of_a_map_that_is_not_there_is_a_configuration_error(run, tmp_path):
    answer = run("show", "--map", str(tmp_path / "none.yaml"))
    assert isinstance(answer.exception, ConfigurationError)


def test_show_calls_a_keyed_hash_pseudonymised(run, settings):
    settings.datamap.write_text(MAP.replace("{anonymise: fixed_text}", "{anonymise: keyed_hash}"))
    answer = run("show", "--subject", "1")
    assert "pseudonymised" in answer.output
    assert "pseudonymise (keyed_hash): name" in answer.output
    assert "anonymise (keyed_hash)" not in answer.output.replace("pseudonymise (keyed_hash)", "")


def test_show_tells_paths_what_is_scrubbed_and_where_it_was_found(run, settings):
    columns = """{person: {retain: law}, body: {scrub: [name]}, doc: {json: {"$.a[*].b": delete}}}"""
    notes = f"  notes: {{link: {{to: people, on: {{person: id}}}}, columns: {columns}}}\n"
    settings.datamap.write_text(MAP.replace("not_personal: [products]", notes + "not_personal: [products]"))
    database = open_quickly(settings.database_url)
    with database.begin() as session:
        session.execute(text("CREATE TABLE notes (person integer, body text, doc text)"))
        session.execute(text("INSERT INTO notes VALUES (1, 'Alice called', '{}'), (1, 'tea', NULL)"))
    database.dispose()
    answer = run("show", "--subject", "1")
    assert "scrub (name): body" in answer.output
    assert "json ($.a[*].b: delete): doc" in answer.output
    assert "body: found in 1" in answer.output


def test_check_notes_what_only_the_database_can_decide(run, settings):
    database = open_quickly(settings.database_url)
    with database.begin() as session:
        session.execute(text("DROP TABLE people"))
        session.execute(
            text(
                "CREATE TABLE people (id integer PRIMARY KEY, name text, CONSTRAINT apart CHECK (name <> id))"
            )
        )
    database.dispose()
    answer = run("check")
    assert answer.exit_code == 0
    assert "whether fixed_text satisfies the CHECK apart depends on what else the row holds" in answer.output


def test_show_tells_programs_the_whole_map(run):
    told = json.loads(run("show", "--json").output)
    assert told["people"] == [{"type": "people", "table": "people", "key": ["id"]}]
    assert told["tables"][2] == {
        "table": "lines",
        "rows": "deleted",
        "belongs": ["to invoices by invoice = number"],
        "columns": {"invoice": "delete", "text[x]": "delete"},
    }
    assert told["not_personal"] == ["products"]


@pytest.mark.parametrize("option", [["--samples"], ["--type", "people"]])
def test_what_is_about_a_person_needs_one(run, option):
    answer = run("show", *option)
    assert answer.exit_code == 2
    assert "go with --subject" in answer.output


def test_the_picture_goes_into_a_file_or_to_standard_output(run, tmp_path):
    file = tmp_path / "map.svg"
    assert run("picture", "-o", str(file)).output == f"{file} is written.\n"
    assert Xml.fromstring(run("picture").output).tag == Xml.fromstring(file.read_text()).tag


@pytest.fixture
def old(tmp_path):
    return lambda text: (tmp_path / "old.yaml").write_text(text) and str(tmp_path / "old.yaml")


def test_diff_says_by_its_exit_code_whether_anything_differs(run, old):
    same = run("diff", old("# as it was\n" + MAP))
    assert (same.exit_code, same.output) == (0, "Both maps do the same.\n")
    changed = run("diff", old(MAP.replace("{invoice: delete,", "{invoice: {retain: law},")))
    assert changed.exit_code == 1
    assert changed.output == "newly erased:\n  lines: its rows were anonymised, now deleted\n"


def test_diff_takes_two_maps(run, old, settings):
    answer = run("diff", str(settings.datamap), old(MAP.replace("[products]", "[]")))
    assert answer.exit_code == 0


def test_diff_tells_programs_group_place_and_words(run, old):
    answer = run("diff", old(MAP.replace("tax law}", "trade law}")), "--json")
    assert answer.exit_code == 1
    assert json.loads(answer.output) == [
        {
            "group": "kept for another reason or time",
            "where": "invoices.person",
            "what": "was retain (trade law), now retain (tax law)",
        }
    ]


def test_diff_with_the_live_database_names_what_only_one_of_them_has(run, old):
    assert run("diff", "--live").exit_code == 0
    path = old(MAP.replace("[products]", "[shelves]").replace("name: {anonymise: fixed_text}", "nam: delete"))
    answer = run("diff", "--live", path)
    assert answer.exit_code == 1
    assert answer.output.splitlines() == [
        f"{path}:3: products: the table is not declared; put it under tables or not_personal",
        f"{path}:4: people.nam: the table has no such column; did you mean 'name'?",
        f"{path}:4: people.name: the column is not declared",
        f"{path}:11: shelves: the database has no such table",
    ]


def test_diff_needs_something_to_compare_with(run):
    assert run("diff").exit_code == 2
    assert run("diff", "--live", "a", "b").exit_code == 2
