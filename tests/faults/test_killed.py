"""Processes are killed at any instant; nothing is lost and nothing stays stuck longer than a lease."""

from __future__ import annotations

import random
from pathlib import Path

import httpx
import pytest
from company_house import Company, company
from redis import Redis
from waiting import PATIENCE, eventually

from effaced.core.servers import Valkey
from effaced.model import OutboxStatus
from effaced.outbox.flow import resume

# A lease just long enough for a call and its read-back, so that healing can be waited for.
QUICK = {"lease_seconds": 11, "backoff_seconds": 0.2, "backoff_cap_seconds": 1}


def settled(shop: Company, number: int) -> None:
    shop.eventually(lambda: shop.all_completed(number), f"{number} requests to be completed")
    completions = shop.events("ERASURE_COMPLETED")
    assert completions == number, "each request completes exactly once"
    assert {entry.status for entry in shop.entries()} == {OutboxStatus.SUCCEEDED}


def test_a_killed_worker_loses_nothing(migrated_url: str, redis_url: str, tmp_path: Path) -> None:
    with company(migrated_url, redis_url, tmp_path, **QUICK) as shop:
        shop.start_web()
        shop.start("scheduler")
        shop.vendors.fault("payment", "slow", seconds=1.5)
        worker = shop.start("worker")
        asked = [shop.post(person) for person in shop.people[:4]]
        assert {answer.status_code for answer in asked} == {201}
        eventually(lambda: OutboxStatus.IN_FLIGHT in shop.statuses(), "a call to be in flight")
        shop.kill(worker)
        shop.vendors.heal("payment")
        shop.start("worker")
        settled(shop, 4)


def test_a_killed_web_process_loses_no_accepted_request(
    migrated_url: str, redis_url: str, tmp_path: Path
) -> None:
    """Killed while calls come in: whatever was answered with 201 exists, and is carried out."""
    with company(migrated_url, redis_url, tmp_path, **QUICK) as shop:
        shop.start_web()
        shop.start("scheduler")
        shop.start("worker")
        accepted: set[str] = set()
        moment = random.Random(11).randrange(1, 4)
        for number, person in enumerate(shop.people[:5]):
            if number == moment:
                shop.kill(shop.web)
            try:
                answer = shop.post(person)
            except httpx.HTTPError:
                shop.start_web()
                answer = shop.post(person)
            assert answer.status_code in {200, 201}
            accepted.add(answer.json()["id"])
        assert accepted == {str(request_id) for request_id in shop.requests()}
        settled(shop, 5)


def test_a_worker_outlives_what_a_killed_one_left_in_redis(
    migrated_sqlite_url: str, own_valkey: Valkey, tmp_path: Path
) -> None:
    """The killed one's job keeps its id until the key expires; the sweep does not wait for that."""
    with company(migrated_sqlite_url, own_valkey.url, tmp_path, **QUICK) as shop:
        shop.start_web()
        shop.vendors.fault("payment", "slow", seconds=4)
        shop.post(shop.people[0])
        worker = shop.start("worker")
        with Redis.from_url(own_valkey.url, decode_responses=True) as redis:
            eventually(lambda: OutboxStatus.IN_FLIGHT in shop.statuses(), "a call to be in flight")
            shop.kill(worker)
            shop.vendors.heal("payment")
            left = redis.keys("effaced:job:*")
            assert left
            assert all(redis.ttl(key) > 0 for key in left)
            survivor = shop.start("worker")
            shop.start("scheduler")
            settled(shop, 1)
        assert survivor.poll() is None


@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=pytest.mark.drill)])
def test_kills_at_random_moments_lose_nothing(
    migrated_postgres_url: str, redis_url: str, tmp_path: Path, kills: int
) -> None:
    # Every kill comes right after a claim, so an entry that flies alone looks guilty again and again: with
    # the usual limit it would be given up as poison, and rightly so.
    patient = {"crash_limit": 20, "max_attempts": 50}
    with company(migrated_postgres_url, redis_url, tmp_path, **QUICK, **patient) as shop:
        shop.start_web()
        shop.start("scheduler")
        shop.vendors.fault("crm", "slow", seconds=0.3)
        shop.vendors.fault("files", "flaky", every=3)
        chance = random.Random(7)
        for person in shop.people[:6]:
            shop.post(person)
        for _ in range(kills):
            worker = shop.start("worker")
            claims = sum(entry.token for entry in shop.entries())
            goal = claims + chance.randrange(1, 4)
            shop.eventually(
                lambda goal=goal: (  # type: ignore[misc]
                    sum(entry.token for entry in shop.entries()) >= goal or shop.all_completed(6)
                ),
                "the worker to claim something",
            )
            shop.kill(worker)
        shop.vendors.heal()
        shop.start("worker")
        settled(shop, 6)
        assert {entry.crashes for entry in shop.entries()} == {0}


