"""A request is completed when every call has succeeded and no read-back is due or contradicts one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from uuid import UUID

from saga_cast import KEYRING, NOON, CheckingVendor, House, Vendor
from sqlalchemy import select

from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.model import DeadLetterStatus, RequestStatus, StepOutcome, Verification
from effaced.notify.tables import Message
from effaced.outbox.claim import claim_read_back
from effaced.outbox.tables import Operation
from effaced.requests.complete import complete_operations
from effaced.requests.tables import Request
from effaced.resolvers.protocols import AlreadyAbsent, Scheduled
from effaced.saga.result import ReadBack
from effaced.saga.settle_read_back import settle_read_back
from effaced.triage.attest import attest
from effaced.triage.retry import redrive, reverify

LEASE = timedelta(minutes=5)
DAY = timedelta(days=1)
REASON = "The vendor confirmed by e-mail."


def vendor_that_keeps_it(house: House) -> CheckingVendor:
    return house.vendor("crm", CheckingVendor(absent=lambda _: False))


def vendor_that_does_not_answer(house: House) -> CheckingVendor:
    return house.vendor("crm", CheckingVendor(absent=lambda _: ConnectionError()))


def is_open(house: House, request_id: UUID) -> bool:
    with house.db.read() as session:
        found = session.get_one(Request, request_id)
    assert (found.completed_at is None) == (found.closed_at is None)
    return found.status is RequestStatus.RUNNING and found.closed_at is None


def counters(house: House, request_id: UUID) -> tuple[int, int]:
    with house.db.read() as session:
        found = session.scalars(select(Operation).where(Operation.request_id == request_id)).one()
    return found.remaining, found.unverified


def completions_told(house: House) -> int:
    with house.db.read() as session:
        return sum(type_ == "request.completed" for type_ in session.scalars(select(Message.type)))


def attest_gone(house: House, entry_id: UUID) -> None:
    with house.db.begin() as session:
        attest(session, KEYRING, entry_id, actor="officer:7", reason=REASON)


def attest_all(house: House, entry_ids: list[UUID]) -> None:
    for entry_id in entry_ids:
        attest_gone(house, entry_id)


def look_again(house: House, entry_id: UUID) -> None:
    with house.db.begin() as session:
        reverify(session, KEYRING, entry_id, actor="officer:7", reason=REASON)


class TestStaysOpen:
    def test_while_a_system_still_has_the_person(self, house: House) -> None:
        vendor_that_keeps_it(house)
        request_id = house.request(("crm", "c-1"))
        house.drain()
        assert is_open(house, request_id)
        assert counters(house, request_id) == (0, 1)
        assert completions_told(house) == 0

    def test_and_the_trail_still_says_that_every_call_has_succeeded(self, house: House) -> None:
        vendor_that_keeps_it(house)
        house.request(("crm", "c-1"))
        house.drain()
        (event,) = house.events("ERASURE_COMPLETED")
        assert event.payload == {"operation": "erase", "unverified": 1}

    def test_while_a_read_back_is_due(self, house: House, noon: ManualClock) -> None:
        vendor_that_does_not_answer(house)
        request_id = house.request(("crm", "c-1"))
        house.drain()
        assert is_open(house, request_id)
        assert completions_told(house) == 0

    def test_when_the_read_back_was_given_up(self, house: House, noon: ManualClock) -> None:
        vendor_that_does_not_answer(house)
        request_id = house.request(("crm", "c-1"))
        for _ in range(27):
            house.drain()
            noon.advance(DAY)
        assert house.entry().verification is Verification.UNVERIFIABLE
        assert house.types()[-2:] == ["ERASURE_READ_BACK_GIVEN_UP", "DEAD_LETTER_OPENED"]
        assert is_open(house, request_id)
        assert house.entry().ref_sealed is not None

    def test_when_the_read_back_ends_every_runner(self, house: House, noon: ManualClock) -> None:
        vendor_that_does_not_answer(house)
        request_id = house.request(("crm", "c-1"))
        house.drain()
        for crashed in (False, True, True, True):  # runners die over it, the last three by itself
            noon.advance(timedelta(minutes=6))
            with house.db.begin() as session:
                assert claim_read_back(session, "crm", lease=LEASE, crashed=crashed)
        noon.advance(timedelta(minutes=6))
        house.drain()
        assert house.entry().verification is Verification.UNVERIFIABLE
        assert is_open(house, request_id)

    def test_and_keeps_the_reference_that_the_read_back_needs(self, house: House) -> None:
        house.vendor("crm", CheckingVendor(absent=lambda ref: ref == "gone"))
        house.request(("crm", "gone"), ("crm", "there"))
        house.drain()
        kept = {entry.verification: entry.ref_sealed is not None for entry in house.entries()}
        assert kept == {Verification.CONFIRMED: False, Verification.STILL_PRESENT: True}


class TestIsClosed:
    def test_by_a_later_read_back_with_one_notice(self, house: House, noon: ManualClock) -> None:
        vendor = vendor_that_does_not_answer(house)
        request_id = house.request(("crm", "c-1"))
        house.drain()
        vendor.absent = lambda _: True
        noon.advance(timedelta(seconds=30))
        house.drain()
        assert house.status(request_id) is RequestStatus.COMPLETED
        assert counters(house, request_id) == (0, 0)
        assert completions_told(house) == 1
        assert house.types() == [
            "ERASURE_STEP_SUCCEEDED",
            "ERASURE_COMPLETED",
            "ERASURE_EXTERNAL_VERIFIED",
            "ERASURE_VERIFICATION_COMPLETED",
        ]
        with house.db.read() as session:
            assert session.get_one(Request, request_id).completed_at == NOON + timedelta(seconds=30)

    def test_by_looking_again_after_it_was_still_there(self, house: House) -> None:
        vendor = vendor_that_keeps_it(house)
        request_id = house.request(("crm", "c-1"))
        house.drain()
        look_again(house, house.entry().entry_id)
        assert is_open(house, request_id)
        vendor.absent = lambda _: True
        house.drain()
        assert house.status(request_id) is RequestStatus.COMPLETED

    def test_by_redriving_the_dead_letter(self, house: House) -> None:
        vendor = vendor_that_keeps_it(house)
        request_id = house.request(("crm", "c-1"))
        house.drain()
        with house.db.begin() as session:
            redrive(session, KEYRING, [house.letters()[0].id], actor="officer:7", reason=REASON)
        assert is_open(house, request_id)
        vendor.absent = lambda _: True
        house.drain()
        assert house.status(request_id) is RequestStatus.COMPLETED
        assert [letter.status for letter in house.letters()] == [DeadLetterStatus.RESOLVED]

    def test_by_an_attestation(self, house: House) -> None:
        vendor_that_keeps_it(house)
        request_id = house.request(("crm", "c-1"))
        house.drain()
        attest_gone(house, house.entry().entry_id)
        assert house.status(request_id) is RequestStatus.COMPLETED
        assert counters(house, request_id) == (0, 0)
        assert completions_told(house) == 1
        assert house.types()[-2:] == ["ERASURE_READ_BACK_ATTESTED", "ERASURE_VERIFICATION_COMPLETED"]
        assert house.entry().ref_sealed is None

    def test_by_an_attestation_of_what_could_not_be_read_back(self, house: House, noon: ManualClock) -> None:
        vendor_that_does_not_answer(house)
        request_id = house.request(("crm", "c-1"))
        for _ in range(27):
            house.drain()
            noon.advance(DAY)
        attest_gone(house, house.entry().entry_id)
        assert house.status(request_id) is RequestStatus.COMPLETED

    def test_by_the_last_of_several_read_backs_only(self, house: House) -> None:
        vendor_that_keeps_it(house)
        request_id = house.request(("crm", "c-1"), ("crm", "c-2"))
        house.drain()
        first, second = house.entries()
        attest_gone(house, first.entry_id)
        assert is_open(house, request_id)
        assert counters(house, request_id) == (0, 1)
        attest_gone(house, second.entry_id)
        assert house.status(request_id) is RequestStatus.COMPLETED

    def test_by_the_last_call_when_the_read_back_was_confirmed_before_it(
        self, house: House, noon: ManualClock
    ) -> None:
        vendor = vendor_that_does_not_answer(house)
        house.vendor("mailing", Vendor())
        request_id = house.request(("crm", "c-1"), ("mailing", "m-1"))
        house.drain()
        vendor.absent = lambda _: True
        noon.advance(timedelta(seconds=30))
        house.drain()
        assert is_open(house, request_id)
        assert counters(house, request_id) == (1, 0)
        house.drain("mailing")
        assert house.status(request_id) is RequestStatus.COMPLETED
        assert house.types()[-1] == "ERASURE_COMPLETED"
        assert len(house.events("ERASURE_VERIFICATION_COMPLETED")) == 0

    def test_once_when_a_read_back_comes_late(self, house: House, noon: ManualClock) -> None:
        vendor_that_does_not_answer(house)
        request_id = house.request(("crm", "c-1"))
        house.drain()
        noon.advance(timedelta(minutes=1))
        with house.db.begin() as session:
            late = claim_read_back(session, "crm", lease=LEASE)
        noon.advance(timedelta(minutes=6))
        with house.db.begin() as session:
            in_time = claim_read_back(session, "crm", lease=LEASE, crashed=True)
        assert late is not None
        assert in_time is not None
        for entry, counts in ((late, False), (in_time, True), (late, False), (in_time, False)):
            with house.db.begin() as session:
                look = ReadBack(clock.now(), Verification.CONFIRMED)
                settled = settle_read_back(
                    session, entry, look, again_at=None, on_complete=complete_operations
                )
            assert settled is counts
        assert counters(house, request_id) == (0, 0)
        assert completions_told(house) == 1


def at_once(*acts: Callable[[], object]) -> None:
    """Let these start together, each in a thread."""
    barrier, errors = threading.Barrier(len(acts)), list[BaseException]()

    def run(act: Callable[[], object]) -> None:
        barrier.wait(20)
        try:
            act()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


def test_finishers_at_the_same_moment_complete_the_request_once(house: House) -> None:
    vendor_that_keeps_it(house)
    requests = [house.request(*(("crm", f"c-{n}") for n in range(4))) for _ in range(5)]
    house.drain()
    entries = [entry.entry_id for entry in house.entries()]
    at_once(*(partial(attest_all, house, entries[n::4]) for n in range(4)))
    assert {house.status(request_id) for request_id in requests} == {RequestStatus.COMPLETED}
    assert {counters(house, request_id) for request_id in requests} == {(0, 0)}
    assert completions_told(house) == len(requests)
    assert len(house.events("ERASURE_VERIFICATION_COMPLETED")) == len(requests)


def test_the_library_is_told_of_the_last_success_whatever_a_read_back_said(house: House) -> None:
    """The seed's callback follows ERASURE_COMPLETED, not the request."""
    vendor_that_keeps_it(house)
    house.request(("crm", "c-1"), ("mailing", "m-1"))
    house.drain()
    outbox, told = house.outbox(), list[str]()
    (claimed,) = outbox.claim_batch()
    assert outbox.mark_succeeded(claimed, on_subject_complete=lambda: told.append("complete"))
    assert told == ["complete"]


