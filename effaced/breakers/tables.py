"""Breakers, their transitions, and what happened while a shared store was away."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from sqlalchemy import BigInteger, Double, Index, Integer, String, Table, text
from sqlalchemy.orm import Mapped, mapped_column

from effaced.breakers.model import BreakerState
from effaced.core.db import Base, Json, UtcDateTime, Word

_UNSYNCED = text("synced_at IS NULL")


class Breaker(Base):
    """One `CircuitBreakerStateData`. `slots`: number, role and start of each trial."""

    __tablename__ = "effaced_breakers"

    service_name: Mapped[str] = mapped_column(String(255), primary_key=True)
    state: Mapped[BreakerState] = mapped_column(Word(BreakerState))
    failure_count: Mapped[int]
    success_count: Mapped[int]
    opened_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_failure_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    retry_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    reset_timeout_s: Mapped[float | None] = mapped_column(Double)
    slots: Mapped[list[Any]] = mapped_column(Json)
    slots_given: Mapped[int]
    recent_failures: Mapped[list[Any]] = mapped_column(Json)
    reason: Mapped[str | None] = mapped_column(String(64))
    generation: Mapped[int]
    version: Mapped[int] = mapped_column(BigInteger)
    pinned: Mapped[BreakerState | None] = mapped_column(Word(BreakerState))
    controlled_by: Mapped[str | None] = mapped_column(String(80))
    control_reason: Mapped[str | None] = mapped_column(String(64))
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    cooldown_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    cooldown_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    cooldown_reason: Mapped[str | None] = mapped_column(String(64))
    updated_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class BreakerTransition(Base):
    """One `Transition`."""

    __tablename__ = "effaced_breaker_transitions"
    __table_args__ = (
        Index("ix_effaced_breaker_transitions_service", "service_name", "at", "id"),
        Index("ix_effaced_breaker_transitions_at", "at"),
    )

    id: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    service_name: Mapped[str] = mapped_column(String(255))
    old: Mapped[BreakerState] = mapped_column(Word(BreakerState))
    new: Mapped[BreakerState] = mapped_column(Word(BreakerState))
    reason: Mapped[str] = mapped_column(String(64))
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    reset_timeout_s: Mapped[float | None] = mapped_column(Double)
    retry_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    pinned_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    actor: Mapped[str] = mapped_column(String(80))
    generation: Mapped[int]
    control_reason: Mapped[str | None] = mapped_column(String(64))


class BreakerShadow(Base):
    """A change that a shared store did not take. The error is a class name."""

    __tablename__ = "effaced_breaker_shadow"
    __table_args__ = (
        Index(
            "ix_effaced_breaker_shadow_unsynced",
            "service_name",
            "id",
            postgresql_where=_UNSYNCED,
            sqlite_where=_UNSYNCED,
        ),
    )

    id: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    service_name: Mapped[str] = mapped_column(String(255))
    intended_state: Mapped[str] = mapped_column(String(32))
    l1_state: Mapped[str] = mapped_column(String(32))
    failed_at: Mapped[datetime] = mapped_column(UtcDateTime)
    error: Mapped[str] = mapped_column(String(255))
    adapter: Mapped[str] = mapped_column(String(32))
    operation: Mapped[str] = mapped_column(String(32))
    synced_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class BreakerDrift(Base):
    """How a difference between a process's memory (L1) and the shared store (L2) was resolved."""

    __tablename__ = "effaced_breaker_drift"
    __table_args__ = (Index("ix_effaced_breaker_drift_at", "reconciled_at"),)

    id: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    service_name: Mapped[str] = mapped_column(String(255))
    l1_state: Mapped[str] = mapped_column(String(32))
    l2_state: Mapped[str] = mapped_column(String(32))
    l1_updated_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    l2_updated_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    winner: Mapped[str] = mapped_column(String(8))
    result: Mapped[str] = mapped_column(String(16))
    reconciled_at: Mapped[datetime] = mapped_column(UtcDateTime)
    jitter_seconds: Mapped[float] = mapped_column(Double)


breakers = cast(Table, Breaker.__table__)
transitions = cast(Table, BreakerTransition.__table__)
shadow = cast(Table, BreakerShadow.__table__)
drift = cast(Table, BreakerDrift.__table__)
