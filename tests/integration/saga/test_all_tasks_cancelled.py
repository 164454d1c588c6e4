"""A resolver, or the application, that cancels every task of the event loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from uuid import UUID

import pytest
from saga_cast import House, Vendor

from effaced.core.clock import ManualClock
from effaced.model import OutboxStatus, SubjectRef, Verification
from effaced.resolvers.protocols import Answer, Erased
from effaced.testing import VerifyingRecordingResolver as CheckingVendor

ENTRIES = 12


def cancel_all() -> None:
    for task in asyncio.all_tasks():
        task.cancel()


class Sweeping(CheckingVendor):
    """Cancels every task of its loop in one place, once or whenever it gets there."""

    where = ""

    def pass_by(self, place: str) -> None:
        if place == self.where:
            cancel_all()

    async def __aenter__(self) -> Sweeping:
        self.pass_by("open")
        return self

    async def __aexit__(self, *error: object) -> None:
        self.pass_by("close")

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        self.pass_by("erase")
        if self.where == "child":
            await asyncio.gather(asyncio.create_task(self.sweep()), return_exceptions=True)
        if self.where == "thread":
            loop = asyncio.get_running_loop()
            await asyncio.to_thread(lambda: loop.call_soon_threadsafe(cancel_all))
            await asyncio.sleep(0.01)
        return await super().erase_subject(ref, key=key)

    async def sweep(self) -> None:
        cancel_all()

    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        self.pass_by("verify")
        return await super().verify_absent(ref, key=key)


class Neighbour(Vendor):
    """Is always in the middle of a call."""

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        await asyncio.sleep(0.02)
        return await super().erase_subject(ref, key=key)


def statuses(house: House, resolver: str) -> Counter[OutboxStatus]:
    return Counter(each.status for each in house.entries() if each.resolver == resolver)


@pytest.mark.parametrize("where", ["open", "close", "erase", "verify", "child", "thread"])
def test_by_a_resolver_the_others_do_not_notice(house: House, where: str) -> None:
    sweeping = house.vendor("sweeping", Sweeping(), concurrency=3)
    sweeping.where = where
    neighbours = [house.vendor(name, Neighbour(), concurrency=2) for name in ("one", "two")]
    for number in range(ENTRIES):
        house.request(("sweeping", f"s{number}"), ("one", f"a{number}"), ("two", f"b{number}"))

    async def run() -> int:
        settled = await house.runner().run_once()
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]
        return settled

    assert asyncio.run(run()) >= 2 * ENTRIES
    for name, neighbour in zip(("one", "two"), neighbours, strict=True):
        assert statuses(house, name) == {OutboxStatus.SUCCEEDED: ENTRIES}
        assert len(neighbour.calls) == ENTRIES
    assert OutboxStatus.IN_FLIGHT not in statuses(house, "sweeping")


@pytest.mark.parametrize("where", ["erase", "verify"])
def test_in_a_later_read_back_the_others_do_not_notice(house: House, noon: ManualClock, where: str) -> None:
    sweeping = house.vendor("sweeping", Sweeping(absent=lambda _: ConnectionError()))
    house.request(("sweeping", "s"))
    house.drain("sweeping")
    sweeping.where, sweeping.absent = where, lambda _: True
    house.vendor("one", Neighbour(), concurrency=1)
    for number in range(ENTRIES):
        house.request(("one", f"a{number}"))
    noon.advance(timedelta(minutes=1))
    asyncio.run(house.runner().run_once())
    assert statuses(house, "one") == {OutboxStatus.SUCCEEDED: ENTRIES}
    (entry,) = (each for each in house.entries() if each.resolver == "sweeping")
    assert entry.verification in (Verification.CONFIRMED, Verification.DUE)
    assert not entry.verifying


def test_a_drain_goes_on_with_the_other_calls(house: House) -> None:
    house.vendor("sweeping", Sweeping(), concurrency=3).where = "erase"
    for number in range(ENTRIES):
        house.request(("sweeping", f"s{number}"))
    assert house.drain("sweeping") == ENTRIES
    assert statuses(house, "sweeping") == {OutboxStatus.SUCCEEDED: ENTRIES}


def test_by_the_application_ends_the_run_and_leaves_nothing_to_its_lease(house: House) -> None:
    begun = 0

    class Slow(Vendor):
        async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
            nonlocal begun
            begun += 1
            await asyncio.sleep(0.05)
            return Erased()

    house.vendor("one", Slow(), concurrency=2)
    house.vendor("two", Slow(), concurrency=2)
    for number in range(ENTRIES):
        house.request(("one", f"a{number}"), ("two", f"b{number}"))

    async def main() -> None:
        running = asyncio.create_task(house.runner().run_once())
        while begun < ENTRIES:
            await asyncio.sleep(0)
        cancel_all()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert OutboxStatus.IN_FLIGHT not in statuses(house, "one") + statuses(house, "two")
