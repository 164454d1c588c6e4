"""Read-backs are calls: breakers, cooldowns, attempts and the advisor see them like any other."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from saga_breakers import Block
from saga_cast import CheckingVendor, House
from sqlalchemy import select

from effaced.breakers.model import BreakerState
from effaced.breakers.outcomes import Outcome, OutcomeKind
from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.model import AttemptOutcome, CallRole, OutboxStatus, SubjectRef, Verification
from effaced.resolvers.protocols import Answer, TransientFailure
from effaced.retries.tables import Attempt

TOO_MANY = TransientFailure("later", status_code=429, retry_after=timedelta(seconds=120))


@pytest.fixture
def block(db: Database) -> Block:
    return Block(db)


def looks(house: House) -> list[Attempt]:
    with house.db.read() as session:
        found = select(Attempt).where(Attempt.role == CallRole.VERIFY).order_by(Attempt.id)
        return list(session.scalars(found))


class TestTheImmediateReadBack:
    def test_that_is_told_to_wait_sets_a_cooldown(self, block: Block, noon: ManualClock) -> None:
        vendor = block.vendor("crm", CheckingVendor(absent=lambda _: TOO_MANY), concurrency=5)
        block.request(*(("crm", str(number)) for number in range(30)))
        block.run()
        made = len(vendor.calls)
        assert made <= 10  # those that had been claimed by then; the rest waits
        noon.advance(timedelta(seconds=119))
        assert (block.run(), len(vendor.calls)) == (0, made)

    def test_that_fails_again_and_again_opens_the_breaker(self, block: Block, noon: ManualClock) -> None:
        vendor = block.vendor("crm", CheckingVendor(absent=lambda _: ConnectionError()), concurrency=10)
        block.request(*(("crm", str(number)) for number in range(10)))
        block.run()
        assert block.state() is BreakerState.OPEN
        assert len(vendor.calls) == 10

    def test_is_an_attempt_of_its_own(self, house: House) -> None:
        house.vendor("crm", CheckingVendor())
        house.request(("crm", "1"))
        house.drain()
        with house.db.read() as session:
            made = session.execute(select(Attempt.role, Attempt.outcome).order_by(Attempt.id)).all()
        assert [tuple(each) for each in made] == [
            (CallRole.ERASE, AttemptOutcome.SUCCESS),
            (CallRole.VERIFY, AttemptOutcome.SUCCESS),
        ]

    def test_that_fails_is_an_attempt_with_its_status_and_wait(self, house: House) -> None:
        house.vendor("crm", CheckingVendor(absent=lambda _: TOO_MANY))
        house.request(("crm", "1"))
        house.drain()
        (look,) = looks(house)
        assert (look.outcome, look.status_code, look.retry_after_s) == (AttemptOutcome.FAILURE, 429, 120)

    def test_is_not_made_against_an_open_breaker(self, block: Block, noon: ManualClock) -> None:
        """Others' failures open the breaker while the erasure is under way."""

        looked = list[str]()

        class OpensMeanwhile(CheckingVendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                others = block.breakers.admit("crm", most=5)
                block.breakers.settle(others, [Outcome(OutcomeKind.FAILURE, 503)] * 5)
                return await super().erase_subject(ref, key=key)

            async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
                looked.append(ref.value)
                return True

        block.vendor("crm", OpensMeanwhile())
        block.request(("crm", "1"))
        block.run()
        assert looked == []
        assert [each.verification for each in block.entries()] == [Verification.DUE]


class TestALaterReadBack:
    def test_is_an_attempt_of_its_own(self, house: House, noon: ManualClock) -> None:
        vendor = house.vendor("crm", CheckingVendor(absent=lambda _: ConnectionError()))
        house.request(("crm", "1"))
        house.drain()
        vendor.absent = lambda _: True
        noon.advance(timedelta(seconds=30))
        house.drain()
        assert [each.outcome for each in looks(house)] == [AttemptOutcome.FAILURE, AttemptOutcome.SUCCESS]

    def test_that_answers_nonsense_is_given_to_a_person(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", CheckingVendor(absent=lambda _: "gone"))  # type: ignore[arg-type, return-value]
        house.request(("crm", "1"))
        house.drain()
        noon.advance(timedelta(seconds=30))
        house.drain()
        assert [letter.error_code for letter in house.letters()] == ["unverifiable"]


@pytest.mark.parametrize("said", ["still there", {"absent": False}, 1, None])
def test_only_true_is_taken_for_absent(house: House, said: object) -> None:
    house.vendor("crm", CheckingVendor(absent=lambda _: said))  # type: ignore[arg-type, return-value]
    house.request(("crm", "1"))
    house.drain()
    entry = house.entry()
    assert entry.status is OutboxStatus.SUCCEEDED
    assert entry.verification is not Verification.CONFIRMED
    assert entry.ref_sealed is not None
    assert "ERASURE_EXTERNAL_VERIFIED" not in house.types()
