"""Whole schemas: those in docs/examples with their drafts and maps, and odd ones in tests/support/schemas."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from decide_draft import EXAMPLES, SCHEMAS, decided, run_script

from effaced.datamap.check.data_map import check_map
from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import plan_erasure
from effaced.datamap.run.erase import dry_run, erase
from effaced.draft.draft import draft_map

ONLY_POSTGRES = pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)
DOCUMENTED = {"shop": (), "clinic": ("public", "billing"), "saas": ()}
ODD = {"rails": (), "altdeutsch": (), "bank": (), "campus": ("core", "hr", "teaching")}
# Somebody from each example: whose id, and what must be found nowhere but in columns that are retained.
PEOPLE = [
    ("shop", None, "1", ("ida@nord.example", "Lange Gasse 4", "ring twice", "my sister wants one")),
    ("clinic", "patient", "1|1", ("liv@berg.example", "+47 5550111", "Odd Berg", "pain in the left knee")),
    ("clinic", "staff", "12", ("eli.eng@clinic.example", "eeng", "operation")),
    ("saas", "user", "1", ("ana@acme.example", "Ana Ruiz created", "Dear diary", "+34 5550101", "192.0.2.1")),
    ("saas", "contact", "1", ("dora@client.example", "met at the fair")),
]


def script_of(name: str) -> Path:
    return EXAMPLES / name / "schema.sql" if name in DOCUMENTED else SCHEMAS / f"{name}.sql"


def drafted(company, name: str) -> str:
    run_script(company.session.connection(), script_of(name))
    return draft_map(company.session.connection(), schemas=(DOCUMENTED | ODD)[name]).text


def problems(company, text: str) -> list[str]:
    return [problem.message for problem in check_map(company.session.connection(), company.map(text))]


@ONLY_POSTGRES
@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_draft_in_the_docs_is_what_the_command_writes(company, name):
    assert (EXAMPLES / name / "draft.yaml").read_text(encoding="utf-8") == drafted(company, name)


@ONLY_POSTGRES
@pytest.mark.parametrize("name", DOCUMENTED | ODD)
def test_a_draft_is_refused_until_everything_is_decided(company, name):
    text = drafted(company, name)
    open_columns = len(re.findall(r"^        review: >-$|^      \S+: \*keep_", text, re.M))
    open_tables = len(re.findall(r"^  \S+: >-$", text, re.M))
    found = [each.partition(":")[0] for each in problems(company, text) if "decided" in each]
    # Columns that wait for the same decision are named together.
    assert len(", ".join(found).split(", ")) == open_columns + open_tables


@ONLY_POSTGRES
@pytest.mark.parametrize("name", DOCUMENTED | ODD)
def test_a_draft_whose_suggestions_are_taken_fits_the_database(company, name):
    assert problems(company, decided(drafted(company, name))) == []


def test_the_shops_draft_fits_both_databases(company):
    assert problems(company, decided(drafted(company, "shop"))) == []


@ONLY_POSTGRES
@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_map_in_the_docs_fits_the_database(company, name):
    run_script(company.session.connection(), script_of(name))
    assert check_map(company.session.connection(), load_map(EXAMPLES / name / "datamap.yaml")) == []


@ONLY_POSTGRES
@pytest.mark.parametrize(("name", "kind", "subject_id", "gone"), PEOPLE)
def test_erasing_by_the_map_in_the_docs_leaves_nothing_that_should_go(company, name, kind, subject_id, gone):
    connection = company.session.connection()
    run_script(connection, script_of(name))
    plan = plan_erasure(connection, load_map(EXAMPLES / name / "datamap.yaml")).for_people(kind)
    foreseen = dry_run(company.session, plan, subject_id)
    assert erase(company.session, plan, subject_id) == foreseen
    left = "\n".join(everything(company, plan, but_retained=True))
    assert [each for each in gone if each in left] == []


@ONLY_POSTGRES
@pytest.mark.parametrize(("name", "kind", "subject_id", "gone"), PEOPLE)
def test_erasing_twice_changes_nothing(company, name, kind, subject_id, gone):
    connection = company.session.connection()
    run_script(connection, script_of(name))
    plan = plan_erasure(connection, load_map(EXAMPLES / name / "datamap.yaml")).for_people(kind)
    erase(company.session, plan, subject_id)
    before = everything(company, plan, but_retained=False)
    erase(company.session, plan, subject_id)
    assert everything(company, plan, but_retained=False) == before


def everything(company, plan, *, but_retained: bool) -> set[str]:
    """Every cell of the database as text; what the map retains may be left out."""
    cells = set()
    for name, table in plan.schema.tables.items():
        rule = plan.data_map.tables.get(name)
        kept = {each.column for each in rule.retained} if rule and but_retained else set()
        columns = [column for column in table.columns if column not in kept]
        quoted = ", ".join(f'"{column}"::text' for column in columns)
        place = ".".join(f'"{part}"' for part in name.split("."))
        for row in company.rows(f"SELECT {quoted} FROM {place}") if columns else ():
            cells |= {f"{name} {cell}" if not but_retained else cell for cell in row if cell is not None}
    return cells
