"""Breakers in the saga: a vendor in trouble costs nobody an attempt, and gets its time."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import httpx
import pytest
from saga_breakers import Block
from saga_cast import NOON, CheckingVendor, CorrectingVendor, Vendor
from sqlalchemy import event
from sqlalchemy.orm import Session

from effaced.breakers.admitted import Admission
from effaced.breakers.model import BreakerRole, BreakerState
from effaced.breakers.outcomes import Outcome, OutcomeKind
from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.core.errors import ResolverError
from effaced.model import AttemptOutcome, Correction, OutboxStatus, SubjectRef, Verification
from effaced.resolvers.protocols import (
    Answer,
    CredentialsRefused,
    Erased,
    Limits,
    Rejected,
    TransientFailure,
)
from effaced.resolvers.registry import Registered

RESET = timedelta(seconds=60)
DOWN = ConnectionError("nobody answers")


@pytest.fixture
def house(db: Database) -> Block:
    return Block(db)


def opened(house: Block, vendor: Vendor | None = None, entries: int = 5) -> Vendor:
    """Five calls have failed: the breaker is open, and the vendor still down."""
    found = house.vendor("crm", vendor or Vendor(lambda _: DOWN), concurrency=10)
    house.request(*(("crm", str(number)) for number in range(entries)))
    house.drain()
    assert house.state() is BreakerState.OPEN
    return found


def foreign_503() -> httpx.HTTPStatusError:
    request = httpx.Request("DELETE", "http://vendor.example/1")
    return httpx.HTTPStatusError("no", request=request, response=httpx.Response(503, request=request))


class TestOpen:
    def test_after_so_many_failures_nothing_more_is_claimed(self, house: Block, noon: ManualClock) -> None:
        vendor = opened(house)
        calls = len(vendor.calls)
        later = house.request(("crm", "later"))
        noon.advance(RESET - timedelta(seconds=1))
        assert house.run() == 0
        assert len(vendor.calls) == calls
        (waiting,) = [each for each in house.entries() if each.request_id == later]
        assert (waiting.status, waiting.attempts, waiting.gate) == (OutboxStatus.PENDING, 0, None)

    def test_of_one_vendor_leaves_the_others_alone(self, house: Block, noon: ManualClock) -> None:
        opened(house)
        mail = house.vendor("mail", Vendor())
        house.request(("crm", "9"), ("mail", "9"))
        house.run()
        assert len(mail.calls) == 1

    def test_of_a_host_holds_up_every_resolver_on_it(self, house: Block, noon: ManualClock) -> None:
        """Their failures count together: three here and two there are five."""
        vendors = {name: Vendor(lambda _: DOWN) for name in ("crm", "mail")}
        for name, vendor in vendors.items():
            house.registry.register(Registered(name, name, vendor, Limits(), host="api.example"))
        house.request(*(("crm", str(n)) for n in range(3)), *(("mail", str(n)) for n in range(2)))
        house.run()
        house.request(("crm", "9"), ("mail", "9"))
        calls = [len(vendor.calls) for vendor in vendors.values()]
        house.run()
        assert [len(vendor.calls) for vendor in vendors.values()] == calls
        assert house.another().current_state(host="api.example") is BreakerState.OPEN
        assert house.state("crm") is BreakerState.CLOSED

    def test_by_hand_holds_from_the_next_claim_on(self, house: Block, noon: ManualClock) -> None:
        vendor = house.vendor("crm", Vendor())
        house.request(("crm", "1"))
        house.another().force_open("resolver:crm", actor="cli", seconds=600)
        assert (house.run(), vendor.calls) == (0, [])
        house.another().reset("resolver:crm", actor="cli")
        assert house.run() == 1

    @pytest.mark.parametrize(
        "answer",
        [
            ResolverError("no", code="no_such_thing"),
            Rejected("no", code="http_400", status_code=400),
            CredentialsRefused("no", status_code=401),
        ],
    )
    def test_not_by_what_says_nothing_about_its_health(
        self, house: Block, noon: ManualClock, answer: Exception
    ) -> None:
        house.vendor("crm", Vendor(lambda _: answer))
        house.request(*(("crm", str(number)) for number in range(8)))
        house.drain()
        assert house.state() is BreakerState.CLOSED

    @pytest.mark.parametrize("answer", [ValueError("a bug"), RuntimeError("an SDK's own"), foreign_503()])
    def test_by_unknown_exceptions_too(self, house: Block, noon: ManualClock, answer: Exception) -> None:
        vendor = house.vendor("crm", Vendor(lambda _: answer), concurrency=1)
        house.request(*(("crm", str(number)) for number in range(8)))
        house.drain()
        assert house.state() is BreakerState.OPEN
        assert len(vendor.calls) < 8

    def test_an_answer_from_a_cache_counts_nothing(self, house: Block, noon: ManualClock) -> None:
        """Four failures, an answer that nobody was asked for, and a fifth: that is five in a row."""

        class Cached(Erased):
            cached = True

        house.vendor("crm", Vendor(lambda ref: Cached() if ref == "cached" else DOWN), concurrency=1)
        for ref in ("1", "2", "3", "4", "cached", "5"):
            house.request(("crm", ref))
            house.drain()
        assert house.state() is BreakerState.OPEN

    def test_a_call_that_was_claimed_before_is_given_back_uncalled(
        self, house: Block, noon: ManualClock
    ) -> None:
        """When their claim commits, somebody else's calls fail, and this process hears of it."""
        vendor = house.vendor("crm", Vendor(lambda _: DOWN), concurrency=10)
        house.request(*(("crm", str(number)) for number in range(5)))
        meanwhile: list[Admission] = []

        @event.listens_for(house.db.sessions, "after_commit")
        def fail_elsewhere(_: Session) -> None:
            if not meanwhile and OutboxStatus.IN_FLIGHT in house.counts():
                meanwhile.append(house.breakers.admit("crm", most=5))
                house.breakers.settle(meanwhile[0], [Outcome(OutcomeKind.FAILURE, 503)] * 5)

        house.drain()
        assert vendor.calls == []
        assert {(each.status, each.attempts) for each in house.entries()} == {(OutboxStatus.PENDING, 0)}
        assert {each.gate for each in house.entries()} == {NOON + RESET}
        assert {each.outcome for each in house.attempts()} == {AttemptOutcome.CIRCUIT_OPEN}


