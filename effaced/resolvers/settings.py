"""Checking a resolver's block in resolvers.yaml. `Strict` and `validate` are for authors of kinds too."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeVar

from pydantic import BaseModel, Field, model_validator

from effaced.core import strict
from effaced.core.strict import Strict, problems_of, suggest
from effaced.resolvers.protocols import Limits

__all__ = ["Common", "Strict", "problems_of", "suggest", "validate"]

M = TypeVar("M", bound=BaseModel)


class Common(Strict):
    """Settings that every kind of resolver has."""

    kind: str
    ref: str = Field(pattern=r"^[A-Za-z0-9_.\-]{1,64}$")
    timeout: float = Field(default=30, gt=0, le=600, allow_inf_nan=False)
    concurrency: int = Field(default=10, ge=1, le=1000)
    rate_per_second: float | None = Field(default=None, gt=0, le=100_000, allow_inf_nan=False)
    batch_size: int | None = Field(default=None, ge=1, le=1_000)
    max_attempts: int | None = Field(default=None, ge=1, le=50)
    max_age_days: float | None = Field(default=None, gt=0, le=90, allow_inf_nan=False)
    backoff_seconds: float | None = Field(default=None, ge=0.05, le=86_400, allow_inf_nan=False)
    backoff_cap_seconds: float | None = Field(default=None, ge=0.05, le=86_400, allow_inf_nan=False)
    idempotent: bool = True
    after: list[str] = Field(default_factory=list)
    holds: list[str] | None = None
    canary: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _delays_fit(self) -> Common:
        if (self.backoff_seconds or 0) > (self.backoff_cap_seconds or 86_400):
            raise ValueError("backoff_seconds must be at most backoff_cap_seconds")
        return self

    def limits(self) -> Limits:
        return Limits(
            timeout=timedelta(seconds=self.timeout),
            concurrency=self.concurrency,
            rate_per_second=self.rate_per_second,
            batch_size=self.batch_size,
            max_attempts=self.max_attempts,
            max_age=_days(self.max_age_days),
            backoff=_seconds(self.backoff_seconds),
            backoff_cap=_seconds(self.backoff_cap_seconds),
            idempotent=self.idempotent,
        )


def _seconds(number: float | None) -> timedelta | None:
    return None if number is None else timedelta(seconds=number)


def _days(number: float | None) -> timedelta | None:
    return None if number is None else timedelta(days=number)


def validate(model: type[M], config: Mapping[str, Any]) -> M:
    """Make the model, or raise a ConfigurationError with every problem; `where` is the dotted key."""
    # A kind's own model knows nothing of the keys that all kinds share; the person who typed does.
    return strict.validate(model, config, beside=Common.model_fields)
