"""Redis is stopped and started while breakers are kept there: none falls to closed, and nothing is lost."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from company_house import Company, company
from sqlalchemy import select
from waiting import PATIENCE

from effaced.breakers import transitions
from effaced.breakers.model import BreakerEvent, BreakerState, CircuitBreakerStateData
from effaced.breakers.open_store import connect
from effaced.breakers.stores.redis import RedisBreakerStore
from effaced.breakers.tables import BreakerShadow
from effaced.core.servers import Valkey
from effaced.model import OutboxStatus

POLICY = "version: 1\ndefaults: {fail_max: 2, reset_timeout_s: 1, max_reset_timeout_s: 2}\n"
QUICK = {"lease_seconds": 11, "backoff_seconds": 0.2, "backoff_cap_seconds": 1, "breaker_store": "redis"}
CLOSED = BreakerState.CLOSED


def test_breakers_outlive_their_store_and_every_call_ends(
    migrated_postgres_url: str, own_valkey: Valkey, tmp_path: Path
) -> None:
    policy = tmp_path / "breakers.yaml"
    policy.write_text(POLICY)
    with company(migrated_postgres_url, own_valkey.url, tmp_path, **QUICK, breakers=policy) as shop:
        # Payment is down before Redis is.
        shop.vendors.fault("payment", "down")
        ask_and_drain(shop, shop.people[:3])
        assert in_redis(own_valkey)["resolver:payment"].state is not CLOSED

        # Nobody can be asked, and then the files go down too. Each drain is a process that knows nothing.
        own_valkey.stop()
        called = calls(shop, "payment")
        shop.vendors.fault("files", "down")
        ask_and_drain(shop, shop.people[3:6])
        assert calls(shop, "payment") == called, "it was open, and no trial starts without the store"
        assert {row.service_name for row in shadow(shop)} >= {"resolver:files"}
        assert {row.synced_at for row in shadow(shop)} == {None}

        # It is back, and remembers nothing; the vendors are still down.
        own_valkey.start()
        ask_and_drain(shop, [])
        assert None not in {row.synced_at for row in shadow(shop)}
        known = in_redis(own_valkey)
        assert {known[f"resolver:{name}"].state for name in ("payment", "files")}.isdisjoint({CLOSED})

        shop.vendors.heal()
        shop.start("scheduler")
        shop.start("worker")
        shop.eventually(lambda: shop.all_completed(6), "all requests to be completed")
        assert {entry.status for entry in shop.entries()} == {OutboxStatus.SUCCEEDED}
        assert shop.letters() == []
        assert reasons_to_close(shop) == {BreakerEvent.TRIALS_SUCCEEDED}


def test_worker_and_scheduler_live_through_the_gap(
    migrated_postgres_url: str, redis_url: str, own_valkey: Valkey, tmp_path: Path
) -> None:
    """The bell's Redis stays; that of the breakers stops, forgets all, and starts again."""
    policy = tmp_path / "breakers.yaml"
    policy.write_text(POLICY)
    options = {**QUICK, "breakers": policy, "breaker_redis_url": own_valkey.url}
    with company(migrated_postgres_url, redis_url, tmp_path, **options) as shop:
        lasting = [shop.start("scheduler"), shop.start("worker")]
        shop.vendors.fault("payment", "down")
        ask(shop, shop.people[:2])
        shop.eventually(lambda: is_held(own_valkey, "payment"), "payment's breaker to open")

        own_valkey.stop()
        shop.vendors.fault("files", "down")
        ask(shop, shop.people[2:4])
        shop.eventually(lambda: opened_meanwhile(shop, "files"), "the files' breaker to open")
        called, drained = calls(shop, "payment"), drains(shop, "payment")
        shop.eventually(lambda: drains(shop, "payment") > drained, "payment to be tried for")
        assert calls(shop, "payment") == called, "it was open, and no trial starts without the store"

        own_valkey.start()
        shop.eventually(lambda: not unsynced(shop), "it to be made up for")
        # Redis forgot payment too: the next who asks for it says what it was.
        shop.eventually(lambda: is_held(own_valkey, "payment"), "payment's breaker to be known again")
        assert is_held(own_valkey, "files")

        shop.vendors.heal()
        shop.eventually(lambda: shop.all_completed(4), "all requests to be completed")
        assert [process.poll() for process in lasting] == [None, None]
        assert {entry.status for entry in shop.entries()} == {OutboxStatus.SUCCEEDED}
        assert shop.letters() == []
        assert reasons_to_close(shop) == {BreakerEvent.TRIALS_SUCCEEDED}


def ask(shop: Company, people: list[int]) -> None:
    for person in people:
        shop.leave_approved(person)


def ask_and_drain(shop: Company, people: list[int]) -> None:
    ask(shop, people)
    assert shop.start("drain").wait(PATIENCE) == 0, shop.log("drain")


def in_redis(server: Valkey) -> dict[str, CircuitBreakerStateData]:
    with closing(connect(server.url)) as connection:
        return {row.service_name: row for row in RedisBreakerStore(connection).load_all()}


def is_held(server: Valkey, resolver: str) -> bool:
    found = in_redis(server).get(f"resolver:{resolver}")
    return found is not None and found.state is not CLOSED


def drains(shop: Company, resolver: str) -> int:
    """How many of the worker's jobs for it have ended."""
    lines = [json.loads(line) for line in shop.log("worker").splitlines() if line.startswith("{")]
    return sum(line["event"] == "drained" and line["resolver"] == resolver for line in lines)


def calls(shop: Company, vendor: str) -> int:
    return sum(call.vendor == vendor for call in shop.vendors.calls)


def shadow(shop: Company) -> list[BreakerShadow]:
    with shop.db.read() as session:
        return list(session.scalars(select(BreakerShadow)))


def unsynced(shop: Company) -> set[str]:
    return {row.service_name for row in shadow(shop) if row.synced_at is None}


def opened_meanwhile(shop: Company, resolver: str) -> bool:
    """Whether its breaker opened while Redis was away. A first failure is noted too, and opens nothing."""
    name = f"resolver:{resolver}"
    return any(row.service_name == name and row.intended_state != CLOSED for row in shadow(shop))


def reasons_to_close(shop: Company) -> set[str]:
    with shop.db.read() as session:
        return {move.reason for move in transitions.read(session) if move.new is CLOSED}
