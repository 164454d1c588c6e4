"""docs/follow-one-request.md names what is called: requests go their way, and every call is recorded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from call_trace import VARIABLE, calls
from company_house import Company, company
from named_in_docs import dotted_names, resolve, was_called
from sqlalchemy import update

from effaced.accounts.api_keys import create_api_key
from effaced.accounts.key_rules import NewApiKey
from effaced.core import clock
from effaced.model import OutboxStatus
from effaced.outbox.tables import OutboxRow

PAGE = (Path(__file__).parents[2] / "docs/follow-one-request.md").read_text(encoding="utf-8")
WALK, TROUBLE = PAGE[: PAGE.index("\n## When ")], PAGE[PAGE.index("\n## When ") :]
# So that retries, trials and leases can be waited for.
QUICK = {"lease_seconds": 11, "backoff_seconds": 0.2, "backoff_cap_seconds": 1}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "calls"


def never_called(text: str, trace: Path) -> list[str]:
    recorded = calls(trace)
    return [each for each in dotted_names(text) if not was_called(each, recorded)]


def test_one_request_calls_every_function_that_the_walk_names(
    migrated_postgres_url: str, redis_url: str, tmp_path: Path, trace: Path
) -> None:
    with company(migrated_postgres_url, redis_url, tmp_path) as shop:
        shop.environ[VARIABLE] = str(trace)
        with shop.db.begin() as session:
            _, shop.token = create_api_key(
                session, NewApiKey(name="careful", approvals_needed=1), actor="cli"
            )
        shop.start_web()
        shop.start("worker")
        shop.start("scheduler")
        asked = shop.post(shop.people[0], **{"Idempotency-Key": "one"}).json()
        shop.approve(asked["ref"])
        shop.eventually(lambda: shop.get(asked["id"])["status"] == "completed", "the request to complete")
        wait_for_call(shop, trace, "requests.execute.Executor.execute_due")
        assert never_called(WALK, trace) == []


def test_what_the_page_names_for_trouble_is_called_in_trouble(
    migrated_postgres_url: str, redis_url: str, tmp_path: Path, trace: Path
) -> None:
    breakers = tmp_path / "breakers.yaml"
    breakers.write_text("version: 1\ndefaults: {fail_max: 2, reset_timeout_s: 0.5}\n")
    with company(migrated_postgres_url, redis_url, tmp_path, breakers=breakers, **QUICK) as shop:
        shop.environ[VARIABLE] = str(trace)
        shop.start_web()
        shop.start("scheduler")
        worker = shop.start("worker")

        shop.vendors.fault("payment", "down")
        shop.post(shop.people[0])
        wait_for_call(shop, trace, "outbox.claim.claim_trial")
        shop.vendors.fault("payment", "rejects")
        shop.eventually(shop.letters, "a refusal to open a dead letter")
        shop.vendors.heal()
        (letter,) = shop.letters()
        shop.start("deadletter", "requeue", str(letter), "--reason", "mended")
        shop.eventually(lambda: shop.all_completed(1), "the request to complete")

        shop.vendors.fault("payment", "flaky", every=2)  # a call that succeeds, and a read-back that does not
        shop.post(shop.people[1])
        shop.eventually(lambda: any(each.verify_due_at for each in shop.entries()), "a read-back to fail")
        shop.vendors.heal()
        shop.eventually(lambda: shop.all_completed(2), "the request to complete")

        shop.vendors.fault("payment", "slow", seconds=5)
        shop.post(shop.people[2])
        shop.eventually(lambda: OutboxStatus.IN_FLIGHT in shop.statuses(), "a call to be in flight")
        shop.kill(worker)
        shop.vendors.heal()
        end_leases(shop)
        shop.start("worker")
        shop.eventually(lambda: shop.all_completed(3), "the request to complete")

        assert never_called(TROUBLE, trace) == []


def wait_for_call(shop: Company, trace: Path, name: str) -> None:
    shop.eventually(lambda: was_called(name, calls(trace)), f"{name} to be called")


def end_leases(shop: Company) -> None:
    """As if their time were up."""
    with shop.db.begin() as session:
        in_flight = OutboxRow.status == OutboxStatus.IN_FLIGHT
        session.execute(update(OutboxRow).where(in_flight).values(gate=clock.now(), waiting_since=None))


def test_the_page_opens_no_more_modules_than_a_person_can_keep_in_mind() -> None:
    linked = {each.replace("/", ".") for each in re.findall(r"effaced/([\w/]+)\.py", PAGE)}
    assert len(linked | modules(PAGE)) <= 35


def modules(text: str) -> set[str]:
    found = [resolve(each) for each in dotted_names(text)]
    return {each[0].removeprefix("effaced.") for each in found if each is not None}