def test_sigterm_finishes_what_is_in_flight(migrated_url: str, redis_url: str, tmp_path: Path) -> None:
    with company(migrated_url, redis_url, tmp_path) as shop:
        shop.start_web()
        shop.vendors.fault("payment", "slow", seconds=1.0)
        worker = shop.start("worker")
        shop.post(shop.people[0])
        eventually(
            lambda: any(
                entry.resolver == "payment" and entry.status is OutboxStatus.IN_FLIGHT
                for entry in shop.entries()
            ),
            "the payment call to be in flight",
        )
        worker.terminate()
        assert worker.wait(PATIENCE) == 0
        assert OutboxStatus.IN_FLIGHT not in shop.statuses()


class TestRedis:
    def test_emptied_while_entries_are_open_delays_them_by_a_sweep(
        self, migrated_url: str, own_valkey: Valkey, tmp_path: Path
    ) -> None:
        with company(migrated_url, own_valkey.url, tmp_path, **QUICK) as shop:
            shop.start_web()
            for person in shop.people[:3]:
                shop.post(person)  # rung, but nobody works yet
            with Redis.from_url(own_valkey.url) as redis:
                assert redis.dbsize() > 0
                redis.flushall()
            shop.start("worker")
            shop.start("scheduler")
            settled(shop, 3)

    def test_emptied_under_a_running_worker_is_no_matter(
        self, migrated_url: str, own_valkey: Valkey, tmp_path: Path
    ) -> None:
        with company(migrated_url, own_valkey.url, tmp_path, **QUICK) as shop:
            shop.start_web()
            shop.start("worker")
            shop.start("scheduler")
            with Redis.from_url(own_valkey.url) as redis:
                for person in shop.people[:5]:
                    shop.post(person)
                    redis.flushall()
            settled(shop, 5)

    def test_down_and_up_again_is_no_matter(
        self, migrated_url: str, own_valkey: Valkey, tmp_path: Path
    ) -> None:
        with company(migrated_url, own_valkey.url, tmp_path, **QUICK) as shop:
            shop.start_web()
            shop.start("worker")
            shop.start("scheduler")
            shop.eventually(lambda: "worker_started" in shop.log("worker"), "the worker to have begun")
            own_valkey.stop()
            assert shop.post(shop.people[0]).status_code == 201
            # Whoever came first to execute it has rung: the web process, or the scheduler's sweep.
            shop.eventually(
                lambda: any("ring_failed" in shop.log(name) for name in ("web", "scheduler")),
                "a ring that failed",
            )
            own_valkey.start()
            settled(shop, 1)

    def test_away_while_a_worker_begins_is_waited_for(
        self, migrated_sqlite_url: str, own_valkey: Valkey, tmp_path: Path
    ) -> None:
        """RQ bears a Redis that goes away only while it waits for a job."""
        with company(migrated_sqlite_url, own_valkey.url, tmp_path, **QUICK) as shop:
            own_valkey.stop()
            shop.start("worker")
            shop.eventually(lambda: "worker_lost_redis" in shop.log("worker"), "the worker to miss Redis")
            own_valkey.start()
            shop.start_web()
            shop.start("scheduler")
            assert shop.post(shop.people[0]).status_code == 201
            settled(shop, 1)


def test_a_vendor_that_refuses_our_credentials_waits_for_a_person(
    migrated_sqlite_url: str, redis_url: str, tmp_path: Path
) -> None:
    """The resolver is paused by itself; resumed with the right credentials, it goes on as if nothing was."""
    with company(migrated_sqlite_url, redis_url, tmp_path, **QUICK) as shop:
        shop.start_web()
        shop.start("worker")
        shop.start("scheduler")
        shop.vendors.fault("payment", "unauthorised")
        shop.post(shop.people[0])
        shop.eventually(lambda: shop.events("RESOLVER_PAUSED"), "the payment system to be paused")
        shop.vendors.heal()
        shop.post(shop.people[1])
        with shop.db.begin() as session:
            assert resume(session, "payment", actor="cli")
        settled(shop, 2)
        assert {entry.attempts for entry in shop.entries()} == {1}


@pytest.mark.parametrize("fault", [("down", {}), ("throttled", {"retry_after": 1})])
def test_a_vendor_in_trouble_is_waited_for(
    migrated_sqlite_url: str, redis_url: str, tmp_path: Path, fault: tuple[str, dict[str, object]]
) -> None:
    with company(migrated_sqlite_url, redis_url, tmp_path, **QUICK) as shop:
        shop.start_web()
        shop.start("worker")
        shop.start("scheduler")
        shop.vendors.fault("payment", fault[0], **fault[1])
        shop.post(shop.people[0])
        eventually(lambda: OutboxStatus.FAILED in shop.statuses(), "the payment call to fail")
        shop.vendors.heal()
        settled(shop, 1)
