"""The runner keeps to the policy in force, and to what people change while it runs."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from saga_cast import NOON, CheckingVendor, House, Vendor

from effaced.bench.relay import relayed
from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.model import OutboxStatus, PolicyKind, PolicyScope, SubjectRef, Verification
from effaced.outbox.claim import claim
from effaced.resolvers.protocols import Answer, TransientFailure
from effaced.retries.overrides import Target, check_rate, set_override
from effaced.retries.policy import RetryPolicy, check_changes

SECOND = timedelta(seconds=1)
LEASE = timedelta(minutes=5)
CHANGE = """
import json, sys
from effaced.core.db import Database
from effaced.model import PolicyKind, PolicyScope
from effaced.retries.overrides import Target, set_override
from effaced.retries.policy import check_changes
url, key, changes = sys.argv[1:]
database = Database(url)
with database.begin() as session:
    target = Target(PolicyKind.RETRY, PolicyScope.RESOLVER, key)
    set_override(session, target, json.loads(changes), check=check_changes, actor="cli")
"""


def change(house: House, resolver: str | None = None, request: object = None, **changes: Any) -> None:
    target = Target(PolicyKind.RETRY)
    if resolver or request:
        scope = PolicyScope.RESOLVER if resolver else PolicyScope.REQUEST
        target = Target(PolicyKind.RETRY, scope, resolver or str(request))
    with house.db.begin() as session:
        set_override(session, target, changes, check=check_changes, actor="cli")


def failing(status: int | None = None, **more: Any) -> Callable[[str], BaseException]:
    return lambda _: TransientFailure("busy", status_code=status, **more)


class Meanwhile(Vendor):
    """Fails always. While it is called for the second entry, the first being settled, it does something."""

    def __init__(self, house: House, do: Callable[[], None]) -> None:
        super().__init__(lambda _: ConnectionError())
        self.house, self.do = house, do

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        if ref.value == "second":
            while self.house.entries()[0].status is not OutboxStatus.FAILED:
                await asyncio.sleep(0.005)
            self.do()
        return await super().erase_subject(ref, key=key)


def two_requests(house: House) -> None:
    with clock.pretend(NOON - SECOND):
        house.request(("crm", "first"))
    house.request(("crm", "second"))


def codes(house: House) -> list[str]:
    return [letter.error_code for letter in house.letters()]


class TestWait:
    def test_is_the_policys(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(failing()))
        house.request(("crm", "1"))
        house.drain(policy=RetryPolicy(base_delay=7))
        assert house.entry().gate == NOON + 7 * SECOND

    def test_is_retry_after_where_that_is_longer(self, house: House, noon: ManualClock) -> None:
        """SEMANTICS 8"""
        house.vendor("crm", Vendor(failing(429, retry_after=timedelta(hours=2))))
        house.request(("crm", "1"))
        house.drain()
        assert house.entry().gate == NOON + timedelta(hours=2)

    def test_that_would_exceed_the_total_time_ends_it_at_once(self, house: House, noon: ManualClock) -> None:
        """R2: sixty seconds in all; after thirty and a try, another minute's wait is too long."""
        house.vendor("crm", Vendor(failing()))
        house.request(("crm", "1"))
        house.drain(policy=RetryPolicy(timeout=60))
        assert house.entry().status is OutboxStatus.FAILED
        noon.advance(30 * SECOND)
        house.drain(policy=RetryPolicy(timeout=60))
        assert house.entry().status is OutboxStatus.ABANDONED
        assert codes(house) == ["max_age"]


class TestStatus:
    def test_is_tried_again_by_default(self, house: House) -> None:
        """R1"""
        house.vendor("crm", Vendor(lambda ref: TransientFailure("busy", status_code=int(ref))))
        house.request(*(("crm", str(status)) for status in (408, 429, 500, 503, 599)))
        house.drain()
        assert [each.status for each in house.entries()] == [OutboxStatus.FAILED] * 5

    def test_that_is_not_in_the_list_is_final(self, house: House) -> None:
        house.vendor("crm", Vendor(failing(503)))
        house.request(("crm", "1"))
        house.drain(policy=RetryPolicy(retry_status_codes=(408, 429)))
        assert house.entry().status is OutboxStatus.ABANDONED
        assert codes(house) == ["http_503"]

    def test_no_answer_at_all_is_tried_again_whatever_the_list_says(self, house: House) -> None:
        house.vendor("crm", Vendor(lambda _: ConnectionError()))
        house.request(("crm", "1"))
        house.drain(policy=RetryPolicy(retry_status_codes=()))
        assert house.entry().status is OutboxStatus.FAILED


class TestNotIdempotent:
    def test_is_tried_once(self, house: House) -> None:
        """R2"""
        house.vendor("crm", Vendor(failing(503)), idempotent=False)
        house.request(("crm", "1"))
        house.drain()
        assert house.entry().status is OutboxStatus.ABANDONED
        assert codes(house) == ["not_idempotent"]

    def test_is_tried_again_if_the_policy_allows_it(self, house: House) -> None:
        """R2"""
        house.vendor("crm", Vendor(failing(503)), idempotent=False)
        house.request(("crm", "1"))
        change(house, "crm", retry_non_idempotent=True)
        house.drain()
        assert house.entry().status is OutboxStatus.FAILED

    @pytest.mark.parametrize(
        ("allowed", "calls", "status"),
        [(False, 0, OutboxStatus.ABANDONED), (True, 1, OutboxStatus.SUCCEEDED)],
    )
    def test_is_not_called_again_after_a_crash(
        self, house: House, noon: ManualClock, allowed: bool, calls: int, status: OutboxStatus
    ) -> None:
        """R2: the runner that died may have made the call."""
        vendor = house.vendor("crm", Vendor(), idempotent=False)
        house.request(("crm", "1"))
        with house.db.begin() as session:
            assert claim(session, "crm", limit=1, lease=LEASE)
        noon.advance(LEASE)
        house.drain(policy=RetryPolicy(retry_non_idempotent=allowed))
        assert (len(vendor.calls), house.entry().status) == (calls, status)
        assert codes(house) == ([] if allowed else ["not_idempotent"])

    def test_a_late_read_back_only_looks(self, house: House, noon: ManualClock) -> None:
        seen = iter([ConnectionError(), True])
        vendor = house.vendor("crm", CheckingVendor(absent=lambda _: next(seen)), idempotent=False)
        house.request(("crm", "1"))
        house.drain()
        noon.advance(timedelta(hours=1))
        house.drain()
        assert (len(vendor.calls), house.entry().verification) == (1, Verification.CONFIRMED)


