"""Opens the breaker store that the settings name."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from effaced.audit.append import Record
from effaced.breakers import transitions
from effaced.breakers.layered.drift import DriftReconciler
from effaced.breakers.layered.outage_log import OutageLog
from effaced.breakers.layered.reconcile import TransitionLog
from effaced.breakers.layered.shadow import ShadowLogger, get_shadow_logger
from effaced.breakers.layered.store import LayeredBreakerStore
from effaced.breakers.model import CircuitBreakerStateData, Transition
from effaced.breakers.stores.base import BreakerStore
from effaced.breakers.stores.redis import RedisBreakerStore
from effaced.breakers.stores.sql import SqlBreakerStore
from effaced.core.db import Database, dbtime
from effaced.core.errors import ConfigurationError

_SECONDS = 2.0


def open_store(kind: str, database: Database, redis_url: str | None = None) -> BreakerStore:
    """`sql`, or `redis` with this process's memory in front of it. Call it after a fork, not before."""
    if kind == "sql":
        return SqlBreakerStore(database)
    if kind != "redis":
        raise ConfigurationError("EFFACED_BREAKER_STORE must be sql or redis.")
    if redis_url is None:
        message = (
            "EFFACED_BREAKER_STORE is redis, so EFFACED_REDIS_URL or EFFACED_BREAKER_REDIS_URL must be set."
        )
        raise ConfigurationError(message)
    return layered_store(connect(redis_url), database)


def connect(redis_url: str, *, answer_within: float = _SECONDS) -> Redis:
    """A connection that fails fast: while it waits, calls wait with it."""
    return Redis.from_url(
        redis_url,
        socket_timeout=answer_within,
        socket_connect_timeout=answer_within,
        retry=Retry(NoBackoff(), 0),
    )


def layered_store(
    connection: Redis,
    database: Database,
    *,
    shadow: ShadowLogger | None = None,
    reconciler: DriftReconciler | None = None,
    refresh_ms: float = 250,
    retry_s: float = 1.0,
) -> LayeredBreakerStore:
    """Memory in front of Redis. The database has the log of transitions, for when both are empty."""

    def read_log(names: Collection[str] | None) -> dict[str, CircuitBreakerStateData]:
        with database.read() as session:
            return transitions.last_known(session, names)

    def write_log(made: Sequence[Transition], records: Sequence[Record]) -> None:
        with database.begin() as session:
            transitions.write(session, made, records)

    outages = OutageLog(database)
    return LayeredBreakerStore(
        # By the database's clock, like the times of the entries that wait for a breaker.
        RedisBreakerStore(connection, now=lambda: dbtime.now_for(database.sessions)),
        log=TransitionLog(read_log, write_log),
        shadow=(shadow or get_shadow_logger()).connect(outages),
        reconciler=reconciler,
        outages=outages,
        refresh_ms=refresh_ms,
        retry_s=retry_s,
    )
