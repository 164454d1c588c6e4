"""One erasure request from POST to completed, every process real: docs/follow-one-request.md as a test."""

from __future__ import annotations

from pathlib import Path

import pytest
from company_house import company
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session
from waiting import PATIENCE, eventually

from effaced.demo.tables import customers, invoices
from effaced.triage.retry import redrive


@pytest.fixture
def story_url(migrated_url: str) -> str:
    return migrated_url


def test_from_post_to_completed(story_url: str, redis_url: str, tmp_path: Path) -> None:
    with company(story_url, redis_url, tmp_path, afresh=True) as shop:
        shop.start_web()
        shop.start("worker")
        shop.start("scheduler")
        person = shop.people[0]
        with shop.db.read() as session:
            before = session.execute(select(customers).where(customers.c.id == person)).one()
            kept = session.execute(select(invoices).where(invoices.c.customer_id == person)).all()
            others = session.scalar(select(func.count()).select_from(customers)) or 0
        assert before.payment_ref in shop.vendors.records("payment")

        answer = shop.post(person)
        assert answer.status_code == 201
        request_id = answer.json()["id"]
        eventually(lambda: shop.get(request_id)["status"] == "completed", "the request to be completed")

        told = shop.get(request_id)
        assert {entry["resolver"]: entry["status"] for entry in told["entries"]} == {
            name: "succeeded"
            for name in ("payment", "crm", "mailing", "files")
            if name != "crm" or before.crm_ref
        }
        assert {entry["verification"] for entry in told["entries"]} == {"confirmed"}
        with shop.db.read() as session:
            after = session.execute(select(customers).where(customers.c.id == person)).one()
            assert after.name != before.name
            assert after.email != before.email
            assert session.execute(select(invoices).where(invoices.c.customer_id == person)).all() == kept
            assert session.scalar(select(func.count()).select_from(customers)) == others
        assert before.payment_ref not in shop.vendors.records("payment")
        assert [event["type"] for event in told["events"]][-1] == "ERASURE_COMPLETED"
        assert before.email not in str(told)


def test_an_officer_approves_in_the_console(story_url: str, redis_url: str, tmp_path: Path) -> None:
    with company(story_url, redis_url, tmp_path) as shop:
        from effaced.accounts.api_keys import create_api_key
        from effaced.accounts.key_rules import NewApiKey

        with shop.db.begin() as session:
            _, shop.token = create_api_key(
                session, NewApiKey(name="careful", approvals_needed=1), actor="cli"
            )
        shop.start_web()
        shop.start("worker")
        shop.start("scheduler")
        asked = shop.post(shop.people[1]).json()
        assert asked["status"] == "review"

        shop.approve(asked["ref"])
        eventually(lambda: shop.get(asked["id"])["status"] == "completed", "the approved request to complete")


def test_without_redis_a_drain_is_enough(story_url: str, tmp_path: Path) -> None:
    nowhere = "redis://127.0.0.1:1/0"
    with company(story_url, nowhere, tmp_path) as shop:
        shop.start_web()
        request_id = shop.post(shop.people[2]).json()["id"]
        assert shop.get(request_id)["status"] == "running"
        drained = shop.start("drain")
        assert drained.wait(PATIENCE) == 0
        assert shop.get(request_id)["status"] == "completed"


@pytest.mark.parametrize("how", ["drain", "scheduler"])
def test_what_was_approved_and_not_executed_is_executed_by_others(
    story_url: str, redis_url: str, tmp_path: Path, how: str
) -> None:
    """One is refused by the company's database and becomes a dead letter; the other goes its way."""
    with company(story_url, redis_url, tmp_path) as shop:
        refused, fine = (shop.leave_approved(person) for person in shop.people[:2])
        with shop.db.begin() as session:
            refuse_changes(session, shop.people[0])
        shop.start(how)
        eventually(lambda: shop.requests()[fine] in {"running", "completed"}, "the other one to be executed")
        eventually(shop.letters, "a dead letter for the refused one")
        assert shop.requests()[refused] == "approved"
        with shop.db.begin() as session:
            session.execute(text(allow_changes(session)))
            runtime = shop.runtime()
            redrive(session, runtime.keyring, shop.letters(), actor="cli", reason="rule removed")
        if how == "drain":
            assert shop.start("drain").wait(PATIENCE) == 0
        eventually(lambda: shop.requests()[refused] != "approved", "the refused one to be executed")


def refuse_changes(session: Session, person: int) -> None:
    if session.get_bind().dialect.name == "sqlite":
        session.execute(
            text(
                f"CREATE TRIGGER frozen BEFORE UPDATE ON customers WHEN OLD.id = {person} "
                "BEGIN SELECT RAISE(ABORT, 'frozen'); END"
            )
        )
        return
    session.execute(
        text(
            "CREATE FUNCTION frozen() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'frozen'; END $$"
        )
    )
    session.execute(
        text(
            f"CREATE TRIGGER frozen BEFORE UPDATE ON customers FOR EACH ROW WHEN (OLD.id = {person}) "
            "EXECUTE FUNCTION frozen()"
        )
    )


def allow_changes(session: Session) -> str:
    sqlite = session.get_bind().dialect.name == "sqlite"
    return "DROP TRIGGER frozen" if sqlite else "DROP TRIGGER frozen ON customers"