class TestHalfOpen:
    def test_one_call_at_a_time_is_let_through(self, house: Block, noon: ManualClock) -> None:
        vendor = opened(house)
        house.request(*(("crm", f"n{number}") for number in range(20)))
        noon.advance(RESET)
        calls = len(vendor.calls)
        house.run()
        assert len(vendor.calls) == calls + 1
        assert [each.trial for each in house.attempts()].count(True) == 1

    def test_a_failed_one_gives_the_attempt_back_and_waits_for_the_breaker(
        self, house: Block, noon: ManualClock
    ) -> None:
        opened(house)
        tried = house.request(("crm", "fresh"))
        noon.advance(RESET)
        house.run()
        (entry,) = [each for each in house.entries() if each.request_id == tried]
        # The wait doubles while trials fail.
        assert (entry.status, entry.attempts) == (OutboxStatus.PENDING, 0)
        assert entry.gate == clock.now() + 2 * RESET
        assert house.another().retry_at("crm") == entry.gate

    def test_a_failed_one_is_not_made_again_where_twice_does_harm(
        self, house: Block, noon: ManualClock
    ) -> None:
        vendor = opened(house)
        house.vendor("crm", vendor, idempotent=False)
        tried = house.request(("crm", "fresh"))
        noon.advance(RESET)
        house.run()
        (entry,) = [each for each in house.entries() if each.request_id == tried]
        assert entry.status is OutboxStatus.ABANDONED
        assert [each.error_code for each in house.letters()] == ["not_idempotent"]

    def test_the_next_one_takes_another_entry(self, house: Block, noon: ManualClock) -> None:
        """If a single person's data makes the vendor stumble, others are tried."""
        vendor = opened(house, Vendor(lambda _: DOWN))
        house.request(("crm", "first"))
        noon.advance(timedelta(milliseconds=1))
        house.request(("crm", "second"))
        tried = []
        for _ in range(4):
            noon.advance(timedelta(minutes=15))
            before = len(vendor.calls)
            house.run()
            tried += [ref for ref, _ in vendor.calls[before:]]
        assert len(set(tried)) == 4
        assert tried[:2] == ["first", "second"]

    def test_a_good_one_closes_it_and_the_rest_follows_at_once(self, house: Block, noon: ManualClock) -> None:
        vendor = opened(house)
        house.request(*(("crm", f"n{number}") for number in range(20)))
        vendor.answer = lambda _: Erased()
        noon.advance(timedelta(hours=1))
        house.run()
        assert house.state() is BreakerState.CLOSED
        assert house.counts() == {OutboxStatus.SUCCEEDED: 25}

    def test_one_that_tells_nothing_frees_its_place_for_the_next(
        self, house: Block, noon: ManualClock
    ) -> None:
        vendor = opened(house)
        vendor.answer = lambda ref: ResolverError("no") if ref == "odd" else Erased()
        house.request(("crm", "odd"))
        noon.advance(timedelta(hours=1))
        house.run()
        assert house.state() is BreakerState.CLOSED
        assert house.counts() == {OutboxStatus.SUCCEEDED: 5, OutboxStatus.ABANDONED: 1}

    def test_two_good_ones_where_two_are_asked_for(self, db: Database, noon: ManualClock) -> None:
        house = Block(db, success_threshold=2)
        vendor = opened(house)
        vendor.answer = lambda _: Erased()
        noon.advance(timedelta(hours=1))
        house.run()
        assert house.state() is BreakerState.CLOSED
        assert [each.trial for each in house.attempts()].count(True) == 2

    def test_corrections_have_a_trial_of_their_own(self, house: Block, noon: ManualClock) -> None:
        vendor = CorrectingVendor(lambda _: DOWN, reply=lambda _: DOWN)
        opened(house, vendor)
        for number in range(3):
            house.request(("crm", f"c{number}"), corrections=[Correction("email", "new@people.example")])
        noon.advance(RESET)
        held = house.another().admit("crm", None, BreakerRole.ERASE, 1)  # another process tries an erasure
        assert held.trial
        house.run()
        assert len(vendor.told) == 1

    def test_when_only_corrections_wait_they_are_tried(self, house: Block, noon: ManualClock) -> None:
        vendor = house.vendor("crm", CorrectingVendor())
        vendor.reply = lambda _: DOWN
        for number in range(5):
            house.request(("crm", str(number)), corrections=[Correction("email", "new@people.example")])
        house.drain()
        assert house.state() is BreakerState.OPEN
        vendor.reply = CorrectingVendor().reply
        noon.advance(timedelta(hours=1))
        house.run()
        assert house.counts() == {OutboxStatus.SUCCEEDED: 5}

    def test_that_fails_for_an_unknown_reason_uses_up_its_attempt(
        self, house: Block, noon: ManualClock
    ) -> None:
        """A bug must come to light, and not hide behind an open breaker for as long as entries may wait."""
        house.vendor("crm", Vendor(lambda _: RuntimeError("a bug")))
        house.request(("crm", "1"))
        for _ in range(40):
            house.run()
            noon.advance(timedelta(hours=1))
        assert house.entry().status is OutboxStatus.ABANDONED
        assert [letter.error_code for letter in house.letters()] == ["attempts_exhausted"]

    def test_that_dies_with_its_runner_is_tried_again_after_the_stuck_time(
        self, house: Block, noon: ManualClock
    ) -> None:
        vendor = opened(house)
        vendor.answer = lambda _: Erased()
        noon.advance(timedelta(hours=1))
        assert house.another().admit("crm").trial  # and nobody ever says what came of it
        assert house.run() == 0
        noon.advance(timedelta(seconds=301))
        house.run()
        assert house.counts() == {OutboxStatus.SUCCEEDED: 5}


