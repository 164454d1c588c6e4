"""P2: cooldowns on every store: a moment on the calendar, used on the steady clock."""

from __future__ import annotations

import pytest
from breaker_cast import API, NOON, Where, registry, seconds

from effaced.breakers.cooldowns import CooldownStore
from effaced.breakers.stores.base import BreakerStore
from effaced.core import clock
from effaced.core.clock import ManualClock

pytestmark = pytest.mark.usefixtures("now")
HOST = "API.example"


@pytest.fixture
def cooldowns(store: BreakerStore) -> CooldownStore:
    return CooldownStore(store)


def test_what_is_set_on_the_steady_clock_is_read_on_it(cooldowns: CooldownStore) -> None:
    until = clock.monotonic() + 90
    cooldowns.set_until(HOST, until, "retry_after")
    assert cooldowns.get_until(HOST) == pytest.approx(until, abs=2)


def test_it_is_stored_as_a_moment_on_the_calendar(cooldowns: CooldownStore, store: BreakerStore) -> None:
    cooldowns.set_until(HOST, clock.monotonic() + 90, "retry_after")
    (row,) = store.load([API]).values()
    assert row.cooldown_until is not None
    assert abs(row.cooldown_until - NOON - seconds(90)) < seconds(2)
    assert row.cooldown_reason == "retry_after"


def test_it_is_seen_by_other_processes(cooldowns: CooldownStore, where: Where) -> None:
    if where.kind == "memory":
        return  # is one process's own
    cooldowns.set_until(HOST, clock.monotonic() + 90, "retry_after")
    with where.opened() as elsewhere:
        assert CooldownStore(elsewhere).get_until(HOST) is not None


def test_it_keeps_calls_away(cooldowns: CooldownStore, store: BreakerStore) -> None:
    cooldowns.set_until("resolver:crm", clock.monotonic() + 90, "retry_after")
    assert registry(store).admit("crm").reason == "cooldown"


def test_over_or_cleared_it_is_none(cooldowns: CooldownStore, now: ManualClock) -> None:
    assert cooldowns.get_until(HOST) is None
    cooldowns.set_until(HOST, clock.monotonic() + 90, "retry_after")
    cooldowns.clear(HOST)
    assert cooldowns.get_until(HOST) is None
    cooldowns.set_until(HOST, clock.monotonic() + 90, "retry_after")
    now.advance(seconds(91))
    assert cooldowns.get_until(HOST) is None


def test_pruning_counts_what_was_over(
    cooldowns: CooldownStore, store: BreakerStore, now: ManualClock
) -> None:
    for host, wait in (("a.example", 10), ("b.example", 20), ("c.example", 300)):
        cooldowns.set_until(host, clock.monotonic() + wait, "retry_after")
    now.advance(seconds(60))
    assert [cooldowns.prune_expired(), cooldowns.prune_expired()] == [2, 0]
    left = [row.service_name for row in store.load_all() if row.cooldown_until]
    assert left == ["host:c.example"]
