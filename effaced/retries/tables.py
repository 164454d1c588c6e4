"""Attempts at external calls, their hourly aggregates, and policies changed at run time."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast
from uuid import UUID

from sqlalchemy import BigInteger, Index, Integer, String, Table, false
from sqlalchemy.orm import Mapped, mapped_column

from effaced.core.db import Base, Json, UtcDateTime, Word
from effaced.model import AttemptOutcome, CallRole, OutboxOperation, PolicyKind, PolicyScope


class Attempt(Base):
    """The result of one attempt. The error is a class name, never a message.

    `delay_before_ms` is how long the entry had stood: since its previous attempt ended or, with the `first`
    one, since it could be called. `trial` says that a half-open breaker let it through. `role` is `verify`
    for a read-back; null, as in old rows, means the entry's operation.
    """

    __tablename__ = "effaced_attempts"
    __table_args__ = (
        Index("ix_effaced_attempts_entry", "entry_id", "id"),
        Index("ix_effaced_attempts_request", "request_id", "id"),
        Index("ix_effaced_attempts_resolver", "resolver", "at"),
    )

    id: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    entry_id: Mapped[UUID]
    request_id: Mapped[UUID]
    number: Mapped[int]
    resolver: Mapped[str] = mapped_column(String(255))
    operation: Mapped[OutboxOperation] = mapped_column(Word(OutboxOperation))
    role: Mapped[CallRole | None] = mapped_column(Word(CallRole))
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    outcome: Mapped[AttemptOutcome] = mapped_column(Word(AttemptOutcome))
    status_code: Mapped[int | None]
    latency_ms: Mapped[int]
    error: Mapped[str | None] = mapped_column(String(255))
    first: Mapped[bool] = mapped_column(default=False, server_default=false())
    delay_before_ms: Mapped[int | None] = mapped_column(BigInteger)
    retry_after_s: Mapped[int | None]
    trial: Mapped[bool] = mapped_column(default=False, server_default=false())


class AttemptHour(Base):
    """The figures of attempts that began within one hour, by resolver; `*` is all of them together.

    Sums and counts only, so that hours add up: averages are made when somebody looks. The row of the year
    1970 holds what all the hours came to that are no longer kept one by one.
    """

    __tablename__ = "effaced_attempt_hours"

    hour: Mapped[datetime] = mapped_column(UtcDateTime, primary_key=True)
    resolver: Mapped[str] = mapped_column(String(255), primary_key=True)
    computed_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_id: Mapped[int] = mapped_column(BigInteger)
    attempts: Mapped[int] = mapped_column(BigInteger)
    entries: Mapped[int] = mapped_column(BigInteger)
    requests: Mapped[int] = mapped_column(BigInteger)
    retries: Mapped[int] = mapped_column(BigInteger)
    outcomes: Mapped[dict[str, int]] = mapped_column(Json)
    success_by_attempt: Mapped[dict[str, int]] = mapped_column(Json)
    failure_by_reason: Mapped[dict[str, int]] = mapped_column(Json)
    latency_count: Mapped[int] = mapped_column(BigInteger)
    latency_ms_sum: Mapped[int] = mapped_column(BigInteger)
    latency_buckets: Mapped[list[int]] = mapped_column(Json)
    wait_count: Mapped[int] = mapped_column(BigInteger)
    wait_ms_sum: Mapped[int] = mapped_column(BigInteger)
    wait_buckets: Mapped[list[int]] = mapped_column(Json)


class PolicyOverride(Base):
    """What somebody has changed at run time: only the fields that differ, and what they were before that."""

    __tablename__ = "effaced_policies"

    kind: Mapped[PolicyKind] = mapped_column(Word(PolicyKind), primary_key=True)
    scope: Mapped[PolicyScope] = mapped_column(Word(PolicyScope), primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    body: Mapped[dict[str, Any]] = mapped_column(Json)
    previous: Mapped[dict[str, Any] | None] = mapped_column(Json)
    version: Mapped[int]
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime)
    changed_by: Mapped[str] = mapped_column(String(80))
    note_id: Mapped[UUID | None]


attempts = cast(Table, Attempt.__table__)
attempt_hours = cast(Table, AttemptHour.__table__)
policies = cast(Table, PolicyOverride.__table__)
