"""The clock is set back by an hour while entries wait: no wait takes longer for that."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from saga_breakers import Block
from saga_cast import NOON, CheckingVendor, House, Vendor

from effaced.breakers.model import BreakerState
from effaced.breakers.operations import restart_waits as restart_breaker_waits
from effaced.core.clock import ManualClock
from effaced.model import OutboxStatus, Verification
from effaced.outbox.claim import claim
from effaced.outbox.flow import Booking, pause, pauses
from effaced.outbox.waits import restart_waits
from effaced.resolvers.protocols import Answer, Erased, Scheduled

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
BACKOFF = timedelta(seconds=30)
LEASE = timedelta(minutes=5)


def run(house: House) -> int:
    return asyncio.run(house.runner().run_once())


class Recovering:
    """Fails at first, and works from the second call on."""

    def __init__(self) -> None:
        self.called = 0

    def __call__(self, _ref: str) -> Answer | BaseException:
        self.called += 1
        return TimeoutError() if self.called == 1 else Erased()


class TestAFailedEntry:
    def test_is_tried_when_its_backoff_is_over(self, house: House, noon: ManualClock) -> None:
        vendor = house.vendor("crm", Vendor(Recovering()))
        house.request(("crm", "1"))
        run(house)
        noon.advance(-HOUR)
        run(house)
        noon.advance(BACKOFF - SECOND)
        run(house)
        assert len(vendor.calls) == 1
        noon.advance(2 * SECOND)
        run(house)
        assert len(vendor.calls) == 2
        assert house.entry().status is OutboxStatus.SUCCEEDED

    def test_has_its_wait_begun_anew_once(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(Recovering()))
        house.request(("crm", "1"))
        run(house)
        noon.advance(-HOUR)
        restarted = []
        for _ in range(3):
            with house.db.begin() as session:
                restarted.append(restart_waits(session))
            noon.advance(SECOND)
        assert restarted == [1, 0, 0]
        assert house.entry().gate == NOON - HOUR + BACKOFF

    def test_keeps_its_gate_while_the_clock_is_right(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(Recovering()))
        house.request(("crm", "1"))
        run(house)
        noon.advance(SECOND)
        with house.db.begin() as session:
            assert restart_waits(session) == 0
        assert house.entry().gate == NOON + BACKOFF

    def test_is_found_by_whoever_drives_the_outbox_by_hand(self, house: House, noon: ManualClock) -> None:
        house.request(("crm", "1"))
        outbox = house.outbox()
        (claimed,) = outbox.claim_batch()
        outbox.mark_failed(claimed, error="TimeoutError", next_attempt_at=NOON + BACKOFF)
        noon.advance(-HOUR)
        assert outbox.claim_batch() == []
        noon.advance(BACKOFF)
        assert len(outbox.claim_batch()) == 1


def test_a_vendors_horizon_is_a_date_and_stays(house: House, noon: ManualClock) -> None:
    horizon = NOON + timedelta(days=30)
    house.vendor("crm", Vendor(lambda _: Scheduled(horizon)))
    house.request(("crm", "1"))
    run(house)
    noon.advance(-HOUR)
    run(house)
    assert house.entry().gate == horizon


def test_the_end_of_an_officers_pause_is_a_date_and_stays(house: House, noon: ManualClock) -> None:
    with house.db.begin() as session:
        pause(session, "crm", actor="officer:1", until=NOON + HOUR)
    noon.advance(-HOUR)
    run(house)
    with house.db.read() as session:
        assert pauses(session)["crm"].until == NOON + HOUR


def test_the_lease_of_a_dead_runner_ends_when_it_was_meant_to(house: House, noon: ManualClock) -> None:
    vendor = house.vendor("crm", Vendor())
    house.request(("crm", "1"))
    with house.db.begin() as session:
        claim(session, "crm", limit=1, lease=LEASE)
    noon.advance(-HOUR)
    run(house)
    noon.advance(LEASE - SECOND)
    run(house)
    assert vendor.calls == []
    noon.advance(2 * SECOND)
    run(house)
    assert len(vendor.calls) == 1


def test_a_read_back_is_made_when_its_wait_is_over(house: House, noon: ManualClock) -> None:
    seen: list[bool | BaseException] = [TimeoutError(), True]
    house.vendor("crm", CheckingVendor(absent=lambda _: seen.pop(0)))
    house.request(("crm", "1"))
    run(house)
    assert house.entry().verification is Verification.DUE
    noon.advance(-HOUR)
    run(house)
    noon.advance(BACKOFF + SECOND)
    run(house)
    assert house.entry().verification is Verification.CONFIRMED


def test_a_rate_limit_is_not_booked_out_until_the_clock_catches_up(house: House, noon: ManualClock) -> None:
    with house.db.begin() as session:
        Booking(session, "crm", 2.0).take(2)
    noon.advance(-HOUR)
    with house.db.begin() as session:
        assert Booking(session, "crm", 2.0).room == 2


def test_what_is_booked_still_counts_while_the_clock_is_right(house: House, noon: ManualClock) -> None:
    with house.db.begin() as session:
        Booking(session, "crm", 2.0).take(2)
    with house.db.begin() as session:
        assert Booking(session, "crm", 2.0).room == 0


class TestAnOpenBreaker:
    @pytest.fixture
    def block(self, house: House) -> Block:
        return Block(house.db)

    def opened(self, block: Block) -> None:
        block.vendor("crm", Vendor(lambda _: TimeoutError()))
        for number in range(5):
            block.request(("crm", str(number)))
        block.run()
        assert block.state() is BreakerState.OPEN

    def test_lets_a_trial_through_when_its_time_is_over(self, block: Block, noon: ManualClock) -> None:
        self.opened(block)
        until = block.breakers.retry_at("crm")
        assert until is not None
        noon.advance(-HOUR)
        with block.db.begin() as session:
            store = block.breakers.store.within(session)
            assert restart_breaker_waits(store) == 1
            assert restart_breaker_waits(store) == 0
        assert block.another().retry_at("crm") == until - HOUR

    def test_that_an_officer_has_pinned_stays_so_until_the_named_date(
        self, block: Block, noon: ManualClock
    ) -> None:
        block.breakers.force_open("resolver:crm", actor="officer:1", until=NOON + HOUR)
        noon.advance(-HOUR)
        with block.db.begin() as session:
            assert restart_breaker_waits(block.breakers.store.within(session)) == 0
        assert block.another().retry_at("crm") == NOON + HOUR
