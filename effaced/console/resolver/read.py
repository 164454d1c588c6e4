"""A system with everything known about it: what waits, its breakers, how its last day went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy.orm import Session

from effaced.breakers.model import host_name, resolver_name
from effaced.console.charts import Spark, spark
from effaced.console.current import runtime
from effaced.console.resolver.breakers import BreakerView, Rows, breaker_views, load_breakers
from effaced.outbox.flow import ALL
from effaced.triage.health import Health, read_health, window
from effaced.triage.systems import Paused, System, breakers_of, current_pauses, systems


@dataclass(frozen=True, slots=True)
class SystemView:
    """`breaker` is None where nothing is called: by hand, or not configured.

    `everything` is the pause of all systems together, if there is one. `away`: breakers are shown as last
    known, since their store does not answer.
    """

    system: System
    breaker: BreakerView | None = None
    host: BreakerView | None = None
    health: Health | None = None
    spark: Spark | None = None
    everything: Paused | None = None
    away: bool = False

    @property
    def name(self) -> str:
        return self.system.name

    @property
    def worst(self) -> BreakerView | None:
        """The breaker that speaks for the system: its own, unless only its host's is not closed."""
        if self.host and self.host.circuit.value != "closed" and self.breaker:
            return self.breaker if self.breaker.circuit.value != "closed" else self.host
        return self.breaker

    @property
    def paused(self) -> bool:
        return self.system.paused is not None or self.everything is not None

    @property
    def counting(self) -> bool:
        """Whether a countdown runs."""
        return self.worst is not None and self.worst.until is not None

    @property
    def version(self) -> str:
        """Changes with what a poll would bring; a countdown is left out."""
        known = self.system
        told = (
            self.name,
            [(each.name, each.circuit.value) for each in (self.breaker, self.host) if each],
            [each and each.since for each in (known.paused, self.everything)],
            self.away,
            (known.waiting, known.in_flight, known.parked, known.abandoned),
            known.read_back and (known.read_back.proof, known.read_back.reason),
        )
        return sha256(repr(told).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Overview:
    """All systems, and all breakers."""

    views: tuple[SystemView, ...]
    rows: Rows
    away: bool

    @property
    def counting(self) -> bool:
        """Whether a countdown runs anywhere."""
        return any(each.counting for each in self.views)

    @property
    def version(self) -> str:
        """Changes with what a poll would bring; a countdown is left out."""
        return sha256("".join(each.version for each in self.views).encode()).hexdigest()[:16]


def all_systems(session: Session) -> Overview:
    """Every system, from the same few statements however many there are."""
    found, rows = systems(session, runtime().registry, runtime().keyring), load_breakers()
    return Overview(tuple(_views(session, found, rows)), rows, runtime().breakers.store.is_away)


def one_system(session: Session, name: str) -> SystemView | None:
    found = [each for each in systems(session, runtime().registry, runtime().keyring) if each.name == name]
    return next(iter(_views(session, found, load_breakers())), None)


def _views(session: Session, found: Sequence[System], rows: Rows) -> list[SystemView]:
    called = {
        each.name: breakers_of(each.registered) for each in found if each.registered and not each.by_hand
    }
    health = read_health(session, called, rows) if called else {}
    names = {name for each in called.values() for name in each}
    breakers = breaker_views(session, rows, names)
    shown, everything = window(), current_pauses(session, runtime().keyring).get(ALL)
    return [
        SystemView(
            each,
            breakers.get(resolver_name(each.name)),
            breakers.get(host_name(each.registered.host))
            if each.registered and each.registered.host
            else None,
            health.get(each.name),
            spark(health[each.name], shown) if each.name in health else None,
            everything,
            away=runtime().breakers.store.is_away,
        )
        for each in found
    ]
