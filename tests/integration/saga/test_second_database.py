"""A request reaches a second database through the real runner: erased, verified, corrected, paused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from textwrap import dedent

import pytest
from other_database import GOES, STAYS, Shop
from requests_cast import Office
from saga_cast import House
from sqlalchemy import make_url, text

from effaced.core.db import Database
from effaced.model import Correction, OutboxStatus, RequestStatus, StepOutcome, Verification
from effaced.outbox.flow import CREDENTIALS_REFUSED, pauses
from effaced.requests.complete import complete_operations
from effaced.requests.execute import Executor
from effaced.resolvers.load import load_registry
from effaced.saga.facade import Outbox
from effaced.saga.runner import SagaRunner

FILE = """\
version: 1
resolvers:
  shop: {kind: sql, ref: crm_contact, url: "${SHOP_URL}", map: maps/shop.yaml}
"""


@pytest.fixture
def shop(fresh_postgres_url: str, tmp_path: Path) -> Shop:
    return Shop(fresh_postgres_url, tmp_path)


def test_one_request_erases_here_and_there(db: Database, shop: Shop, tmp_path: Path):
    office = Office(db, tmp_path)
    anna, other = shop.person(orders=2, invoices=1), shop.person()
    with db.begin() as session:
        session.execute(text(f"UPDATE people SET crm = '{anna}' WHERE id = 1"))
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps" / "shop.yaml").write_text(dedent(STAYS))
    (tmp_path / "resolvers.yaml").write_text(FILE)
    registry = load_registry(tmp_path / "resolvers.yaml", {"SHOP_URL": shop.url}, refs=["crm_contact"])
    request_id = office.receive("1", approvals=0).request.id
    Executor(db, office.keyring, office.plan, registry).execute_now(request_id)
    assert office.people() == [2]
    assert len(shop.rows(f"SELECT 1 FROM orders WHERE user_id = {anna}")) == 2

    outbox = Outbox(db.sessions, keyring=office.keyring)
    runner = SagaRunner(registry, outbox, on_operations_complete=complete_operations)
    assert asyncio.run(runner.drain("shop")) == 1

    (entry,) = office.entries()
    assert (entry.outcome, entry.retained_basis) == (StepOutcome.ERASED, "tax_law_10_years")
    assert entry.verification == Verification.CONFIRMED
    assert office.request(request_id).status == RequestStatus.COMPLETED
    assert [(anna, None), (other, "Anna Alt")] == shop.rows("SELECT id, name FROM users ORDER BY id")
    assert shop.calls() == [("erase", "erased", "tax_law_10_years", 3)]


def test_a_correction_gets_there(db: Database, shop: Shop):
    house, anna = House(db), shop.person()
    house.vendor("shop", shop.resolver(GOES))
    house.request(("shop", str(anna)), corrections=[Correction("name", "Anna Neu")])
    house.drain("shop")
    assert house.entry().outcome == StepOutcome.RECTIFIED
    assert shop.rows("SELECT name FROM users") == [("Anna Neu",)]


def test_a_password_that_was_changed_pauses_it_and_costs_nothing(db: Database, shop: Shop):
    house, anna = House(db), shop.person()
    wrong = make_url(shop.url).set(password="rotated").render_as_string(hide_password=False)
    house.vendor("shop", shop.resolver(url=wrong))
    house.request(("shop", str(anna)))
    house.drain("shop")
    assert (house.entry().status, house.entry().attempts) == (OutboxStatus.PENDING, 0)
    with db.read() as session:
        assert pauses(session)["shop"].code == CREDENTIALS_REFUSED
