"""The tables of the resolvers."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from effaced.core.db import Base, UtcDateTime, Word
from effaced.model import CheckReason, ReadBackProof


class ResolverCheck(Base):
    """The last check of a resolver's read-back, and a keyed hash of the configuration it was made under."""

    __tablename__ = "effaced_resolver_checks"

    resolver: Mapped[str] = mapped_column(String(255), primary_key=True)
    proof: Mapped[ReadBackProof] = mapped_column(Word(ReadBackProof))
    reason: Mapped[CheckReason] = mapped_column(Word(CheckReason))
    checked_at: Mapped[datetime] = mapped_column(UtcDateTime)
    config_key_id: Mapped[str] = mapped_column(String(16))
    config_hmac: Mapped[str] = mapped_column(String(64))
