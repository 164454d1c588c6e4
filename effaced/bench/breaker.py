"""What a breaker costs a call that goes well: asked whether it may be made, told that it was."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib import import_module, metadata
from typing import Any

from redis import Redis

from effaced.bench.ground import Progress, prepare
from effaced.bench.report import Report, ratio
from effaced.breakers.open_store import layered_store
from effaced.breakers.registry import BreakerRegistry
from effaced.breakers.stores.base import BreakerStore
from effaced.breakers.stores.memory import MemoryBreakerStore
from effaced.breakers.stores.redis import RedisBreakerStore
from effaced.breakers.stores.sql import SqlBreakerStore
from effaced.core import clock
from effaced.core.db import Database
from effaced.core.errors import ConfigurationError
from effaced.core.servers import valkey_server

RESOLVER = "crm"
# A store that is asked over a wire does so much less in the same time.
_WIRE = 200
_MISSING = (
    'pybreaker is not installed: pip install "effaced-platform[bench]", or pip install pybreaker==1.4.1.'
)
Turn = Callable[[int], None]


def bench_breaker(*, calls: int, rounds: int, url: str | None, progress: Progress) -> Report:
    """Memory by turns with pybreaker, and Redis behind this process's memory by turns with Redis alone."""
    pybreaker = _pybreaker()
    with ExitStack() as stack:
        ground = stack.enter_context(prepare(url, progress))
        progress("starting a Valkey")
        connection = stack.enter_context(Redis.from_url(stack.enter_context(valkey_server())))
        sides = {
            "pybreaker": (_pybreaker_turn(pybreaker), calls),
            **{
                name: (
                    _effaced_turn(store),
                    calls if name in ("memory", "layered") else max(1, calls // _WIRE),
                )
                for name, store in _stores(connection, ground.database).items()
            },
        }
        progress(f"{calls:,} calls on each side, {max(1, calls // _WIRE):,} where each goes over a wire")
        rates = _by_turns(sides, rounds)
    return _report(calls, rates, version=metadata.version("pybreaker"))


def _pybreaker() -> Any:
    try:
        return import_module("pybreaker")
    except ModuleNotFoundError:
        raise ConfigurationError(_MISSING) from None


def _stores(connection: Redis, database: Database) -> dict[str, BreakerStore]:
    return {
        "memory": MemoryBreakerStore(),
        "layered": layered_store(connection, database),
        "redis": RedisBreakerStore(connection),
        "sql": SqlBreakerStore(database),
    }


def _nothing() -> None:
    """The call itself."""


def _pybreaker_turn(pybreaker: Any) -> Turn:
    breaker = pybreaker.CircuitBreaker(fail_max=5, reset_timeout=60)

    def turn(calls: int) -> None:
        call = breaker.call
        for _ in range(calls):
            call(_nothing)

    return turn


def _effaced_turn(store: BreakerStore) -> Turn:
    """Calls guarded by effaced's breaker one at a time; a drain asks and reports once per batch."""
    registry = BreakerRegistry(store)

    def turn(calls: int) -> None:
        allow, on_success = registry.allow, registry.on_success
        for _ in range(calls):
            permit = allow(resolver=RESOLVER)
            _nothing()
            on_success(permit)

    return turn


def _by_turns(sides: Mapping[str, tuple[Turn, int]], rounds: int) -> dict[str, float]:
    """Calls per second, the median of the rounds. The first round is not counted: it warms up."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, (turn, calls) in sides.items():
            started = clock.monotonic()
            turn(calls)
            if number:
                rates[name].append(calls / (clock.monotonic() - started))
    return {name: round(statistics.median(each), 1) for name, each in rates.items()}


def _report(calls: int, rates: dict[str, float], *, version: str) -> Report:
    layered = ratio(rates["layered"], rates["redis"])
    lines = [
        f"breaker: memory {rates['memory']:,.0f} calls/s; pybreaker {version} {rates['pybreaker']:,.0f}"
        f" calls/s; ratio {ratio(rates['memory'], rates['pybreaker']):.2f}",
        f"breaker: memory before Redis {rates['layered']:,.0f} calls/s; Redis alone {rates['redis']:,.0f}"
        f" calls/s; ratio {layered:.1f}",
        f"breaker: SQL {rates['sql']:,.0f} calls/s, asked twice for each; a drain asks and tells per batch",
    ]
    more = {
        "pybreaker": version,
        "layered": {"value": rates["layered"], "floor": rates["redis"], "ratio": layered},
        "sql": {"value": rates["sql"]},
    }
    return Report("breaker", calls, rates["memory"], "calls/s", rates["pybreaker"], lines, more)
