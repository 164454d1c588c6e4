"""A fleet that keeps its breakers in Redis, and processes of it: each has a memory of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from breaker_cast import FAILURE, Heard, registry
from sqlalchemy import func, select
from waiting import PATIENCE

from effaced.breakers.layered.drift import DriftReconciler, DriftReconciliationRecord
from effaced.breakers.layered.outage_log import OutageLog
from effaced.breakers.layered.shadow import ShadowLogger
from effaced.breakers.layered.store import LayeredBreakerStore
from effaced.breakers.model import BreakerState
from effaced.breakers.open_store import connect, layered_store
from effaced.breakers.stores.redis import RedisBreakerStore
from effaced.breakers.tables import shadow as shadow_table
from effaced.core.db import Database
from effaced.core.servers import Valkey

OnReconciled = Callable[[DriftReconciliationRecord], None]


class Fleet:
    """Processes of one fleet: each has memory, shadow log and connections of its own."""

    def __init__(self, database: Database, redis: Valkey) -> None:
        self.db, self.redis = database, redis

    def process(
        self, jitter: float = 0.0, on_reconciled: OnReconciled | None = None, **settings: float
    ) -> Process:
        reconciler = DriftReconciler(jitter, jitter, on_reconciled)
        return Process(self, reconciler, **{"refresh_ms": 0, "retry_s": 0, **settings})

    def shared(self) -> dict[str, str]:
        shared = connect(self.redis.url, answer_within=PATIENCE)
        rows = RedisBreakerStore(shared).load_all()
        return {row.service_name: row.state.value for row in rows}

    @contextmanager
    def away(self) -> Iterator[None]:
        """Redis is stopped and comes back as it was, as one that keeps its data on disk."""
        with closing(connect(self.redis.url)) as client:
            kept = {key: client.get(key) for key in client.scan_iter()}
        self.redis.stop()
        yield
        self.redis.start()
        if kept:
            with closing(connect(self.redis.url)) as client:
                client.mset(kept)

    def unsynced(self) -> int:
        with self.db.read() as session:
            rows = select(func.count()).select_from(shadow_table).where(shadow_table.c.synced_at.is_(None))
            return session.scalar(rows) or 0


class Process:
    def __init__(self, fleet: Fleet, reconciler: DriftReconciler, **settings: float) -> None:
        self.shadow = ShadowLogger(outages=OutageLog(fleet.db))
        self.reconciler = reconciler
        self.heard = Heard()
        self.store: LayeredBreakerStore = layered_store(
            connect(fleet.redis.url, answer_within=PATIENCE),
            fleet.db,
            shadow=self.shadow,
            reconciler=self.reconciler,
            **settings,
        )
        self.calls = registry(self.store, self.heard, fail_max=2)

    def fail(self, resolver: str = "crm", times: int = 2) -> None:
        self.calls.settle(self.calls.admit(resolver, most=times), [FAILURE] * times)

    def state(self, resolver: str = "crm") -> BreakerState:
        return self.calls.current_state(resolver=resolver)