class TestChangeAtRunTime:
    def test_counts_from_the_next_flush_of_the_same_runner(self, house: House, noon: ManualClock) -> None:
        """The second call is settled after the change, by a runner that knew nothing of it."""
        house.vendor("crm", Meanwhile(house, lambda: change(house, "crm", base_delay=5)), concurrency=1)
        two_requests(house)
        house.drain()
        assert [each.gate for each in house.entries()] == [NOON + 30 * SECOND, NOON + 5 * SECOND]

    def test_of_a_resolver_leaves_the_others(self, house: House, noon: ManualClock) -> None:
        for name in ("crm", "mail"):
            house.vendor(name, Vendor(failing()))
            house.request((name, "1"))
        change(house, "crm", base_delay=5)
        asyncio.run(house.runner().run_once())
        assert {each.resolver: each.gate for each in house.entries()} == {
            "crm": NOON + 5 * SECOND,
            "mail": NOON + 30 * SECOND,
        }

    def test_of_a_request_is_for_its_calls_alone_and_wins(self, house: House, noon: ManualClock) -> None:
        """R1"""
        house.vendor("crm", Vendor(failing()), backoff=20 * SECOND)
        first, second = house.request(("crm", "1")), house.request(("crm", "2"))
        change(house, "crm", base_delay=5)
        change(house, request=second, base_delay=3)
        house.drain()
        assert {each.request_id: each.gate for each in house.entries()} == {
            first: NOON + 5 * SECOND,
            second: NOON + 3 * SECOND,
        }

    def test_of_everything_yields_to_what_a_resolver_has_of_its_own(
        self, house: House, noon: ManualClock
    ) -> None:
        """R1"""
        house.vendor("crm", Vendor(failing()), backoff=20 * SECOND)
        house.vendor("mail", Vendor(failing()))
        house.request(("crm", "1"), ("mail", "1"))
        change(house, base_delay=5)
        asyncio.run(house.runner().run_once())
        assert {each.resolver: each.gate for each in house.entries()} == {
            "crm": NOON + 20 * SECOND,
            "mail": NOON + 5 * SECOND,
        }

    def test_made_by_another_process_is_seen_by_a_runner_at_work(
        self, house: House, migrated_url: str, noon: ManualClock
    ) -> None:
        """One long drain: between its two flushes somebody else's process lowers the number of tries."""

        def elsewhere() -> None:
            arguments = [migrated_url, "crm", json.dumps({"max_attempts": 1})]
            subprocess.run([sys.executable, "-c", CHANGE, *arguments], check=True, timeout=60)

        house.vendor("crm", Meanwhile(house, elsewhere), concurrency=1, timeout=timedelta(seconds=100))
        two_requests(house)
        house.drain()
        statuses = [each.status for each in house.entries()]
        assert statuses == [OutboxStatus.FAILED, OutboxStatus.ABANDONED]


class TestRate:
    def limit(self, house: House, rate: float, *, everything: bool = False) -> None:
        mine = Target(PolicyKind.RATE, PolicyScope.RESOLVER, "crm")
        target = Target(PolicyKind.RATE) if everything else mine
        with house.db.begin() as session:
            set_override(session, target, {"rate_per_second": rate}, check=check_rate, actor="cli")

    def calls_at_once(self, house: House, **limits: object) -> int:
        vendor = house.vendor("crm", Vendor(), **limits)
        house.request(*(("crm", str(n)) for n in range(8)))
        asyncio.run(house.runner().drain("crm", seconds=0.3))
        return len(vendor.calls)

    @pytest.mark.parametrize(
        ("own", "configured", "common", "calls"),
        [(2, 5, 3, 2), (None, 5, 3, 5), (None, None, 3, 3)],
    )
    def test_is_the_resolvers_change_then_its_file_then_the_common_change(
        self,
        house: House,
        noon: ManualClock,
        own: float | None,
        configured: float | None,
        common: float | None,
        calls: int,
    ) -> None:
        """The clock stands still, so that a second's worth of calls is all there is."""
        if own:
            self.limit(house, own)
        if common:
            self.limit(house, common, everything=True)
        assert self.calls_at_once(house, rate_per_second=configured) == calls


def test_successes_ask_for_no_policy_but_with_the_pause_before_each_claim(
    migrated_postgres_url: str,
) -> None:
    """Counted on the wire: what failed costs one look more, what succeeded none."""
    direct = Database(migrated_postgres_url)
    House(direct).request(*(("crm", str(n)) for n in range(20)))
    with relayed(migrated_postgres_url) as (url, relay):
        house = House(Database(url))
        house.vendor("crm", Vendor())
        house.drain()
        house.db.dispose()
        asking = [trip for trip in relay.trips if b"effaced_policies" in trip]
    assert asking
    assert all(b"paused_until" in trip for trip in asking)
    assert {each.status for each in House(direct).entries()} == {OutboxStatus.SUCCEEDED}
    direct.dispose()
