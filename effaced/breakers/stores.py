"""The store that the settings ask for."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from effaced.audit.append import Record
from effaced.breakers import transitions
from effaced.breakers.drift import DriftReconciler
from effaced.breakers.layered import LayeredCircuitBreakerStateRepository
from effaced.breakers.model import CircuitBreakerStateData, Transition
from effaced.breakers.redis import RedisCircuitBreakerStateRepository
from effaced.breakers.repository import CircuitBreakerStateRepository
from effaced.breakers.shadow import ShadowLogger
from effaced.breakers.shadow_rows import SQLShadowKeeper
from effaced.breakers.sql import SQLCircuitBreakerStateRepository
from effaced.core import dbtime
from effaced.core.db import Database
from effaced.core.errors import ConfigurationError

_SECONDS = 2.0


def open_store(kind: str, database: Database, redis_url: str | None = None) -> CircuitBreakerStateRepository:
    """`sql`, or `redis` with this process's memory before it. Call it after a fork, not before."""
    if kind == "sql":
        return SQLCircuitBreakerStateRepository(database)
    if redis_url is None:
        said = (
            "EFFACED_BREAKER_STORE is redis, so EFFACED_REDIS_URL or EFFACED_BREAKER_REDIS_URL must be set."
        )
        raise ConfigurationError(said)
    return layered_store(connect(redis_url), database)


def connect(redis_url: str, *, answer_within: float = _SECONDS) -> Redis:
    """A connection that says soon that nobody answers: while it waits, calls wait with it."""
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
) -> LayeredCircuitBreakerStateRepository:
    """Memory before Redis; the database keeps what was told, and remembers it when both are empty."""

    def remembered(names: Collection[str] | None) -> dict[str, CircuitBreakerStateData]:
        with database.read() as session:
            return transitions.remembered(session, names)

    def keep(made: Sequence[Transition], records: Sequence[Record]) -> None:
        with database.begin() as session:
            transitions.keep(session, made, records)

    return LayeredCircuitBreakerStateRepository(
        # By the database's clock, like the gates of the entries that wait for a breaker.
        RedisCircuitBreakerStateRepository(connection, now=lambda: dbtime.now_for(database.sessions)),
        remembered=remembered,
        keep=keep,
        shadow=shadow or ShadowLogger(keeper=SQLShadowKeeper(database)),
        reconciler=reconciler,
        refresh_ms=refresh_ms,
        retry_s=retry_s,
    )
