"""Whatever one resolver does, the others' work is done, nothing false is verified, and the runner lives."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from datetime import timedelta

import pytest
from saga_breakers import Block
from saga_cast import CheckingVendor, Vendor
from wild_resolver import WildResolver

from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.model import OutboxStatus, Verification
from effaced.outbox.tables import flow

BATCH = 50


def run(block: Block) -> None:
    """`run_once` as a host would call it: what is meant for the process is raised, and it goes on."""
    with suppress(SystemExit, KeyboardInterrupt):
        asyncio.run(block.runner().run_once())


def drive(db: Database, noon: ManualClock, seed: int) -> int:
    """Fifty entries of a resolver that does anything beside as many of two that behave; all its calls."""
    block, chance = Block(db), random.Random(seed)
    wild = block.vendor("wild", WildResolver(chance), timeout=timedelta(milliseconds=20), concurrency=25)
    first, second = block.vendor("first", Vendor()), block.vendor("second", CheckingVendor())
    for number in range(BATCH):
        ref = f"{seed}-{number}"
        block.request(("wild", ref), ("first", ref), ("second", ref))
    for _ in range(8):
        run(block)
        noon.advance(timedelta(hours=1))
        resume(db)
    calls = len(block.attempts())
    entries = block.entries()
    healthy = [each for each in entries if each.resolver != "wild"]
    assert {(each.status, each.attempts) for each in healthy} == {(OutboxStatus.SUCCEEDED, 1)}, seed
    assert len(first.calls) == len(second.calls) == BATCH
    assert OutboxStatus.IN_FLIGHT not in {each.status for each in entries}, seed
    verified = [each for each in entries if each.verification is Verification.CONFIRMED]
    assert sum(each.resolver == "wild" for each in verified) <= len(wild.absent), seed
    assert len(block.events("ERASURE_EXTERNAL_VERIFIED")) == len(verified), seed
    # The runner lives: once the resolver behaves, whatever was still open is done.
    block.vendor("wild", Vendor())
    for _ in range(3):
        noon.advance(timedelta(days=1))
        run(block)
    left = {each.status for each in block.entries()}
    assert left <= {OutboxStatus.SUCCEEDED, OutboxStatus.ABANDONED, OutboxStatus.SCHEDULED}, seed
    return calls


def resume(db: Database) -> None:
    """Somebody lets it be called again, if its credentials were refused."""
    with db.begin() as session:
        session.execute(flow.delete())


@pytest.mark.parametrize("seed", range(3))
def test_any_behaviour_of_one_resolver(db: Database, noon: ManualClock, seed: int) -> None:
    """At least 100 random answers and exceptions each, on either database."""
    assert drive(db, noon, seed) > 100


@pytest.mark.drill
@pytest.mark.parametrize("seed", range(100, 140))
def test_any_behaviour_of_one_resolver_ten_thousand_times(db: Database, noon: ManualClock, seed: int) -> None:
    assert drive(db, noon, seed) > 100