class TestRetryAfter:
    def test_sets_the_gate_and_keeps_everybody_else_away(self, house: Block, noon: ManualClock) -> None:
        wait = timedelta(minutes=10)
        busy = TransientFailure("busy", status_code=429, retry_after=wait)
        vendor = house.vendor("crm", Vendor(lambda _: busy), concurrency=1)
        house.request(("crm", "1"))
        house.drain()
        assert house.entry().gate == NOON + wait
        house.request(("crm", "2"))
        assert (house.run(), len(vendor.calls)) == (0, 1)
        noon.advance(wait)
        vendor.answer = lambda _: Erased()
        assert house.run() == 2

    def test_is_capped_for_the_breaker(self, house: Block, noon: ManualClock) -> None:
        busy = TransientFailure("busy", status_code=503, retry_after=timedelta(hours=20))
        house.vendor("crm", Vendor(lambda _: busy))
        house.request(("crm", "1"))
        house.drain()
        assert house.another().retry_at("crm") == NOON + timedelta(seconds=900)
        assert house.entry().gate == NOON + timedelta(hours=20)


class TestReadBack:
    def test_waits_for_the_breaker_too(self, house: Block, noon: ManualClock) -> None:
        vendor = house.vendor("crm", CheckingVendor(absent=lambda _: DOWN))
        house.request(("crm", "1"))
        house.drain()
        assert house.entry().verification is Verification.DUE
        house.another().force_open("resolver:crm", actor="cli", seconds=3_600)
        noon.advance(timedelta(minutes=30))
        vendor.absent = lambda _: True
        assert house.run() == 0
        noon.advance(timedelta(minutes=31))
        assert house.run() == 1
        assert house.entry().verification is Verification.CONFIRMED


