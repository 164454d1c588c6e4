"""A run whose event loop was dropped without being closed does not hold up the other runs of its process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

import pytest
from saga_cast import House, Vendor

from effaced.core.clock import ManualClock
from effaced.model import OutboxStatus, SubjectRef
from effaced.resolvers.protocols import Answer

LEASE = timedelta(minutes=5)


class Hanging(Vendor):
    """Has begun a call and never comes to its end."""

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        self.begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    begun: asyncio.Event


def crash(house: House, resolver: str, noon: ManualClock) -> None:
    """A process has claimed the resolver's entry and died."""
    house.request((resolver, "c1"))
    (claimed,) = house.outbox().claim_batch()
    assert claimed.resolver == resolver
    noon.advance(LEASE)


@contextmanager
def abandoned(house: House) -> Iterator[None]:
    """A run is in the middle of a call when its loop is no longer run."""
    vendor = house.vendor("hanging", Hanging())
    loop = asyncio.new_event_loop()

    async def begin() -> asyncio.Task[int]:
        vendor.begun = asyncio.Event()
        running = asyncio.create_task(house.runner().drain("hanging"))
        await vendor.begun.wait()
        return running

    running = loop.run_until_complete(begin())
    try:
        yield
    finally:
        running.cancel()  # somebody goes on with it after all
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(running)
        loop.close()


def status_of(house: House, resolver: str) -> OutboxStatus:
    (status,) = {each.status for each in house.entries() if each.resolver == resolver}
    return status


def test_crashed_entries_are_claimed_although_its_call_never_ended(house: House, noon: ManualClock) -> None:
    house.vendor("crm", Vendor())
    house.request(("hanging", "h1"))
    with abandoned(house):
        crash(house, "crm", noon)
        assert house.drain("crm") == 1
        assert status_of(house, "crm") is OutboxStatus.SUCCEEDED


def test_entries_are_claimed_although_it_has_the_process_for_itself(house: House, noon: ManualClock) -> None:
    house.vendor("crm", Vendor())
    crash(house, "hanging", noon)
    with abandoned(house):
        house.request(("crm", "c1"))
        assert house.drain("crm") == 1
        assert status_of(house, "crm") is OutboxStatus.SUCCEEDED
