"""P2: cooldowns on every store: a moment on the calendar, used on the steady clock."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import pytest
from breaker_cast import API, NOON, Heard, Where, registry, seconds

from effaced.breakers.cooldowns import CooldownStore
from effaced.breakers.model import BreakerState
from effaced.breakers.stores.base import BreakerStore
from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.errors import Refused

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


@pytest.mark.parametrize("wait", [100_000, inf])
def test_it_is_capped_and_told_like_one_that_a_vendor_asks_for(store: BreakerStore, wait: float) -> None:
    heard = Heard()
    calls = registry(store, heard, retry_after_cap_s=600)
    calls.cooldowns.set_until("resolver:crm", clock.monotonic() + wait, "vendor_asked")
    calls.on_failure(calls.allow(resolver="mail"), status=503, retry_after_s=wait)
    ours, engines = heard.transitions
    assert replace(ours, service_name=engines.service_name) == engines
    assert (ours.reason, ours.retry_at) == ("retry_after", NOON + seconds(600))
    (row,) = store.load(["resolver:crm"]).values()
    assert (row.cooldown_until, row.cooldown_reason) == (NOON + seconds(600), "vendor_asked")


def test_a_shorter_one_does_not_replace_it(cooldowns: CooldownStore) -> None:
    until = clock.monotonic() + 90
    cooldowns.set_until(HOST, until, "retry_after")
    cooldowns.set_until(HOST, clock.monotonic() + 10, "retry_after")
    assert cooldowns.get_until(HOST) == pytest.approx(until, abs=2)


def test_without_a_policy_it_lasts_900_seconds_at_most(cooldowns: CooldownStore, store: BreakerStore) -> None:
    cooldowns.set_until(HOST, clock.monotonic() + 100_000, "retry_after")
    (row,) = store.load([API]).values()
    assert row.cooldown_until == NOON + seconds(900)


def test_ending_it_early_is_told_once_and_leaves_an_open_breaker_open(store: BreakerStore) -> None:
    heard = Heard()
    calls = registry(store, heard, fail_max=1)
    calls.on_failure(calls.allow(resolver="crm"), status=503, retry_after_s=300)
    for _ in range(2):
        calls.cooldowns.clear("resolver:crm")
    assert [each.reason for each in heard.transitions] == ["consecutive_failures", "cooldown_ended"]
    assert heard.transitions[-1].retry_at == calls.retry_at("crm") == NOON + seconds(60)
    assert calls.current_state(resolver="crm") is BreakerState.OPEN


def test_what_is_no_cooldown_is_refused(cooldowns: CooldownStore, store: BreakerStore) -> None:
    for name in ("bad\nname", "", "resolver:"):
        for ask in (cooldowns.get_until, cooldowns.clear, lambda each: cooldowns.set_until(each, 1, "x")):
            with pytest.raises(Refused, match="must be resolver:NAME or host:NAME"):
                ask(name)
    with pytest.raises(Refused, match="until_monotonic must be a number"):
        cooldowns.set_until(HOST, nan, "retry_after")
    with pytest.raises(TypeError, match="host must be a str"):
        cooldowns.get_until(5)  # type: ignore[arg-type]
    assert store.load_all() == []


def test_pruning_counts_what_was_over(
    cooldowns: CooldownStore, store: BreakerStore, now: ManualClock
) -> None:
    for host, wait in (("a.example", 10), ("b.example", 20), ("c.example", 300)):
        cooldowns.set_until(host, clock.monotonic() + wait, "retry_after")
    now.advance(seconds(60))
    assert [cooldowns.prune_expired(), cooldowns.prune_expired()] == [2, 0]
    left = [row.service_name for row in store.load_all() if row.cooldown_until]
    assert left == ["host:c.example"]
