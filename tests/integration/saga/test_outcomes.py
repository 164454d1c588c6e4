"""What becomes of an entry after its call, on both databases."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from saga_cast import NOON, CheckingVendor, House, Vendor
from sqlalchemy import select

from effaced.core.clock import ManualClock
from effaced.core.errors import ResolverError
from effaced.model import (
    DeadLetterDomain,
    DeadLetterStatus,
    OutboxStatus,
    RequestStatus,
    StepOutcome,
    Verification,
)
from effaced.outbox.claim import claim_read_back
from effaced.outbox.due import due_resolvers, status_counts
from effaced.outbox.flow import flow_state, resume
from effaced.outbox.requeue import requeue
from effaced.requests.complete import complete_operations
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    CredentialsRefused,
    Erased,
    Retained,
    Scheduled,
    TransientFailure,
)
from effaced.resolvers.registry import ResolverRegistry
from effaced.retries.tables import Attempt
from effaced.saga.abandoned_hook import AbandonedSignal
from effaced.saga.result import ReadBack
from effaced.saga.settle_read_back import request_read_back, settle_read_back

SECRET = "anna.meier@people.example"


class TestSuccess:
    def test_completes_the_request_when_its_last_call_succeeds(self, house: House) -> None:
        house.vendor("crm", Vendor())
        house.vendor("mail", Vendor())
        request_id = house.request(("crm", "c-1"), ("mail", "m-1"))

        house.drain("crm")
        assert house.status(request_id) is RequestStatus.RUNNING
        assert house.remaining(request_id) == 1

        house.drain("mail")
        assert house.status(request_id) is RequestStatus.COMPLETED
        assert house.types().count("ERASURE_COMPLETED") == 1

    def test_passes_the_entry_id_as_idempotency_key(self, house: House) -> None:
        vendor = house.vendor("crm", Vendor())
        house.request(("crm", "c-1"))
        house.drain()
        assert vendor.calls == [("c-1", house.entry().entry_id)]

    @pytest.mark.parametrize(
        ("answer", "outcome"),
        [
            (Erased(), StepOutcome.ERASED),
            (AlreadyAbsent(), StepOutcome.ALREADY_ABSENT),
            (Retained("tax_law"), StepOutcome.RETAINED),
        ],
    )
    def test_keeps_how_it_ended(self, house: House, answer: object, outcome: StepOutcome) -> None:
        house.vendor("crm", Vendor(lambda _: answer))  # type: ignore[arg-type, return-value]
        house.request(("crm", "c-1"))
        house.drain()
        entry = house.entry()
        assert (entry.status, entry.outcome) == (OutboxStatus.SUCCEEDED, outcome)

    def test_forgets_the_reference(self, house: House) -> None:
        house.vendor("crm", Vendor())
        house.request(("crm", SECRET))
        assert house.entry().ref_sealed is not None
        house.drain()
        assert house.entry().ref_sealed is None


class TestTransientFailure:
    def test_waits_for_the_backoff_and_leaves_no_event(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(lambda _: ConnectionError(SECRET)))
        house.request(("crm", "c-1"))
        house.drain()

        entry = house.entry()
        assert (entry.status, entry.attempts) == (OutboxStatus.FAILED, 1)
        assert entry.gate == NOON + timedelta(seconds=30)
        assert entry.last_error == "ConnectionError"
        assert house.types() == []

    def test_is_not_claimed_before_its_gate_and_is_at_it(self, house: House, noon: ManualClock) -> None:
        vendor = house.vendor("crm", Vendor(lambda _: ConnectionError()))
        house.request(("crm", "c-1"))
        house.drain()
        noon.advance(timedelta(seconds=29))
        house.drain()
        assert len(vendor.calls) == 1
        noon.advance(timedelta(seconds=1))
        house.drain()
        assert len(vendor.calls) == 2

    def test_waits_as_long_as_the_vendor_asks(self, house: House, noon: ManualClock) -> None:
        busy = TransientFailure("busy", status_code=429, retry_after=timedelta(minutes=7))
        house.vendor("crm", Vendor(lambda _: busy))
        house.request(("crm", "c-1"))
        house.drain()
        assert house.entry().gate == NOON + timedelta(minutes=7)

    def test_abandons_after_the_last_attempt(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(lambda _: ConnectionError()))
        house.request(("crm", "c-1"))
        for _ in range(3):
            house.drain(max_attempts=3)
            noon.advance(timedelta(hours=1))
        assert house.entry().status is OutboxStatus.ABANDONED
        assert [letter.error_code for letter in house.letters()] == ["attempts_exhausted"]

    def test_abandons_an_entry_that_would_outlive_its_age(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(lambda _: ConnectionError()))
        house.request(("crm", "c-1"))
        noon.advance(timedelta(days=25))
        house.drain()
        assert [letter.error_code for letter in house.letters()] == ["max_age"]

    def test_a_call_that_exceeds_its_time_is_a_timeout(self, house: House) -> None:
        class Hangs(Vendor):
            async def erase_subject(self, ref: object, *, key: object) -> Erased:  # type: ignore[override]
                await asyncio.Event().wait()
                return Erased()

        house.vendor("crm", Hangs(), timeout=timedelta(milliseconds=20))
        house.request(("crm", "c-1"))
        house.drain()
        assert house.entry().last_error == "TimeoutError"


class TestPermanentFailure:
    def test_abandons_at_once_with_event_and_dead_letter(self, house: House) -> None:
        house.vendor("crm", Vendor(lambda _: ResolverError(SECRET, code="http_400")))
        request_id = house.request(("crm", "c-1"))
        house.drain()

        assert house.entry().status is OutboxStatus.ABANDONED
        assert house.types() == ["ERASURE_STEP_FAILED", "DEAD_LETTER_OPENED"]
        (letter,) = house.letters()
        assert (letter.entry_id, letter.error_code) == (house.entry().entry_id, "http_400")
        assert house.status(request_id) is RequestStatus.RUNNING

    def test_an_unknown_resolver_abandons_that_entry_only(self, house: House) -> None:
        house.vendor("crm", Vendor())
        house.request(("crm", "c-1"), ("nobody", "n-1"))
        asyncio.run(house.runner().run_once())
        assert {entry.resolver: entry.status for entry in house.entries()} == {
            "crm": OutboxStatus.SUCCEEDED,
            "nobody": OutboxStatus.ABANDONED,
        }

    def test_keeps_no_word_of_the_error(self, house: House) -> None:
        house.vendor("crm", Vendor(lambda _: ResolverError(SECRET, code="http_400")))
        house.request(("crm", SECRET))
        house.drain()
        (letter,) = house.letters()
        kept = str([event.payload for event in house.events()]) + str(vars(letter)) + str(vars(house.entry()))
        assert "meier" not in kept

    def test_an_abandoned_sibling_keeps_the_request_open(self, house: House) -> None:
        house.vendor("crm", Vendor(lambda ref: ResolverError("no") if ref == "bad" else Erased()))
        request_id = house.request(("crm", "good"), ("crm", "bad"))
        house.drain()
        assert house.status(request_id) is RequestStatus.RUNNING
        assert house.remaining(request_id) == 1

    def test_an_old_abandoned_request_does_not_block_a_new_one(self, house: House) -> None:
        house.vendor("crm", Vendor(lambda ref: ResolverError("no") if ref == "bad" else Erased()))
        house.request(("crm", "bad"))
        second = house.request(("crm", "good"))
        house.drain()
        assert house.status(second) is RequestStatus.COMPLETED

    def test_tells_the_hook_after_the_commit_and_survives_it(self, house: House) -> None:
        seen: list[tuple[AbandonedSignal, OutboxStatus]] = []

        class Pager:
            def on_abandoned(self, signal: AbandonedSignal) -> None:
                seen.append((signal, house.entry().status))
                raise RuntimeError("pager is down")

        house.vendor("crm", Vendor(lambda _: ResolverError("no")))
        house.request(("crm", SECRET))
        house.drain(on_abandoned=Pager())
        ((signal, status),) = seen
        assert status is OutboxStatus.ABANDONED
        assert SECRET not in repr(signal)


class TestRequeue:
    def test_gives_a_full_set_of_attempts_and_says_so(self, house: House) -> None:
        house.vendor("crm", Vendor(lambda _: ResolverError("no")))
        house.request(("crm", "c-1"))
        house.drain()
        with house.db.begin() as session:
            flipped = requeue(session, [house.entry().entry_id], actor="officer:1")

        entry = house.entry()
        assert [each.entry_id for each in flipped] == [entry.entry_id]
        assert (entry.status, entry.attempts, entry.gate, entry.last_error) == (
            OutboxStatus.PENDING,
            0,
            None,
            None,
        )
        (event,) = house.events("ERASURE_REQUEUED")
        assert event.payload == {"resolver": "crm", "prior_attempts": 1, "prior_error": "ResolverError"}

    def test_skips_what_is_not_abandoned(self, house: House) -> None:
        house.vendor("crm", Vendor())
        house.request(("crm", "c-1"))
        with house.db.begin() as session:
            assert requeue(session, [house.entry().entry_id], actor="officer:1") == []
        assert house.events("ERASURE_REQUEUED") == []

    def test_a_success_after_it_resolves_the_dead_letter_and_completes(self, house: House) -> None:
        vendor = house.vendor("crm", Vendor(lambda _: ResolverError("no")))
        request_id = house.request(("crm", "c-1"))
        house.drain()
        vendor.answer = lambda _: Erased()
        with house.db.begin() as session:
            requeue(session, [house.entry().entry_id], actor="officer:1")
        house.drain()
        assert house.status(request_id) is RequestStatus.COMPLETED
        assert [letter.status for letter in house.letters()] == [DeadLetterStatus.RESOLVED]

    def test_a_failure_after_it_reopens_the_same_dead_letter(self, house: House) -> None:
        house.vendor("crm", Vendor(lambda _: ResolverError("no")))
        house.request(("crm", "c-1"))
        for _ in range(2):
            house.drain()
            with house.db.begin() as session:
                requeue(session, [house.entry().entry_id], actor="officer:1")
        house.drain()
        assert [letter.status for letter in house.letters()] == [DeadLetterStatus.PENDING]


class TestScheduled:
    def test_parks_until_the_horizon_with_its_attempts_back(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(lambda _: Scheduled(NOON + timedelta(days=30))))
        request_id = house.request(("crm", "c-1"))
        house.drain()
        entry = house.entry()
        assert (entry.status, entry.attempts, entry.gate) == (
            OutboxStatus.SCHEDULED,
            0,
            NOON + timedelta(days=30),
        )
        assert house.types() == ["ERASURE_EXPIRY_SCHEDULED"]
        assert house.status(request_id) is RequestStatus.RUNNING

    def test_a_horizon_in_the_past_waits_one_step(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(lambda _: Scheduled(NOON - timedelta(days=1))))
        house.request(("crm", "c-1"))
        house.drain()
        assert house.entry().gate == NOON + timedelta(seconds=30)

    def test_every_slip_is_told_and_the_end_is_a_verified_expiry(
        self, house: House, noon: ManualClock
    ) -> None:
        day = timedelta(days=1)
        vendor = house.vendor("crm", CheckingVendor(lambda _: Scheduled(noon() + day)))
        request_id = house.request(("crm", "c-1"))
        house.drain()
        noon.advance(day)
        house.drain()
        assert [event.payload["slips"] for event in house.events("ERASURE_EXPIRY_SCHEDULED")] == [0, 1]
        vendor.answer = lambda _: AlreadyAbsent()
        noon.advance(day)
        house.drain()
        assert house.entry().outcome is StepOutcome.VERIFIED_EXPIRY
        assert house.status(request_id) is RequestStatus.COMPLETED


class TestReadBack:
    def test_confirms_in_the_same_settle(self, house: House) -> None:
        house.vendor("crm", CheckingVendor())
        house.request(("crm", "c-1"))
        house.drain()
        assert house.types() == ["ERASURE_STEP_SUCCEEDED", "ERASURE_EXTERNAL_VERIFIED", "ERASURE_COMPLETED"]
        assert house.entry().verification is Verification.CONFIRMED

    def test_still_present_keeps_the_success_and_opens_a_dead_letter(self, house: House) -> None:
        house.vendor("crm", CheckingVendor(absent=lambda _: False))
        request_id = house.request(("crm", "c-1"))
        house.drain()
        assert house.entry().status is OutboxStatus.SUCCEEDED
        assert house.status(request_id) is RequestStatus.RUNNING
        assert [letter.domain for letter in house.letters()] == [DeadLetterDomain.VERIFICATION]
        assert house.entry().ref_sealed is not None

    def test_that_cannot_be_made_is_made_later(self, house: House, noon: ManualClock) -> None:
        vendor = CheckingVendor(absent=lambda _: ConnectionError())
        house.vendor("crm", vendor)
        house.request(("crm", "c-1"))
        house.drain()
        assert house.entry().verification is Verification.DUE

        vendor.absent = lambda _: True
        noon.advance(timedelta(seconds=30))
        with house.db.read() as session:
            assert due_resolvers(session) == {"crm"}
        house.drain()
        entry = house.entry()
        assert (entry.verification, entry.verify_due_at, entry.ref_sealed) == (
            Verification.CONFIRMED,
            None,
            None,
        )
        assert len(house.events("ERASURE_STEP_SUCCEEDED")) == 1

    def test_looking_again_erases_again_so_that_what_was_forgotten_is_mended(
        self, house: House, noon: ManualClock
    ) -> None:
        vendor = CheckingVendor(absent=lambda _: len(vendor.calls) > 1)
        house.vendor("crm", vendor)
        house.request(("crm", "c-1"))
        house.drain()
        assert [letter.error_code for letter in house.letters()] == ["still_present"]
        with house.db.begin() as session:
            assert request_read_back(session, house.entry().entry_id) == "crm"
        house.drain()
        assert house.entry().verification is Verification.CONFIRMED
        assert [letter.status for letter in house.letters()] == [DeadLetterStatus.RESOLVED]

    def test_that_can_never_be_made_ends_with_a_person(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", CheckingVendor(absent=lambda _: ConnectionError()))
        house.request(("crm", "c-1"))
        for _ in range(27):
            house.drain()
            noon.advance(timedelta(days=1))
        assert [letter.error_code for letter in house.letters()] == ["unverifiable"]
        with house.db.read() as session:
            assert due_resolvers(session) == set()

    def test_that_ends_its_runner_is_given_up(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", CheckingVendor(absent=lambda _: ConnectionError()))
        house.request(("crm", "c-1"), ("crm", "c-2"))
        house.drain()
        poison, crashes = None, 0
        noon.advance(timedelta(minutes=6))
        with house.db.begin() as session:  # a runner dies over both read-backs
            for _ in range(2):
                assert claim_read_back(session, "crm", lease=timedelta(minutes=5)) is not None
        while poison is None or crashes < 3:  # and others over one of them, by itself
            noon.advance(timedelta(minutes=6))
            with house.db.begin() as session:
                entry = claim_read_back(session, "crm", lease=timedelta(minutes=5), crashed=True)
            assert entry is not None
            poison = poison or entry.entry_id
            if entry.entry_id == poison:
                crashes = entry.crashes
            else:
                with house.db.begin() as session:
                    settle_read_back(session, entry, GONE, again_at=None, on_complete=complete_operations)
        noon.advance(timedelta(minutes=6))
        house.drain()
        noon.advance(timedelta(minutes=6))
        house.drain()
        assert [letter.entry_id for letter in house.letters()] == [poison]

    def test_of_a_resolver_that_is_gone_does_not_come_up_again_at_once(
        self, house: House, noon: ManualClock
    ) -> None:
        house.vendor("crm", CheckingVendor(absent=lambda _: ConnectionError()))
        house.request(("crm", "c-1"))
        house.drain()
        house.registry = ResolverRegistry()
        noon.advance(timedelta(minutes=1))
        house.drain()
        with house.db.read() as session:
            assert due_resolvers(session) == set()


GONE = ReadBack(NOON, Verification.CONFIRMED)


class Odd(Exception):
    retry_after = 30  # seconds, as some libraries have it


class Talkative(Exception):
    status_code = "anna@people.example not found"


class TestOddAnswers:
    """Third parties write resolvers. Whatever one of them does, the others' entries are settled."""

    @pytest.mark.parametrize(
        ("answer", "status"),
        [
            (Odd(), OutboxStatus.FAILED),
            (ResolverError("no", code="two words and " + "x" * 300), OutboxStatus.ABANDONED),
            (Retained("tax law, " + "x" * 300), OutboxStatus.SUCCEEDED),
            (Scheduled(datetime(2027, 1, 1)), OutboxStatus.SCHEDULED),  # noqa: DTZ001
            (Scheduled("tomorrow"), OutboxStatus.ABANDONED),  # type: ignore[arg-type]
            (None, OutboxStatus.ABANDONED),
            ("gone", OutboxStatus.ABANDONED),
            (type("Ünïcödé error", (Exception,), {})(), OutboxStatus.FAILED),
            (asyncio.CancelledError(), OutboxStatus.FAILED),
            (Talkative(), OutboxStatus.FAILED),
            (Erased(status_code="anna was here"), OutboxStatus.SUCCEEDED),  # type: ignore[arg-type]
        ],
    )
    def test_is_written_down_and_harms_nobody(
        self, house: House, noon: ManualClock, answer: object, status: OutboxStatus
    ) -> None:
        house.vendor("crm", Vendor(lambda ref: answer if ref == "odd" else Erased()))  # type: ignore[arg-type, return-value]
        odd = house.request(("crm", "odd"))
        good = house.request(("crm", "good"))
        house.drain()
        assert {entry.request_id: entry.status for entry in house.entries()} == {
            odd: status,
            good: OutboxStatus.SUCCEEDED,
        }
        with house.db.read() as session:
            assert set(session.scalars(select(Attempt.status_code))) == {None}

    @pytest.mark.parametrize("said", [asyncio.CancelledError(), Odd(), None])
    def test_of_a_later_read_back_ends_nobody_else(
        self, house: House, noon: ManualClock, said: object
    ) -> None:
        vendor = house.vendor("crm", CheckingVendor(absent=lambda _: ConnectionError()))
        house.request(("crm", "1"))
        house.drain()
        assert house.entry().verification is Verification.DUE
        noon.advance(timedelta(minutes=1))
        vendor.absent = lambda _: said  # type: ignore[assignment, return-value]
        asyncio.run(house.runner().run_once())
        assert house.entry().status is OutboxStatus.SUCCEEDED


