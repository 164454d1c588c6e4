"""Trials of what a runner died with: poison converges, neighbours don't pay, nothing is done twice."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest
from saga_breakers import Block
from saga_cast import Vendor
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.model import OutboxStatus, SubjectRef
from effaced.outbox.claim import claim
from effaced.resolvers.protocols import Answer, Erased
from effaced.retries.policy import RetryPolicy
from effaced.saga.claims import Claims
from effaced.saga.gate import Gate
from effaced.saga.rules import RuleBook

CRM = "resolver:crm"
LEASE = timedelta(minutes=5)


@pytest.fixture
def house(db: Database) -> Block:
    """Three trials may be made at a time."""
    return Block(db, trial_calls=3)


def killed(house: Block, noon: ManualClock, *refs: str) -> None:
    house.request(*(("crm", ref) for ref in refs))
    with house.db.begin() as session:
        claim(session, "crm", limit=len(refs), lease=LEASE)
    noon.advance(timedelta(hours=1))


def test_what_a_runner_died_with_is_no_trial_where_twice_does_harm(house: Block, noon: ManualClock) -> None:
    vendor = house.vendor("crm", Vendor(lambda _: Erased()), idempotent=False)
    house.breakers.repository.update_state(CRM, "open", opened_at=noon() - timedelta(minutes=1))
    killed(house, noon, "1")
    house.run()
    assert vendor.calls == []
    assert [each.error_code for each in house.letters()] == ["not_idempotent"]


def test_of_those_whose_runner_died_each_flies_alone(house: Block, noon: ManualClock) -> None:
    """However many trials there may be: who dies beside another can't be told from the one to blame."""
    together = list[int]()

    class Counting(Vendor):
        async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
            flying.add(key)
            together.append(len(flying))
            await asyncio.sleep(0)
            flying.discard(key)
            return Erased()

    flying = set[UUID]()
    house.vendor("crm", Counting(), concurrency=10)
    house.breakers.repository.update_state(CRM, "open", opened_at=noon() - timedelta(minutes=1))
    killed(house, noon, "1", "2", "3")
    house.run()
    assert set(together) == {1}
    assert house.counts() == {OutboxStatus.SUCCEEDED: 3}


def test_those_who_were_on_trial_together_get_their_attempt_back(house: Block, noon: ManualClock) -> None:
    house.vendor("crm", Vendor())
    house.breakers.repository.update_state(CRM, "open", opened_at=noon() - timedelta(minutes=1))
    house.request(*(("crm", str(number)) for number in range(3)))
    gate, book = Gate(house.breakers, house.registry), RuleBook(RetryPolicy(), house.registry)
    claims = Claims(house.db.sessions, house.registry, gate, book, LEASE)
    assert len(claims.claim("crm", 10, alone=False).entries) == 3  # and their runner dies
    noon.advance(timedelta(hours=1))
    house.run()
    assert {each.number for each in house.attempts()} == {1}


def test_a_trial_that_can_not_be_claimed_gives_its_slot_back(house: Block, noon: ManualClock) -> None:
    """The database has a bad moment after the breaker has let a trial through."""
    house.vendor("crm", Vendor())
    house.request(("crm", "1"))
    house.breakers.repository.update_state(CRM, "open", opened_at=noon() - timedelta(minutes=1))
    with house.db.begin() as session:
        session.execute(text("ALTER TABLE effaced_outbox RENAME TO elsewhere"))
    with pytest.raises(DBAPIError):
        house.drain()
    with house.db.begin() as session:
        session.execute(text("ALTER TABLE elsewhere RENAME TO effaced_outbox"))
    assert house.run() == 1
