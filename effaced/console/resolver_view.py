"""A system with everything known about it: what waits, its breakers, how its last day went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy.orm import Session

from effaced.breakers.model import host_name, resolver_name
from effaced.console.breaker_view import BreakerView, Rows, breaker_views, breakers_of, load_breakers
from effaced.console.charts import Spark, spark
from effaced.console.current import runtime
from effaced.console.health import Health, read_health, window
from effaced.requests.systems import System, systems


@dataclass(frozen=True, slots=True)
class SystemView:
    """`breaker` is None where nothing is called: by hand, not configured, or the store does not answer."""

    system: System
    breaker: BreakerView | None = None
    host: BreakerView | None = None
    health: Health | None = None
    spark: Spark | None = None

    @property
    def name(self) -> str:
        return self.system.name

    @property
    def worst(self) -> BreakerView | None:
        """The breaker that speaks for the system: its own, unless only its host's is not closed."""
        if self.host and self.host.circuit.value != "closed" and self.breaker:
            return self.breaker if self.breaker.circuit.value != "closed" else self.host
        return self.breaker


@dataclass(frozen=True, slots=True)
class Overview:
    """All systems. `rows` is None if the breakers' store does not answer."""

    views: tuple[SystemView, ...]
    rows: Rows | None

    @property
    def counting(self) -> bool:
        """Whether a countdown runs anywhere."""
        return any(each.worst and each.worst.until for each in self.views)

    @property
    def version(self) -> str:
        """Changes with what a poll would bring; a countdown is left out."""
        told = [
            (each.name, each.worst and (each.worst.name, each.worst.circuit.value)) for each in self.views
        ]
        return sha256(repr(told).encode()).hexdigest()[:16]


def all_systems(session: Session) -> Overview:
    """Every system, from the same few statements however many there are."""
    found, rows = systems(session, runtime().registry, runtime().keyring), load_breakers()
    return Overview(tuple(_views(session, found, rows)), rows)


def one_system(session: Session, name: str) -> SystemView | None:
    found = [each for each in systems(session, runtime().registry, runtime().keyring) if each.name == name]
    return next(iter(_views(session, found, load_breakers())), None)


def _views(session: Session, found: Sequence[System], rows: Rows | None) -> list[SystemView]:
    called = {
        each.name: breakers_of(each.registered) for each in found if each.registered and not each.by_hand
    }
    health = read_health(session, called, rows or {}) if called else {}
    names = {name for each in called.values() for name in each}
    breakers = breaker_views(session, rows, names) if rows is not None else {}
    shown = window()
    return [
        SystemView(
            each,
            breakers.get(resolver_name(each.name)),
            breakers.get(host_name(each.registered.host))
            if each.registered and each.registered.host
            else None,
            health.get(each.name),
            spark(health[each.name], shown) if each.name in health else None,
        )
        for each in found
    ]
