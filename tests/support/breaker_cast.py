"""The cast of the breaker tests: every store, made the same way in a test, a thread and a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from quick_database import open_quickly
from sqlalchemy import create_engine
from sqlalchemy.orm import sessionmaker
from waiting import PATIENCE

from effaced.breakers.layered.drift import DriftReconciler
from effaced.breakers.model import BreakerState, CircuitBreakerStateData, Transition
from effaced.breakers.open_store import connect, layered_store
from effaced.breakers.outcomes import Outcome, OutcomeKind
from effaced.breakers.policy import BreakerPolicies
from effaced.breakers.registry import BreakerRegistry
from effaced.breakers.stores.base import BreakerStore
from effaced.breakers.stores.memory import MemoryBreakerStore
from effaced.breakers.stores.redis import RedisBreakerStore
from effaced.breakers.stores.sql import SqlBreakerStore

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
CRM, API = "resolver:crm", "host:api.example"
FAILURE = Outcome(OutcomeKind.FAILURE, 500)
SUCCESS = Outcome(OutcomeKind.SUCCESS, 200)
NEUTRAL = Outcome(OutcomeKind.NEUTRAL, 404)
STORES = ("memory", "sqlite", "postgresql", "redis", "layered")


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


@dataclass(frozen=True)
class Where:
    """Which store, and what another process needs to open it."""

    kind: str
    database_url: str = ""
    redis_url: str = ""

    @contextmanager
    def opened(self) -> Iterator[BreakerStore]:
        """A store with connections of its own."""
        with ExitStack() as stack:
            if self.kind == "memory":
                yield MemoryBreakerStore()
                return
            if self.kind == "embedded":
                engine = create_engine(self.database_url, pool_size=10, connect_args={"timeout": 30})
                stack.callback(engine.dispose)
                yield SqlBreakerStore(sessionmaker(engine))
                return
            database = None
            if self.database_url:
                database = open_quickly(self.database_url, pool_size=10)
                stack.callback(database.dispose)
            if self.kind in ("sqlite", "postgresql"):
                assert database is not None
                yield SqlBreakerStore(database)
                return
            # About what is decided, not about a store that is slow to answer on a loaded machine.
            redis = connect(self.redis_url, answer_within=PATIENCE)
            stack.callback(redis.close)
            if self.kind == "redis":
                yield RedisBreakerStore(redis)
                return
            assert database is not None
            yield layered_store(redis, database, refresh_ms=0, reconciler=DriftReconciler(0, 0))


class Heard:
    """Remembers every transition that it is told of."""

    def __init__(self) -> None:
        self.transitions: list[Transition] = []

    def __call__(self, transition: Transition) -> None:
        self.transitions.append(transition)

    @property
    def moves(self) -> list[tuple[str, str, str]]:
        return [(each.service_name, each.old.value, each.new.value) for each in self.transitions]


def registry(
    store: BreakerStore,
    on_transition: Callable[[Transition], None] | None = None,
    **defaults: object,
) -> BreakerRegistry:
    policies = BreakerPolicies({"defaults": defaults})
    return BreakerRegistry(store, policies, on_transition=on_transition, jitter=lambda: 1.0)


def is_open(name: str = CRM, **more: object) -> CircuitBreakerStateData:
    return CircuitBreakerStateData(name, state=BreakerState.OPEN, opened_at=NOON, version=1, **more)  # type: ignore[arg-type]
