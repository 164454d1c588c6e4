"""Who may sign in, and which systems may call."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from effaced.core.db import Base, Json, UtcDateTime, Word
from effaced.model import Role


class Officer(Base):
    """A person who works in the console."""

    __tablename__ = "effaced_officers"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(String(254), unique=True)
    name: Mapped[str] = mapped_column(String(120))
    role: Mapped[Role] = mapped_column(Word(Role))
    password_hash: Mapped[str] = mapped_column(String(255))
    session_epoch: Mapped[int] = mapped_column(default=0)
    active: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_sign_in_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class SignInCounter(Base):
    """How many sign-ins were tried under one limit since `began_at`. Erased after the limit's window."""

    __tablename__ = "effaced_sign_in_counters"

    scope: Mapped[str] = mapped_column(String(16), primary_key=True)
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    account: Mapped[str | None] = mapped_column(String(64))
    began_at: Mapped[datetime] = mapped_column(UtcDateTime)
    count: Mapped[int] = mapped_column(default=0)


class SignInRefusals(Base):
    """Refused sign-ins of one officer, or of all unknown accounts together, that the trail sums up.

    `reported` of them are in the trail already. The row is erased after the window, when all are.
    """

    __tablename__ = "effaced_sign_in_refusals"

    account: Mapped[str] = mapped_column(String(36), primary_key=True)
    officer_id: Mapped[UUID | None]
    why: Mapped[str] = mapped_column(String(32))
    began_at: Mapped[datetime] = mapped_column(UtcDateTime)
    count: Mapped[int] = mapped_column(default=0)
    reported: Mapped[int] = mapped_column(default=0)


class ApiKey(Base):
    """A system that may call. The key itself is shown once and kept only as a hash.

    `scopes` says what for; without any it is as keys were before there were scopes: for requests. With
    `officer_id` it may decide in that officer's name. A `sandbox` key plans and never executes.
    `metadata_keys` are the names of what it may attach to its requests.
    """

    __tablename__ = "effaced_api_keys"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(80), unique=True)
    prefix: Mapped[str] = mapped_column(String(16))
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    approvals_needed: Mapped[int] = mapped_column(default=1)
    scopes: Mapped[list[str] | None] = mapped_column(Json)
    officer_id: Mapped[UUID | None]
    sandbox: Mapped[bool] = mapped_column(default=False)
    metadata_keys: Mapped[list[str] | None] = mapped_column(Json)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