class TestRefusedCredentials:
    def test_of_a_read_back_pause_the_resolver_and_the_success_stands(
        self, house: House, noon: ManualClock
    ) -> None:
        house.vendor("crm", CheckingVendor(absent=lambda _: CredentialsRefused("no", status_code=401)))
        house.request(("crm", "1"))
        house.drain()
        assert (house.entry().status, house.entry().verification) == (
            OutboxStatus.SUCCEEDED,
            Verification.DUE,
        )
        with house.db.read() as session:
            assert flow_state(session, "crm").paused

    def test_of_a_later_read_back_pause_it_too(self, house: House, noon: ManualClock) -> None:
        vendor = house.vendor("crm", CheckingVendor(absent=lambda _: ConnectionError()))
        house.request(("crm", "1"))
        house.drain()
        noon.advance(timedelta(minutes=1))
        vendor.absent = lambda _: CredentialsRefused("no", status_code=401)
        house.drain()
        with house.db.read() as session:
            assert flow_state(session, "crm").paused


class TestAge:
    def test_is_counted_anew_from_the_horizon(self, house: House, noon: ManualClock) -> None:
        vendor = house.vendor("crm", Vendor(lambda _: Scheduled(NOON + timedelta(days=30))))
        house.request(("crm", "c-1"))
        house.drain()
        noon.advance(timedelta(days=30))
        vendor.answer = lambda _: ConnectionError()
        house.drain()
        assert house.entry().status is OutboxStatus.FAILED

    def test_is_counted_anew_from_a_requeue(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(lambda _: ConnectionError()))
        house.request(("crm", "c-1"))
        noon.advance(timedelta(days=26))
        house.drain()
        with house.db.begin() as session:
            requeue(session, [house.entry().entry_id], actor="officer:1")
        house.drain()
        assert house.entry().status is OutboxStatus.FAILED


def test_refused_credentials_pause_the_resolver_and_use_up_no_attempt(
    house: House, noon: ManualClock
) -> None:
    vendor = house.vendor("crm", Vendor(lambda _: CredentialsRefused("no", status_code=401)))
    house.request(("crm", "c-1"))
    for _ in range(20):
        house.drain()
        noon.advance(timedelta(hours=1))
    assert (house.entry().status, house.entry().attempts) == (OutboxStatus.PENDING, 0)
    assert (len(vendor.calls), len(house.events("RESOLVER_PAUSED"))) == (1, 1)
    vendor.answer = lambda _: Erased()
    with house.db.begin() as session:
        assert resume(session, "crm", actor="cli")
    assert house.drain() == 1


def test_counts_every_status_with_zeros(house: House) -> None:
    house.vendor("crm", Vendor())
    house.request(("crm", "c-1"), ("crm", "c-2"))
    with house.db.read() as session:
        counts = status_counts(session)
    assert counts == {status: 2 if status is OutboxStatus.PENDING else 0 for status in OutboxStatus}
