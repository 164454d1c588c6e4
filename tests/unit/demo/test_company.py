"""The demo company fits its data map, on both databases, and is always the same company."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from sqlalchemy import MetaData, func, select

from effaced.core.db import Database
from effaced.core.errors import Conflict
from effaced.datamap.check.data_map import check_map
from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import plan_erasure
from effaced.datamap.run.erase import count_reachable, erase
from effaced.datamap.run.subject import find_subject
from effaced.demo.company import create_company, demo_people, fill_company, vendor_records
from effaced.demo.people import invent
from effaced.demo.tables import metadata
from effaced.demo.vendors import VENDORS
from effaced.resolvers.load import load_registry

DEMO = Path(str(files("effaced.demo")))


@pytest.fixture
def company(database_url):
    """The company's database with thirty customers."""
    db = Database(database_url)
    create_company(db.engine)
    with db.begin() as session:
        fill_company(session, people=30)
    yield db
    db.dispose()


def test_the_data_map_declares_the_whole_schema(company):
    with company.read() as session:
        problems = check_map(session.connection(), load_map(DEMO / "datamap.yaml"))
    assert [str(each) for each in problems] == []


def test_every_resolver_wants_a_reference_that_the_map_has():
    refs = [rule.kind for rule in load_map(DEMO / "datamap.yaml").refs]
    environ = {f"EFFACED_DEMO_{name.upper()}": "http://127.0.0.1:9" for name in VENDORS}
    environ["EFFACED_DEMO_TOKEN"] = "x"
    registry = load_registry(DEMO / "resolvers.yaml", environ, refs=refs)
    assert sorted([*VENDORS, "archive"]) == sorted(each.name for each in registry)


def test_each_person_has_the_references_that_the_map_finds(company):
    with company.read() as session:
        plan = plan_erasure(session.connection(), load_map(DEMO / "datamap.yaml"))
        for person in demo_people(30):
            subject = find_subject(session, plan, str(person["id"]))
            assert subject is not None
            assert person["refs"] == subject.refs
            assert person["email"] == subject.identifiers["email"]


def test_an_erased_customer_is_in_no_cell_but_on_the_kept_invoices(company):
    anna = next(each for each in demo_people(30) if each["refs"].get("crm_contact"))
    with company.begin() as session:
        plan = plan_erasure(session.connection(), load_map(DEMO / "datamap.yaml"))
        erase(session, plan, str(anna["id"]))
        assert count_reachable(session, plan, str(anna["id"])) == {}
    tell_tales = {anna["name"], anna["email"], *anna["refs"].values()}
    with company.read() as session:
        found = {
            table.name
            for table in metadata.sorted_tables
            for row in session.execute(select(table))
            if tell_tales & {str(cell) for cell in row}
        }
    assert found <= {"invoices"}


def test_every_table_has_rows(company):
    with company.read() as session:
        counts = {
            table.name: session.scalar(select(func.count()).select_from(table))
            for table in metadata.sorted_tables
        }
    assert [name for name, count in counts.items() if not count] == []


def test_creating_the_tables_again_changes_nothing(company):
    create_company(company.engine)
    with company.read() as session:
        assert session.scalar(select(func.count()).select_from(metadata.tables["customers"])) == 30


def test_a_filled_company_is_not_filled_again(company):
    with pytest.raises(Conflict), company.begin() as session:
        fill_company(session, people=30)


def test_the_tables_are_not_effaceds_own():
    assert isinstance(metadata, MetaData)
    assert [name for name in metadata.tables if name.startswith("effaced_")] == []


def test_the_same_numbers_give_the_same_people_and_a_longer_list_the_same_start():
    assert invent(50, 7) == invent(80, 7)[:50]


def test_another_seed_gives_other_people():
    assert invent(50, 7) != invent(50, 8)


def test_nobody_can_be_written_to_and_nobody_shares_a_reference():
    people = demo_people(500)
    assert all(person["email"].endswith(".example") and person["email"].isascii() for person in people)
    for kind in ("payment_customer", "mailing_subscriber", "file_prefix"):
        assert len({person["refs"][kind] for person in people}) == 500


def test_vendors_know_everybody_in_some_system_and_not_everybody_in_all():
    records = vendor_records(demo_people(100))
    assert sorted(VENDORS) == sorted(records)
    assert (len(records["payment"]), len(records["files"])) == (100, 200)
    assert 50 < len(records["crm"]) < 100
    assert 50 < len(records["mailing"]) < 100
