"""What every table of effaced is made of: the declarative base, column types, access rights."""

from __future__ import annotations

import enum
from datetime import UTC, datetime
from typing import TypeVar

from sqlalchemy import JSON, DateTime, Dialect, MetaData, String
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeDecorator

# What a table's `info` says of the rights that the run role gets; without it, all four.
APPEND_ONLY = {"run_rights": ("SELECT", "INSERT")}
OWNER_WRITES = {"run_rights": ("SELECT",)}
# Of a table that belongs to the trail and may be changed all the same.
CHANGEABLE = {"run_rights": ("SELECT", "INSERT", "UPDATE", "DELETE")}
E = TypeVar("E", bound=enum.StrEnum)


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC. Refuses naive values; SQLite keeps it as sortable text."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("naive datetime: every moment stored is timezone-aware")
        value = value.astimezone(UTC)
        return value if dialect.name == "postgresql" else value.replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Word(TypeDecorator[E]):
    """A StrEnum kept as its plain word, so that stored rows stay readable without this code."""

    impl = String(32)
    cache_ok = True

    def __init__(self, words: type[E]) -> None:
        super().__init__()
        self.words = words

    def process_bind_param(self, value: E | None, dialect: Dialect) -> str | None:
        return None if value is None else self.words(value).value

    def process_result_value(self, value: str | None, dialect: Dialect) -> E | None:
        return None if value is None else self.words(value)


Json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


class Base(DeclarativeBase):
    """All of effaced's tables. Their names start with `effaced_`: they live beside the company's own."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