def outage(house: Block, noon: ManualClock, *, arriving: int, every: timedelta) -> int:
    """A vendor that is down for two days while requests keep coming; how many calls it got in them."""
    down, calls = [True], list[datetime]()

    class Flaky(Vendor):
        async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
            calls.append(clock.now())
            if down:
                raise DOWN
            return Erased()

    house.vendor("crm", Flaky())
    mail = house.vendor("mail", Vendor())
    asked, next_at = 0, noon.at
    begin, end = noon.at, noon.at + timedelta(days=2)
    while noon.at < end:
        while noon.at >= next_at:
            for _ in range(arriving):
                house.request(("crm", f"c{asked}"), ("mail", f"m{asked}"))
                asked += 1
            next_at += every
        house.run()
        # Every minute while the breaker's waits get longer, then whenever one has passed.
        noon.advance(timedelta(minutes=1 if noon.at < begin + timedelta(hours=1) else 15))
    assert len(mail.calls) == asked, "the others went on at full speed"
    during = len(calls)
    down.clear()
    for _ in range(3):
        house.run()
        noon.advance(timedelta(minutes=15))
    return during


@pytest.mark.parametrize(
    ("migrated_url", "arriving", "every"),
    [
        pytest.param("sqlite", 1, timedelta(hours=8), id="sqlite-light"),
        pytest.param("sqlite", 30, timedelta(hours=12), id="sqlite-heavy", marks=pytest.mark.drill),
        pytest.param("postgresql", 1, timedelta(hours=8), id="postgresql-light"),
        pytest.param("postgresql", 30, timedelta(hours=12), id="postgresql-heavy", marks=pytest.mark.drill),
    ],
    indirect=["migrated_url"],
)
def test_two_days_without_a_vendor_abandon_nothing(
    db: Database, noon: ManualClock, arriving: int, every: timedelta
) -> None:
    house = Block(db)
    during = outage(house, noon, arriving=arriving, every=every)
    assert house.letters() == []
    assert set(house.counts()) == {OutboxStatus.SUCCEEDED}
    # What was under way when it opened, then trials that get rarer, down to one in a quarter of an hour.
    assert during <= 30 + 4 * 24 * 2 + 10
    attempts = [each for each in house.attempts() if each.resolver == "crm"]
    trials = [each for each in attempts if each.trial]
    assert len({each.at for each in trials}) == len(trials), "two trials at once"
    # Back again: one probe by itself, then the rest.
    first, *rest = [each for each in attempts if each.outcome is AttemptOutcome.SUCCESS]
    assert first.trial
    assert not any(each.trial for each in rest)
    assert house.state() is BreakerState.CLOSED
