"""Checking a resolver's block in resolvers.yaml. `Strict` and `validate` are for authors of kinds too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from effaced import strict
from effaced.strict import Strict, problems_of, suggest

__all__ = ["Common", "Strict", "problems_of", "suggest", "validate"]

M = TypeVar("M", bound=BaseModel)


class Common(Strict):
    """What every resolver says, whatever its kind."""

    kind: str
    ref: str = Field(pattern=r"^[A-Za-z0-9_.\-]{1,64}$")
    timeout: float = Field(default=30, gt=0, le=600, allow_inf_nan=False)
    concurrency: int = Field(default=10, ge=1, le=1000)
    rate_per_second: float | None = Field(default=None, gt=0, le=100_000, allow_inf_nan=False)
    canary: str | None = Field(default=None, min_length=1)


def validate(model: type[M], config: Mapping[str, Any]) -> M:
    """Make the model, or raise a ConfigurationError with every problem; `where` is the dotted key."""
    # A kind's own model knows nothing of the keys that all kinds share; the person who typed does.
    return strict.validate(model, config, beside=Common.model_fields)