class TestExpiry:
    def parked(self, house: House, noon: ManualClock, vendor: Vendor) -> UUID:
        vendor.answer = lambda _: Scheduled(noon() + DAY)
        house.vendor("crm", vendor)
        request_id = house.request(("crm", "c-1"))
        house.drain()
        vendor.answer = lambda _: AlreadyAbsent()
        noon.advance(DAY)
        return request_id

    def test_that_nobody_looked_at_is_the_vendors_word(self, house: House, noon: ManualClock) -> None:
        request_id = self.parked(house, noon, Vendor())
        house.drain()
        assert (house.entry().outcome, house.entry().verification) == (StepOutcome.EXPIRED, None)
        (event,) = house.events("ERASURE_STEP_SUCCEEDED")
        assert (event.payload["outcome"], event.payload["evidence"]) == ("expired", "vendor_word")
        assert house.status(request_id) is RequestStatus.COMPLETED

    def test_that_was_read_back_is_verified(self, house: House, noon: ManualClock) -> None:
        self.parked(house, noon, CheckingVendor())
        house.drain()
        assert house.entry().outcome is StepOutcome.VERIFIED_EXPIRY
        (event,) = house.events("ERASURE_STEP_SUCCEEDED")
        assert event.payload["evidence"] == "confirmed"

    def test_that_a_read_back_contradicts_is_not_verified(self, house: House, noon: ManualClock) -> None:
        request_id = self.parked(house, noon, CheckingVendor(absent=lambda _: False))
        house.drain()
        assert house.entry().outcome is StepOutcome.EXPIRED
        (event,) = house.events("ERASURE_STEP_SUCCEEDED")
        assert "evidence" not in event.payload
        assert is_open(house, request_id)

    def test_is_verified_once_a_later_read_back_confirms_it(self, house: House, noon: ManualClock) -> None:
        vendor = CheckingVendor(absent=lambda _: ConnectionError())
        self.parked(house, noon, vendor)
        house.drain()
        assert house.entry().outcome is StepOutcome.EXPIRED
        vendor.absent = lambda _: True
        noon.advance(timedelta(seconds=30))
        house.drain()
        assert house.entry().outcome is StepOutcome.VERIFIED_EXPIRY
