"""Checking a resolver's block in resolvers.yaml, with complaints a person can act on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from effaced.errors import ConfigurationError, Problem
from effaced.resolvers.protocols import Limits

M = TypeVar("M", bound=BaseModel)


class Strict(BaseModel):
    """The base of configuration models: unknown keys are refused, values stay out of errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, coerce_numbers_to_str=True
    )


class Common(Strict):
    """What every resolver says, whatever its kind."""

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
    after: list[str] = Field(default_factory=list)
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
        )


def _seconds(number: float | None) -> timedelta | None:
    return None if number is None else timedelta(seconds=number)


def _days(number: float | None) -> timedelta | None:
    return None if number is None else timedelta(days=number)


def validate(model: type[M], config: Mapping[str, Any]) -> M:
    """Make the model, or raise a ConfigurationError with every problem; `where` is the dotted key."""
    try:
        return model.model_validate(dict(config))
    except ValidationError as error:
        problems = problems_of(error, model)
    raise ConfigurationError("The resolver's configuration is wrong.", problems=problems)


def problems_of(error: ValidationError, model: type[BaseModel] | None = None) -> list[Problem]:
    """pydantic's complaints as problems, without the values that caused them."""
    problems = []
    for each in error.errors(include_url=False, include_input=False, include_context=False):
        place = each["loc"]
        if each["type"] == "extra_forbidden":
            known = _known_keys(model, place[:-1]) if model else []
            message = f"unknown key{suggest(str(place[-1]), known)}"
        elif each["type"] == "missing":
            message = "is required"
        else:
            message = each["msg"].removeprefix("Value error, ")
        problems.append(Problem(".".join(str(part) for part in place), message))
    return problems


def suggest(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: the closest known one, or all of them."""
    names = sorted(known)
    closest = difflib.get_close_matches(word, names, n=1)
    if closest:
        return f"; did you mean '{closest[0]}'?"
    return f"; known: {', '.join(names)}" if names else ""


def _known_keys(model: type[BaseModel], place: tuple[int | str, ...]) -> list[str]:
    at: type[BaseModel] | None = model
    for part in place:
        fields = at.model_fields if at else {}
        field = next((f for name, f in fields.items() if part in (name, f.alias)), None)
        at = _model_in(field.annotation) if field else None
    if at is None:
        return []
    names = [field.alias or name for name, field in at.model_fields.items()]
    # A kind's own model knows nothing of the keys that all kinds share; the person who typed does.
    return names if place else [*names, *Common.model_fields]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    for each in (annotation, *get_args(annotation)):
        if isinstance(each, type) and issubclass(each, BaseModel):
            return each
    return None
